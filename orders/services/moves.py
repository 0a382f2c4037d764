"""Moving orders along the table, each time with an event.

# Note [Locks of the orders]
A transaction that locks rows of the orders locks one order first, then begun payments of it, then one
payment, then its refunds and wishes to honour. Seckill's returns write order rows last, under a
bucket's lock; nothing here takes a bucket's lock, so no circle can close.
No call to a provider is made inside a transaction.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from orders.errors import TransitionRefused
from orders.models import Order, OrderEvent
from orders.states import CLOSED, OrderState, UnitsTo, is_allowed


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

    Its row is locked, then looked at, so of two callers racing one wins and the other gets
    ``TransitionRefused``. So does who would close an order for which a begun payment may still bring
    money. Closing touches only the order's row: whoever sold the units finds them by
    ``units_due_at`` and takes them back.
    """
    order_id = Order.objects.values_list("pk", flat=True).filter(number=number).first()
    if order_id is None or not is_allowed(from_state, to_state):
        raise TransitionRefused(number=number, to_state=to_state)
    with transaction.atomic():
        order = lock_order(order_id=order_id)
        may_bring_money = to_state in CLOSED and order.payment_begun_at is not None
        if order.state != from_state or may_bring_money:
            raise TransitionRefused(number=number, to_state=to_state)
        move_locked(order=order, to_state=to_state, now=now, reason=reason, actor_id=actor_id, units_to=units_to)


def move_locked(
    *,
    order: Order,
    to_state: OrderState,
    now: datetime,
    reason: str,
    actor_id: int | None = None,
    units_to: UnitsTo = UnitsTo.ON_SALE,
) -> None:
    """Take an order whose row this transaction has locked along one allowed transition, with its event."""
    if not is_allowed(OrderState(order.state), to_state):
        raise TransitionRefused(number=order.number, to_state=to_state)
    Order.objects.filter(pk=order.pk).update(**columns_of(to_state=to_state, now=now, units_to=units_to))
    write_events(
        order_ids=[order.pk],
        from_state=OrderState(order.state),
        to_state=to_state,
        reason=reason,
        actor_id=actor_id,
        now=now,
    )


def lock_order(*, order_id: int) -> Order:
    """Lock an order's row for this transaction, by its primary key as everybody does.

    Two who lock one row by way of two indexes can deadlock. See Note [Locks of the orders].
    """
    return Order.objects.select_for_update().get(pk=order_id)


def columns_of(*, to_state: OrderState, now: datetime, units_to: UnitsTo) -> dict[str, Any]:
    """Return the columns that a transition sets: where the order was waiting, nobody waits any more."""
    columns: dict[str, Any] = {"state": to_state, "payment_begun_at": None}
    if to_state in CLOSED:
        columns |= {"closed_at": now, "units_due_at": now, "units_to": units_to}
    return columns


def write_events(
    *,
    order_ids: Sequence[int],
    from_state: OrderState,
    to_state: OrderState,
    now: datetime,
    reason: str,
    actor_id: int | None = None,
) -> None:
    """Append one event for each order, in the transaction that moves them."""
    OrderEvent.objects.bulk_create(
        OrderEvent(
            order_id=order_id,
            from_state=from_state,
            to_state=to_state,
            reason=reason,
            actor_id=actor_id,
            created_at=now,
        )
        for order_id in order_ids
    )


def units_taken_back(*, numbers: Sequence[str]) -> None:
    """Note that the units of closed orders are back with whoever sold them, in his transaction."""
    Order.objects.filter(number__in=numbers).update(units_due_at=None, units_retry_at=None)


def put_off_units(*, numbers: Sequence[str], until: datetime) -> None:
    """Have closed orders whose units could not be taken back step aside for those behind them."""
    Order.objects.filter(number__in=numbers, units_due_at__isnull=False).update(units_retry_at=until)
