"""Expiry: unpaid orders whose time is over close, in batches; one bad row never stops the rest.

An order whose payment has begun is not expired here: its provider is asked first (``asking``).
"""

import logging
from collections.abc import Sequence
from datetime import datetime

from django.db import DatabaseError, transaction
from django.db.models import Q

from orders.models import Order
from orders.services.moves import columns_of, write_events
from orders.states import OrderState, UnitsTo

logger = logging.getLogger(__name__)

NOT_PAID = "not paid in time"


def expire_orders(*, now: datetime, batch_size: int) -> int:
    """Expire all unpaid orders whose time is over, batch by batch; return how many.

    Rows that somebody else holds are skipped. When a batch fails, its rows are tried one by one, so
    that one bad row never stops the rest, nor those behind it; a bad one is logged and tried again
    next time.
    """
    due = Order.objects.filter(
        state=OrderState.PENDING_PAYMENT, pay_by_at__lte=now, payment_begun_at__isnull=True
    ).order_by("pay_by_at", "pk")
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
    """Expire those of the orders that nobody holds, with one transaction.

    A payment that began since they were read stands in the locked row itself, so it is seen.
    """
    unpaid = Order.objects.filter(pk__in=order_ids, state=OrderState.PENDING_PAYMENT, payment_begun_at__isnull=True)
    with transaction.atomic(durable=True):
        free = list(unpaid.select_for_update(skip_locked=True).values_list("pk", flat=True))
        _expire(order_ids=free, now=now)
    return len(free)


def _expire(*, order_ids: Sequence[int], now: datetime) -> None:
    columns = columns_of(to_state=OrderState.EXPIRED, now=now, units_to=UnitsTo.ON_SALE)
    expired = Order.objects.filter(pk__in=order_ids).update(**columns)
    if expired != len(order_ids):
        raise DatabaseError(f"{len(order_ids) - expired} of {len(order_ids)} locked orders are gone")
    write_events(
        order_ids=order_ids,
        from_state=OrderState.PENDING_PAYMENT,
        to_state=OrderState.EXPIRED,
        now=now,
        reason=NOT_PAID,
    )
