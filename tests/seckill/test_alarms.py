"""Alarms are no noise: reconciled again and again at full work, with workers that stall and die, nothing is raised."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Sum
from django.utils import timezone

from orders.errors import TransitionRefused
from orders.models import Order
from orders.services import cancel_order
from seckill import settlement
from seckill.errors import GateUnavailable
from seckill.gate import gate
from seckill.gate.connection import raw_client
from seckill.mending import Extent
from seckill.models import Incident, ReconciliationRun, Repair, Reservation
from seckill.repair import reconcile_and_repair
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from tests.support.shop import Shop, buy, make_buyers, open_sale, ticket_of
from tests.support.state import numbers
from tests.support.threads import run_together

RUNS = 120
BUYERS = 60


class Death(GateUnavailable):
    """Stands for a worker that died between its commit and its script."""


def dice(seed: int) -> random.Random:
    """The same luck in every run."""
    return random.Random(seed)  # noqa: S311  a test's dice


def mortal(original: Callable[..., Any], here: threading.local, chance: random.Random) -> Callable[..., Any]:
    """A step at which workers, and nobody else, now and then stall or die."""

    def step(**arguments: Any) -> Any:
        if getattr(here, "is_worker", False):
            luck = chance.random()
            if luck < 0.2:
                raise Death
            if luck < 0.4:
                time.sleep(0.03)
        return original(**arguments)

    return step


@pytest.mark.slow
def test_reconciliations_at_full_work_raise_no_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers, members and ledger are right at every instant, whoever buys, settles, cancels, returns or dies."""
    shop = open_sale(units=80, limit=2)
    here, is_over = threading.local(), threading.Event()
    monkeypatch.setattr(settlement, "_tell_redis", mortal(settlement._tell_redis, here, dice(1)))
    monkeypatch.setattr(gate, "restock", mortal(gate.restock, here, dice(2)))
    buyers = make_buyers(BUYERS)

    def reconcile(number: int) -> list[bool]:
        reports = [
            reconcile_and_repair(
                bucket=shop.bucket, clock=timezone.now, extent=Extent.WINDOW if n % 10 else Extent.FULL
            )
            for n in range(RUNS // 2)
        ]
        if number == 0:
            is_over.set()
        return [report.is_balanced for report in reports if report.is_seen]

    def work(number: int) -> list[bool]:
        here.is_worker = True
        chance = dice(number)
        while not is_over.is_set():
            if number == 2:
                go_shopping(shop, buyers[chance.randrange(BUYERS)], chance)
            elif number == 3:
                cancel_one(shop, chance)
            else:
                settle_or_return(shop, number)
        return []

    def run(number: int) -> list[bool]:
        return reconcile(number) if number < 2 else work(number)

    balanced = [is_balanced for answers in run_together(run, range(6)) for is_balanced in answers]
    assert balanced == [True] * len(balanced)
    assert len(balanced) > RUNS * 0.9
    assert not Incident.objects.exists()
    assert not Repair.objects.exists()
    assert not ReconciliationRun.objects.filter(verdict__in=["LEAK", "EXCESS"]).exists()
    assert Reservation.objects.filter(state="RETURNED").count() > 5
    come_to_rest(shop)


def go_shopping(shop: Shop, buyer: Any, chance: random.Random) -> None:
    buy(ticket_of(shop, buyer), chance.choice([1, 1, 2]))
    time.sleep(0.03)


def cancel_one(shop: Shop, chance: random.Random) -> None:
    orders = list(Order.objects.filter(closed_at=None)[:20])
    if orders:
        order = chance.choice(orders)
        try:
            cancel_order(number=order.number, buyer_id=order.buyer_id, now=timezone.now())
        except TransitionRefused:
            return
    time.sleep(0.03)


def settle_or_return(shop: Shop, number: int) -> None:
    try:
        if number == 4:
            settle_bucket(bucket=shop.bucket, clock=timezone.now)
        else:
            return_closed_orders(clock=timezone.now)
    except GateUnavailable:
        return
    time.sleep(0.02)


def come_to_rest(shop: Shop) -> None:
    """Bring everything in; then both stores and the ledger say the same of every unit and every buyer."""
    for _ in range(3):
        settle_bucket(bucket=shop.bucket, clock=timezone.now)
        return_closed_orders(clock=timezone.now)
    report = reconcile_and_repair(bucket=shop.bucket, clock=timezone.now, extent=Extent.FULL)
    assert (report.is_balanced, report.members is not None and report.members.is_complete) == (True, True)
    assert [(item.in_flight, item.owed, item.drift) for item in report.items] == [(0, 0, 0)]
    held = Reservation.objects.filter(state="SETTLED").values_list("limit_key").annotate(units=Sum("quantity"))
    marks = {
        key.decode(): int(units) for key, units in raw_client().hgetall(shop.bucket.keys[2]).items() if key != b"#epoch"
    }
    assert marks == dict(held.order_by())
    assert numbers(shop).left == {shop.item.pk: 80 - sum(marks.values())}
