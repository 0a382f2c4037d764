"""Honouring: money for a closed order takes a unit again through the gate, once, or stays refund due."""

from datetime import timedelta

import pytest
from django.utils import timezone

from orders.errors import HonourRefused
from orders.models import Honour, Order, OrderEvent, Payment
from orders.services import complete_honour, expire_orders, request_honour
from orders.services.money import take_money
from seckill import honouring
from seckill.errors import GateUnavailable
from seckill.gate.connection import raw_client
from seckill.honouring import honour_open
from seckill.models import Reservation, Ticket
from seckill.pausing import pause_item
from seckill.polling import purchase_status
from seckill.purchase import reserve
from seckill.reconciliation import Verdict, reconcile_bucket
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from seckill.tasks import honour as honour_task
from tests.support.archive import archive, end
from tests.support.payments import begin, money_for, unwelcome_payment
from tests.support.shop import Shop, buy, make_ticket, make_tickets, open_sale, ticket_of
from tests.support.state import numbers, sold_units
from tests.support.threads import run_together


def settle(shop: Shop) -> None:
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


def honour() -> int:
    return honour_open(clock=timezone.now)


def late_money(shop: Shop, *, is_returned: bool = True) -> Payment:
    """Sell a unit, let its order run out of time, and then have it paid."""
    number = buy(make_tickets(shop, 1)[0])
    settle(shop)
    order = Order.objects.get(number=number)
    attempt = begin(order, now=timezone.now())
    attempt.__class__.objects.filter(pk=attempt.pk).update(state="CLOSED", ask_at=None)
    past = timezone.now() - timedelta(seconds=1)
    Order.objects.filter(pk=order.pk).update(payment_begun_at=None, pay_by_at=past)
    assert expire_orders(now=timezone.now(), batch_size=10) == 1
    if is_returned:
        return_closed_orders(clock=timezone.now)
    taken = take_money(provider="sandbox", money=money_for(attempt), now=timezone.now())
    return Payment.objects.get(pk=taken.payment_id)


def wish(payment: Payment) -> None:
    request_honour(payment_id=payment.pk, actor_id=None, now=timezone.now())


def test_money_for_a_closed_order_pays_a_new_one() -> None:
    shop = open_sale(units=1)
    payment = late_money(shop)
    closed = Order.objects.get()
    wish(payment)
    assert honour() == 0
    assert numbers(shop).left == {shop.item.pk: 0}
    settle(shop)
    assert honour() == 1
    payment.refresh_from_db()
    new = Order.objects.exclude(pk=closed.pk).get()
    assert (payment.state, payment.problem, payment.order_id, payment.pays_id) == ("ACCEPTED", "", new.pk, new.pk)
    assert (new.state, new.buyer_id, new.unit_price) == ("PAID", closed.buyer_id, closed.unit_price)
    assert OrderEvent.objects.get(order=new).reason == f"money for {payment.order_reference} honoured"
    closed.refresh_from_db()
    assert closed.state == "EXPIRED"
    done = Honour.objects.get()
    assert (done.state, done.number, done.open_key) == ("DONE", new.number, None)
    assert purchase_status(order_no=new.number, buyer_id=new.buyer_id).is_alive
    assert Ticket.objects.get(order_no=new.number).buyer_id == new.buyer_id
    assert (honour(), sold_units(shop)) == (0, 1)
    assert reconcile_bucket(bucket=shop.bucket, clock=timezone.now).verdict is Verdict.BALANCED


def test_sold_out_it_stays_refund_due_and_may_be_tried_again() -> None:
    shop = open_sale(units=1)
    payment = late_money(shop)
    other = buy(make_ticket(shop))
    settle(shop)
    wish(payment)
    assert honour() == 0
    payment.refresh_from_db()
    refused = Honour.objects.get()
    assert (payment.state, payment.problem) == ("REFUND_DUE", "CLOSED_ORDER")
    assert (refused.state, refused.reason) == ("REFUSED", "sold_out")
    assert Reservation.objects.filter(state="SETTLED").get().order_no == other
    wish(payment)
    assert Honour.objects.filter(state="REQUESTED").count() == 1


def test_the_buyer_s_limit_counts() -> None:
    """He bought another since: the limit is one."""
    shop = open_sale(units=5)
    payment = late_money(shop)
    buyer = Order.objects.get().buyer
    assert "-" in buy(ticket_of(shop, buyer))
    settle(shop)
    wish(payment)
    honour()
    assert (Honour.objects.get().state, Honour.objects.get().reason) == ("REFUSED", "limit_reached")
    assert sold_units(shop) == 1


