"""Placing: settled reservations become orders."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import transaction

from inventory.inserting import insert_rows
from orders.models import Order
from orders.states import OrderState


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
    insert_rows(
        [
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
        ]
    )
