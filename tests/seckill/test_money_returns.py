"""Units of refunded orders come back once, whatever doors race, and whatever dies on the way."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from inventory.models import Stock
from orders.errors import RefundRefused, TransitionRefused
from orders.models import Honour, Order, OrderEvent, Payment, PaymentAttempt, Refund, SandboxCharge
from orders.services import cancel_order, expire_orders
from orders.services.money import take_money
from orders.services.refunding import RefundRequest, request_refund
from orders.states import RefundedUnitsTo, RefundReason
from seckill.honouring import honour_open
from seckill.models import ItemBucket
from seckill.reconciliation import Verdict, reconcile_bucket
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from tests.support.die import run_and_die
from tests.support.payments import begin, money_for, pay_at_sandbox
from tests.support.shop import Shop, buy, make_tickets, open_sale, ticket_of
from tests.support.state import numbers, sold_units
from tests.support.threads import run_together


def sell(shop: Shop) -> Order:
    number = buy(make_tickets(shop, 1)[0])
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    return Order.objects.get(number=number)


def pay(order: Order) -> Payment:
    attempt = begin(order, now=timezone.now())
    pay_at_sandbox(attempt)
    money = money_for(attempt, reference=SandboxCharge.objects.latest("pk").reference)
    taken = take_money(provider="sandbox", money=money, now=timezone.now())
    return Payment.objects.get(pk=taken.payment_id)


def refund(payment: Payment, units_to: RefundedUnitsTo) -> bool:
    request = RefundRequest(
        payment_id=payment.pk, amount=payment.amount, reason=RefundReason.WITHDRAWN, units_to=units_to
    )
    try:
        request_refund(request=request, now=timezone.now())
    except RefundRefused:
        return False
    return True


def cancel(order: Order) -> bool:
    try:
        cancel_order(number=order.number, buyer_id=order.buyer_id, now=timezone.now())
    except TransitionRefused:
        return False
    return True


def expire(later: timedelta = timedelta(0)) -> bool:
    return expire_orders(now=timezone.now() + later, batch_size=10) == 1


def give_back() -> int:
    return return_closed_orders(clock=timezone.now)


def is_balanced(shop: Shop) -> bool:
    return reconcile_bucket(bucket=shop.bucket, clock=timezone.now).verdict is Verdict.BALANCED


@pytest.mark.parametrize(
    ("units_to", "left", "allocated", "on_hand"),
    [("ON_SALE", 5, 5, 0), ("WAREHOUSE", 4, 4, 1), ("WRITTEN_OFF", 4, 4, 0), ("NOWHERE", 4, 5, 0)],
)
def test_a_refunded_unit_goes_where_it_was_sent(units_to: str, left: int, allocated: int, on_hand: int) -> None:
    shop = open_sale(units=5)
    order = sell(shop)
    payment = pay(order)
    assert refund(payment, RefundedUnitsTo(units_to))
    give_back()
    unit = ItemBucket.objects.get(item_id=shop.item.pk)
    assert numbers(shop).left == {shop.item.pk: left}
    assert (unit.allocated, unit.sold) == (allocated, allocated - left)
    assert Stock.objects.get(sku_id=shop.item.sku_id).on_hand == on_hand
    assert is_balanced(shop)
    again = buy(ticket_of(shop, order.buyer))
    assert ("-" in again) == (units_to != "NOWHERE")


def test_cancel_expire_and_refunds_at_once_bring_a_unit_back_once() -> None:
    """CASES 3: all doors at the same instant, on an order that was just paid."""
    shop = open_sale(units=5)
    payment = pay(order := sell(shop))
    doors: list[Callable[[], bool]] = [
        partial(cancel, order),
        partial(expire, timedelta(hours=1)),
        *[partial(refund, payment, RefundedUnitsTo.ON_SALE)] * 4,
    ]
    assert sorted(run_together(lambda door: door(), doors)) == [False] * 5 + [True]
    run_together(lambda _: give_back(), range(4))
    give_back()
    assert not cancel(order)
    assert not expire(timedelta(hours=1))
    assert (numbers(shop).left, sold_units(shop)) == ({shop.item.pk: 5}, 0)
    assert OrderEvent.objects.count() == 2
    assert is_balanced(shop)


def test_an_order_paid_at_the_very_end_keeps_its_unit() -> None:
    """CASES 5 and 11: paid in time at the provider, told after the sale and the window are over."""
    shop = open_sale(units=5)
    order = sell(shop)
    attempt = begin(order, now=timezone.now())
    pay_at_sandbox(attempt)
    Order.objects.update(pay_by_at=timezone.now())
    assert not expire()
    take_money(provider="sandbox", money=money_for(attempt), now=timezone.now() + timedelta(minutes=5))
    assert give_back() == 0
    order.refresh_from_db()
    assert (order.state, sold_units(shop)) == ("PAID", 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "moment"),
    [
        ("orders.services.refunding._give_units_up", "after"),
        ("orders.services.refunding.request_refund", "after"),
        ("orders.services.sending._answer", "before"),
        ("orders.services.sending._answer", "after"),
        ("orders.services.sending.end_refund", "after"),
        ("seckill.returns.units_taken_back", "after"),
        ("seckill.gate.gate.restock", "after"),
    ],
)
def test_a_refund_killed_at_any_step(function: str, moment: str) -> None:
    """Whatever was done stays done, the rest is done by the next run, nothing twice."""
    shop = open_sale(units=5)
    payment = pay(sell(shop))
    assert run_and_die(job="refund", pool_id=payment.pk, function=function, moment=moment) == -9
    if not Refund.objects.exists():
        assert refund(payment, RefundedUnitsTo.ON_SALE)
    give_back()
    assert Refund.objects.count() == 1
    assert (numbers(shop).left, sold_units(shop)) == ({shop.item.pk: 5}, 0)
    payment.refresh_from_db()
    assert payment.refunding == payment.amount
    assert is_balanced(shop)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "moment"),
    [
        ("seckill.honouring._numbered", "after"),
        ("seckill.honouring.reserve", "after"),
        ("seckill.honouring._make_ticket", "after"),
        ("orders.services.honours._end", "after"),
        ("orders.services.honours._pay", "after"),
        ("seckill.honouring.complete_honour", "after"),
    ],
)
def test_an_honour_killed_at_any_step(function: str, moment: str) -> None:
    """One unit, one new order, paid by the one payment."""
    shop = open_sale(units=5)
    order = sell(shop)
    attempt = begin(order, now=timezone.now())
    PaymentAttempt.objects.update(state="CLOSED", ask_at=None)
    Order.objects.update(payment_begun_at=None, pay_by_at=timezone.now())
    assert expire()
    give_back()
    payment_id = take_money(provider="sandbox", money=money_for(attempt), now=timezone.now()).payment_id
    assert run_and_die(job="honour", pool_id=payment_id, function=function, moment=moment) == -9
    for _ in range(3):
        honour_open(clock=timezone.now)
        settle_bucket(bucket=shop.bucket, clock=timezone.now)
    payment = Payment.objects.get()
    assert (payment.state, Honour.objects.get().state) == ("ACCEPTED", "DONE")
    assert sorted(Order.objects.values_list("state", flat=True)) == ["EXPIRED", "PAID"]
    assert (numbers(shop).left, sold_units(shop)) == ({shop.item.pk: 4}, 1)
    assert is_balanced(shop)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "moment"),
    [
        ("orders.services.paying._open_attempt", "after"),
        ("orders.providers.sandbox.provider.SandboxProvider.start", "before"),
        ("orders.providers.sandbox.provider.SandboxProvider.start", "after"),
        ("orders.services.money._record", "after"),
        ("orders.services.money._settle_attempt", "after"),
        ("orders.services.money.take_money", "after"),
    ],
)
def test_a_payment_killed_at_any_step(function: str, moment: str) -> None:
    """The buyer pays all the same, and the shop hears of it once."""
    shop = open_sale(units=5)
    order = sell(shop)
    assert run_and_die(job="pay", pool_id=order.pk, function=function, moment=moment) == -9
    if Order.objects.get().state != "PAID":
        attempt = begin(order, now=timezone.now())
        assert attempt.reference == f"{order.number}.1"
        take_money(provider="sandbox", money=money_for(attempt, reference="charge-1"), now=timezone.now())
    assert (Order.objects.get().state, Payment.objects.get().state) == ("PAID", "ACCEPTED")
    assert PaymentAttempt.objects.count() == 1
    assert OrderEvent.objects.count() == 1
