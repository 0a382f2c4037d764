"""Writes of the orders."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Q

from orders.errors import TransitionRefused
from orders.models import Order, OrderEvent
from orders.states import CLOSED, OrderState, UnitsTo, is_allowed

logger = logging.getLogger(__name__)


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
    units_to: UnitsTo = UnitsTo.ON_SALE,
) -> None:
    """Take one order along one allowed transition and write its event.

    The update names the old state, so of two callers racing one wins and the other gets
    ``TransitionRefused``. Closing touches only the order's row: whoever sold the units finds them
    by ``units_due_at`` and takes them back.
    """
    if not is_allowed(from_state, to_state):
        raise TransitionRefused(number=number, to_state=to_state)
    with transaction.atomic():
        moved = Order.objects.filter(number=number, state=from_state).update(
            **_closing(to_state=to_state, now=now, units_to=units_to), state=to_state
        )
        if moved != 1:
            raise TransitionRefused(number=number, to_state=to_state)
        OrderEvent.objects.create(
            order_id=Order.objects.values_list("pk", flat=True).get(number=number),
            from_state=from_state,
            to_state=to_state,
            reason=reason,
            actor_id=actor_id,
            created_at=now,
        )


def cancel_order(*, number: str, buyer_id: int, now: datetime) -> None:
    """Cancel a buyer's own unpaid order; its units go on sale again.

    Raises ``TransitionRefused`` when it is not his, or no longer unpaid.
    """
    if not Order.objects.filter(number=number, buyer_id=buyer_id).exists():
        raise TransitionRefused(number=number, to_state=OrderState.CANCELLED)
    move_order(
        number=number,
        from_state=OrderState.PENDING_PAYMENT,
        to_state=OrderState.CANCELLED,
        now=now,
        reason="cancelled by the buyer",
        actor_id=buyer_id,
    )


def expire_orders(*, now: datetime, batch_size: int) -> int:
    """Expire all unpaid orders whose time is over, batch by batch; return how many.

    Rows that somebody else holds are skipped. When a batch fails, its rows are tried one by one, so
    that one bad row never stops the rest, nor those behind it; a bad one is logged and tried again
    next time.
    """
    due = Order.objects.filter(state=OrderState.PENDING_PAYMENT, pay_by_at__lte=now).order_by("pay_by_at", "pk")
    expired, rest = 0, Q()
    while page := list(due.filter(rest).values_list("pk", "pay_by_at")[:batch_size]):
        expired += _expire_page(order_ids=[pk for pk, _ in page], now=now)
        last_pk, last_at = page[-1]
        rest = Q(pay_by_at=last_at, pk__gt=last_pk) | Q(pay_by_at__gt=last_at)
    return expired


def _expire_page(*, order_ids: Sequence[int], now: datetime) -> int:
    try:
        return _expire_unlocked(order_ids=order_ids, now=now)
    except DatabaseError:
        if len(order_ids) == 1:
            logger.exception("order %s cannot be expired", order_ids[0])
            return 0
    return sum(_expire_page(order_ids=[order_id], now=now) for order_id in order_ids)


def _expire_unlocked(*, order_ids: Sequence[int], now: datetime) -> int:
    """Expire those of the orders that nobody holds, with one transaction."""
    unpaid = Order.objects.filter(pk__in=order_ids, state=OrderState.PENDING_PAYMENT)
    with transaction.atomic(durable=True):
        free = list(unpaid.select_for_update(skip_locked=True).values_list("pk", flat=True))
        _expire(order_ids=free, now=now)
    return len(free)


def units_taken_back(*, numbers: Sequence[str]) -> None:
    """Note that the units of closed orders are back with whoever sold them, in his transaction."""
    Order.objects.filter(number__in=numbers).update(units_due_at=None)


def _expire(*, order_ids: Sequence[int], now: datetime) -> None:
    expired = Order.objects.filter(pk__in=order_ids, state=OrderState.PENDING_PAYMENT).update(
        **_closing(to_state=OrderState.EXPIRED, now=now, units_to=UnitsTo.ON_SALE), state=OrderState.EXPIRED
    )
    if expired != len(order_ids):
        raise DatabaseError(f"{len(order_ids) - expired} of {len(order_ids)} locked orders were not unpaid")
    OrderEvent.objects.bulk_create(
        OrderEvent(
            order_id=order_id,
            from_state=OrderState.PENDING_PAYMENT,
            to_state=OrderState.EXPIRED,
            reason="not paid in time",
            created_at=now,
        )
        for order_id in order_ids
    )


def _closing(*, to_state: OrderState, now: datetime, units_to: UnitsTo) -> dict[str, Any]:
    """The columns that a closing sets besides the state; none for another transition."""
    if to_state not in CLOSED:
        return {}
    return {"closed_at": now, "units_due_at": now, "units_to": units_to}
