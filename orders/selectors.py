"""Reads of the orders."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Q

from orders.models import Order
from orders.states import OrderState, UnitsTo


@dataclass(frozen=True, kw_only=True)
class OrderView:
    """What a buyer sees of an order."""

    number: str
    state: OrderState
    quantity: int
    amount: Decimal
    pay_by_at: datetime


def order_by_number(*, number: str) -> OrderView | None:
    """One order, or None. The caller has checked who is asking."""
    row = Order.objects.filter(number=number).first()
    if row is None:
        return None
    return OrderView(
        number=row.number,
        state=OrderState(row.state),
        quantity=row.quantity,
        amount=row.unit_price * row.quantity,
        pay_by_at=row.pay_by_at,
    )


@dataclass(frozen=True, kw_only=True)
class DueReturn:
    """A closed order whose units nobody has taken back yet."""

    number: str
    units_to: UnitsTo


def pages_of_due_returns(*, page_size: int) -> Iterator[list[DueReturn]]:
    """Closed orders whose units are due, those that wait longest first, page by page.

    Each order comes once, whether or not it is taken back meanwhile: those nobody can take back now
    do not stand in the way of the others.
    """
    rows = Order.objects.filter(units_due_at__isnull=False).order_by("units_due_at", "pk")
    rest = Q()
    while page := list(rows.filter(rest).values_list("number", "units_to", "units_due_at", "pk")[:page_size]):
        yield [DueReturn(number=number, units_to=UnitsTo(units_to)) for number, units_to, _, _ in page]
        _, _, due_at, pk = page[-1]
        rest = Q(units_due_at=due_at, pk__gt=pk) | Q(units_due_at__gt=due_at)
