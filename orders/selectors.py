"""Reads of the orders."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from orders.models import Order
from orders.states import OrderState


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
