"""Beat twice, and a broker that delivers twice: each task of the schedule, and each that they send, doubled."""

import threading
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from celery import current_app
from celery.app.task import Task
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from inventory.selectors import balance
from orders.models import Order
from orders.services import cancel_order
from orders.states import CLOSED, OrderState
from seckill.gate import gate
from seckill.models import FlashSale, Incident, Reservation
from seckill.outcomes import account_of
from seckill.reconciliation import Verdict, reconcile_bucket
from tests.support.archive import assert_archived, end
from tests.support.shop import buy, make_sale, make_tickets, open_sale
from tests.support.state import numbers, sold_units
from tests.support.threads import run_together

pytestmark = pytest.mark.slow

AT_ONCE = 2
ROUNDS = 6
BOUGHT_EACH_ROUND = 5
# A cycle of messages that send each other would not end.
MESSAGES_MAX = 400

Message = tuple[str, tuple[Any, ...]]


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> deque[Message]:
    """What tasks send, in place of the broker."""
    current_app.loader.import_default_modules()
    sent: deque[Message] = deque()
    lock = threading.Lock()

    def note(self: "Task[..., Any]", args: tuple[Any, ...] = (), **_options: Any) -> None:
        with lock:
            sent.append((self.name, tuple(args)))

    monkeypatch.setattr(Task, "apply_async", note)
    return sent


def deliver_twice(message: Message) -> None:
    """Have two workers take the same message at once."""
    name, arguments = message
    run: Callable[..., None] = current_app.tasks[name].run
    run_together(lambda _: run(*arguments), range(AT_ONCE))


def tick_twice(messages: deque[Message]) -> None:
    """Send all that beat sends, twice at once, and whatever follows from it."""
    messages.extend((name, ()) for name in PeriodicTask.objects.order_by("?").values_list("task", flat=True))
    for _ in range(MESSAGES_MAX):
        if not messages:
            return
        deliver_twice(messages.popleft())
    raise AssertionError("the messages do not end")


def test_every_tick_and_every_message_may_come_twice_at_once(messages: deque[Message]) -> None:
    live = open_sale(units=ROUNDS * BOUGHT_EACH_ROUND)
    due = make_sale(units=8, opens_in=timedelta(minutes=5))
    FlashSale.objects.filter(pk=due.sale.pk).update(state="SCHEDULED")
    over = open_sale(units=4)
    end(over, ago=timedelta(days=2))
    for _ in range(ROUNDS):
        assert all("-" in buy(ticket) for ticket in make_tickets(live, BOUGHT_EACH_ROUND))
        tick_twice(messages)
        paid_late, given_up, *_ = Order.objects.filter(state=OrderState.PENDING_PAYMENT).order_by("-number")
        Order.objects.filter(pk=paid_late.pk).update(pay_by_at=timezone.now() - timedelta(minutes=1))
        cancel_order(number=given_up.number, buyer_id=given_up.buyer_id, now=timezone.now())
        tick_twice(messages)
    tick_twice(messages)
    closed = Order.objects.filter(state__in=CLOSED).count()
    left = live.item.units - ROUNDS * BOUGHT_EACH_ROUND + closed
    assert closed == 2 * ROUNDS
    assert Order.objects.count() == ROUNDS * BOUGHT_EACH_ROUND
    assert Reservation.objects.filter(state="RETURNED").count() == closed
    assert sold_units(live) == live.item.units - left
    assert numbers(live).left == {live.item.pk: left}
    assert balance(account=account_of(item_id=live.item.pk, bucket=live.bucket)) == left
    assert reconcile_bucket(bucket=live.bucket, clock=timezone.now).verdict is Verdict.BALANCED
    assert gate.snapshot(bucket=due.bucket, entries_max=0).left == {due.item.pk: 8}
    assert balance(account=account_of(item_id=due.item.pk, bucket=due.bucket)) == 8
    assert_archived(over, sold=0)
    assert list(Incident.objects.values_list("kind", "detail")) == []
