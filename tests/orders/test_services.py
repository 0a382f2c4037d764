"""Placing and moving orders: one transition is one event, and of two that race one wins."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from itertools import product

import pytest
from django.db import transaction
from django.db.transaction import TransactionManagementError

from orders.errors import TransitionRefused
from orders.models import Order, OrderEvent
from orders.services import NewOrder, move_order, place_orders
from orders.states import CLOSED, OrderState, is_allowed
from tests.support.rows import DUPLICATE, NO_PARENT, NOW, error_code, make_order, make_sku
from tests.support.shop import make_buyers
from tests.support.threads import run_together
from tests.support.unsafe_writes import unsafe_move

PAIRS = list(product(OrderState, OrderState))
ALLOWED = [pair for pair in PAIRS if is_allowed(*pair)]
REFUSED = [pair for pair in PAIRS if not is_allowed(*pair)]


def new_order(number: str = "1-0-aaaaaaaaaaaaaaaa") -> NewOrder:
    (buyer,) = make_buyers(1)
    return NewOrder(
        number=number,
        buyer_id=buyer.pk,
        sku_id=make_sku().pk,
        quantity=2,
        unit_price=Decimal("1499.00"),
        pay_by_at=NOW,
    )


def place(*orders: NewOrder) -> None:
    with transaction.atomic():
        place_orders(new_orders=orders, now=NOW)


def move(number: str, to_state: OrderState, from_state: OrderState = OrderState.PENDING_PAYMENT) -> bool:
    """Move; tell whether the order was moved."""
    try:
        move_order(number=number, from_state=from_state, to_state=to_state, now=NOW)
    except TransitionRefused:
        return False
    return True


def test_placed_orders_wait_for_payment_at_the_promised_price() -> None:
    first, second = new_order(), new_order("1-0-bbbbbbbbbbbbbbbb")
    place(first, replace(second, quantity=1))
    row = Order.objects.get(number=first.number)
    assert (row.buyer_id, row.sku_id, row.quantity) == (first.buyer_id, first.sku_id, 2)
    assert row.unit_price == Decimal("1499.00")
    assert (row.state, row.created_at, row.pay_by_at, row.closed_at) == ("PENDING_PAYMENT", NOW, NOW, None)
    assert Order.objects.get(number=second.number).quantity == 1
    assert not OrderEvent.objects.exists()


def test_orders_are_placed_only_inside_a_transaction() -> None:
    with pytest.raises(TransactionManagementError, match="inside the transaction that settles them"):
        place_orders(new_orders=[new_order()], now=NOW)
    assert not Order.objects.exists()


def test_a_batch_with_a_known_number_places_none() -> None:
    """CASES 32: no row is dropped or placed in silence."""
    first = new_order()
    place(first)
    assert error_code(lambda: place(new_order("1-0-bbbbbbbbbbbbbbbb"), first)) == DUPLICATE
    assert Order.objects.get().number == first.number


@pytest.mark.parametrize("unknown", [{"buyer_id": 10**9}, {"sku_id": 10**9}])
def test_a_batch_with_an_unknown_buyer_or_sku_places_none(unknown: dict[str, int]) -> None:
    good, bad = new_order(), replace(new_order("1-0-bbbbbbbbbbbbbbbb"), **unknown)  # type: ignore[arg-type]
    assert error_code(lambda: place(good, bad)) == NO_PARENT
    assert not Order.objects.exists()


@pytest.mark.parametrize(("from_state", "to_state"), ALLOWED)
def test_an_allowed_move_writes_one_event(from_state: OrderState, to_state: OrderState) -> None:
    """The time of closing is set for what is closed, and for nothing else."""
    order = make_order(state=from_state)
    (clerk,) = make_buyers(1)
    move_order(
        number=order.number, from_state=from_state, to_state=to_state, now=NOW, reason="as asked", actor_id=clerk.pk
    )
    order.refresh_from_db()
    assert (order.state, order.closed_at) == (to_state, NOW if to_state in CLOSED else None)
    event = OrderEvent.objects.get()
    assert (event.order_id, event.from_state, event.to_state) == (order.pk, from_state, to_state)
    assert (event.reason, event.actor_id, event.created_at) == ("as asked", clerk.pk, NOW)


@pytest.mark.parametrize(("from_state", "to_state"), REFUSED)
def test_a_move_the_table_has_not_changes_nothing(from_state: OrderState, to_state: OrderState) -> None:
    order = make_order(state=from_state)
    before = Order.objects.values().get()
    assert not move(order.number, to_state, from_state)
    assert Order.objects.values().get() == before
    assert not OrderEvent.objects.exists()


@pytest.mark.parametrize(("from_state", "to_state"), ALLOWED)
def test_a_move_from_where_the_order_is_not_changes_nothing(from_state: OrderState, to_state: OrderState) -> None:
    """CASES 34: the update names the old state; that somebody saw it there once does not count."""
    for state in set(OrderState) - {from_state}:
        order = make_order(state=state)
        before = Order.objects.values().get(pk=order.pk)
        assert not move(order.number, to_state, from_state)
        assert Order.objects.values().get(pk=order.pk) == before
    assert not OrderEvent.objects.exists()


def test_an_unknown_number_cannot_be_moved() -> None:
    other = make_order()
    with pytest.raises(TransitionRefused, match=r"^order nobody's cannot become PAID$") as caught:
        move_order(number="nobody's", from_state=OrderState.PENDING_PAYMENT, to_state=OrderState.PAID, now=NOW)
    assert (caught.value.number, caught.value.to_state) == ("nobody's", OrderState.PAID)
    other.refresh_from_db()
    assert other.state == OrderState.PENDING_PAYMENT


def test_a_move_twice_is_one_move() -> None:
    """CASES 3: the second click on cancel does nothing."""
    order = make_order()
    assert move(order.number, OrderState.CANCELLED)
    assert not move(order.number, OrderState.CANCELLED)
    assert OrderEvent.objects.count() == 1


def race(mover: Callable[[str, OrderState], bool]) -> int:
    """Let ten pay and ten cancel one order at once; return how many believe they did."""
    order = make_order()
    wishes = [OrderState.PAID, OrderState.CANCELLED] * 10
    return sum(run_together(lambda to_state: mover(order.number, to_state), wishes))


def test_of_pay_and_cancel_at_once_exactly_one_wins() -> None:
    """CASES 5: nobody pays for what is cancelled, nobody cancels what is paid."""
    assert race(move) == 1
    order, event = Order.objects.get(), OrderEvent.objects.get()
    assert order.state == event.to_state
    assert (order.closed_at is not None) == (order.state == OrderState.CANCELLED)


def test_control_pay_and_cancel_that_read_then_write() -> None:
    """The control of the race above: all twenty saw an unpaid order."""
    assert race(unsafe_move(writers=20)) == 20