def test_its_own_unit_is_waited_for() -> None:
    """Before the return his place in the limit, and perhaps the only unit, are not back yet."""
    shop = open_sale(units=1)
    payment = late_money(shop, is_returned=False)
    wish(payment)
    assert honour() == 0
    assert Honour.objects.get().number is None
    return_closed_orders(clock=timezone.now)
    honour()
    settle(shop)
    assert honour() == 1


def test_a_paused_item_is_not_taken() -> None:
    shop = open_sale(units=5)
    payment = late_money(shop)
    pause_item(item_id=shop.item.pk)
    wish(payment)
    honour()
    assert Honour.objects.get().reason == "paused"
    payment.refresh_from_db()
    assert payment.state == "REFUND_DUE"


def test_a_gate_that_is_away_is_waited_for_and_the_unit_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law 5: the reservation was made and its answer lost; the same number again is the same reservation."""
    shop = open_sale(units=5)
    payment = late_money(shop)
    wish(payment)

    def lose(**arguments: object) -> None:
        reserve(**arguments)  # type: ignore[arg-type]
        raise GateUnavailable("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(honouring, "reserve", lose)
        honour()
        honour()
    assert numbers(shop).left == {shop.item.pk: 4}
    honour()
    settle(shop)
    assert honour() == 1
    assert (Order.objects.count(), sold_units(shop)) == (2, 1)
    payment.refresh_from_db()
    assert payment.state == "ACCEPTED"


def test_four_workers_at_once_honour_once() -> None:
    shop = open_sale(units=5)
    payment = late_money(shop)
    wish(payment)
    for _ in range(3):
        run_together(lambda _: honour(), range(4))
        settle(shop)
    payment.refresh_from_db()
    assert (payment.state, Order.objects.count(), sold_units(shop)) == ("ACCEPTED", 2, 1)


def test_a_completion_repeated_is_one() -> None:
    shop = open_sale(units=5)
    payment = late_money(shop)
    wish(payment)
    honour()
    settle(shop)
    one = Honour.objects.get()
    done = run_together(lambda _: complete_honour(honour_id=one.pk, now=timezone.now()), range(4))
    assert sorted(done) == [False, False, False, True]
    payment.refresh_from_db()
    assert payment.state == "ACCEPTED"


def test_a_new_order_that_ran_out_of_time_leaves_the_refund_due() -> None:
    """Nobody came by for a quarter of an hour."""
    shop = open_sale(units=5)
    payment = late_money(shop)
    wish(payment)
    honour()
    settle(shop)
    Order.objects.filter(state="PENDING_PAYMENT").update(pay_by_at=timezone.now())
    expire_orders(now=timezone.now(), batch_size=10)
    honour()
    payment.refresh_from_db()
    assert (payment.state, Honour.objects.get().reason) == ("REFUND_DUE", "new_order_closed")
    return_closed_orders(clock=timezone.now)
    assert numbers(shop).left == {shop.item.pk: 5}


def test_a_new_order_that_was_returned_already_leaves_the_refund_due() -> None:
    shop = open_sale(units=5)
    payment = late_money(shop)
    wish(payment)
    honour()
    settle(shop)
    Order.objects.filter(state="PENDING_PAYMENT").update(pay_by_at=timezone.now())
    expire_orders(now=timezone.now(), batch_size=10)
    return_closed_orders(clock=timezone.now)
    honour()
    assert Honour.objects.get().reason == "new_order_closed"


def test_money_of_an_order_that_was_no_reservation_is_refused() -> None:
    payment = unwelcome_payment()
    wish(payment)
    honour_task()
    payment.refresh_from_db()
    assert (payment.state, Honour.objects.get().reason) == ("REFUND_DUE", "no_reservation")


def test_only_money_for_a_closed_order_is_honoured() -> None:
    shop = open_sale(units=5)
    payment = late_money(shop)
    wish(payment)
    with pytest.raises(HonourRefused):
        wish(payment)
    Payment.objects.update(state="REFUND_DUE", problem="SECOND_PAYMENT")
    with pytest.raises(HonourRefused, match="only money for a closed order"):
        wish(payment)
    assert Honour.objects.count() == 1


def test_a_sale_that_is_archived_is_over_whatever_redis_says() -> None:
    """A Redis that came back with an archived bucket cannot be asked; the wish does not wait for it for ever."""
    shop = open_sale(units=5)
    payment = late_money(shop)
    end(shop)
    kept = {key: raw_client().dump(key) for key in shop.bucket.keys}
    archive(shop)
    for key, value in kept.items():
        raw_client().restore(key, 0, value)
    raw_client().hset(shop.bucket.keys[1], "run_id", "another")
    wish(payment)
    honour()
    payment.refresh_from_db()
    assert (payment.state, Honour.objects.get().state) == ("REFUND_DUE", "REFUSED")
    assert Reservation.objects.count() == 1
