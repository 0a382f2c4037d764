"""Writes of the orders."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import transaction

from orders.errors import TransitionRefused
from orders.models import Order, OrderEvent
from orders.states import CLOSED, OrderState, is_allowed


@dataclass(frozen=True, kw_only=True)
class NewOrder:
    """What a settled reservation hands over to become an order."""

    number: str
    buyer_id: int
    sku_id: int
    quantity: int
    unit_price: Decimal
    pay_by_at: datetime


def place_orders(*, new_orders: Sequence[NewOrder], now: datetime) -> None:
    """Insert the orders with one statement, in the caller's transaction.

    Raises what the database says of them: 1062 for a known number, 1452 for an unknown
    buyer or SKU. None is written then.
    """
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError("orders are placed inside the transaction that settles them")
    Order.objects.bulk_create(
        Order(
            number=new.number,
            buyer_id=new.buyer_id,
            sku_id=new.sku_id,
            quantity=new.quantity,
            unit_price=new.unit_price,
            state=OrderState.PENDING_PAYMENT,
            created_at=now,
            pay_by_at=new.pay_by_at,
        )
        for new in new_orders
    )


def move_order(
    *,
    number: str,
    from_state: OrderState,
    to_state: OrderState,
    now: datetime,
    reason: str = "",
    actor_id: int | None = None,
) -> None:
    """Take one order along one allowed transition and write its event.

    The update names the old state, so of two callers racing one wins and the other
    gets ``TransitionRefused``.
    """
    if not is_allowed(from_state, to_state):
        raise TransitionRefused(number=number, to_state=to_state)
    closed_at = now if to_state in CLOSED else None
    with transaction.atomic():
        moved = Order.objects.filter(number=number, state=from_state).update(state=to_state, closed_at=closed_at)
        if moved != 1:
            raise TransitionRefused(number=number, to_state=to_state)
        order_id = Order.objects.values_list("pk", flat=True).get(number=number)
        OrderEvent.objects.create(
            order_id=order_id,
            from_state=from_state,
            to_state=to_state,
            reason=reason,
            actor_id=actor_id,
            created_at=now,
        )
