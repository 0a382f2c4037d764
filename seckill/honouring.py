"""Honouring: money for a closed order takes a unit again, through the gate, as for any buyer.

The closed order stays closed (law 3). A wish gets a number of its own, once; with it the ordinary
reserve script takes the unit, if one is left, the item is on sale and the buyer's limit has room. Once
that reservation is settled the payment moves to its order. Every step may be repeated: the number makes
two reservations one, and the ends are guarded changes in MySQL.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from django.db import DatabaseError, connection, transaction

from orders.errors import OrderError
from orders.selectors import OpenHonour, open_honours
from orders.services import complete_honour, give_number, refuse_honour
from orders.states import HonourRefusal
from seckill.conf import LIMITS
from seckill.errors import (
    Busy,
    Ended,
    GateUnavailable,
    LimitReached,
    NotEnoughLeft,
    NotPreheated,
    NotStarted,
    Paused,
    PurchaseRefused,
    SoldOut,
)
from seckill.models import FlashSale, Reservation, Ticket
from seckill.order_numbers import bucket_of, new_order_number
from seckill.purchase import reserve
from seckill.states import ReservationState, SaleState
from seckill.tickets import TicketClaims
from seckill.turns import only_one

logger = logging.getLogger(__name__)

# The claims of an honour reach the gate at once; they are not kept anywhere.
CLAIMS_LAST = timedelta(hours=1)

WHY_NOT: Mapping[type[PurchaseRefused], HonourRefusal] = {
    SoldOut: HonourRefusal.SOLD_OUT,
    NotEnoughLeft: HonourRefusal.NOT_ENOUGH_LEFT,
    LimitReached: HonourRefusal.LIMIT_REACHED,
    NotStarted: HonourRefusal.NOT_STARTED,
    Ended: HonourRefusal.ENDED,
    Paused: HonourRefusal.PAUSED,
    NotPreheated: HonourRefusal.NOT_ON_SALE,
}


def honour_open(*, clock: Callable[[], datetime]) -> int:
    """Take every open wish one step further; return how many payments pay a new order now.

    What cannot be done at present is left for the next run, and holds up no other.
    """
    with only_one(work="honour") as is_mine:
        if not is_mine:
            return 0
        return sum(_try_to_honour(wish=wish, now=clock()) for wish in open_honours(count_max=LIMITS.batch_size))


def _try_to_honour(*, wish: OpenHonour, now: datetime) -> bool:
    try:
        return _honour(wish=wish, now=now)
    except (GateUnavailable, Busy) as error:
        logger.warning("honour of order %s has to wait: %s", wish.closed_number, error)
    except (DatabaseError, OrderError):
        connection.close_if_unusable_or_obsolete()
        logger.exception("honour of order %s failed, it is tried again", wish.closed_number)
    return False


def _honour(*, wish: OpenHonour, now: datetime) -> bool:
    closed = Reservation.objects.filter(order_no=wish.closed_number).first()
    if closed is None:
        refuse_honour(honour_id=wish.honour_id, reason=HonourRefusal.NO_RESERVATION, now=now)
        return False
    if closed.state != ReservationState.RETURNED or closed.owed_at is not None:
        return False  # Its own unit, and its place in the buyer's limit, are still on their way back.
    number = wish.number or _numbered(wish=wish, closed=closed, now=now)
    is_over = FlashSale.objects.filter(pools=closed.pool_id, state=SaleState.ARCHIVED).exists()
    taken = Reservation.objects.filter(order_no=number).first()  # after the state: an archive leaves nothing queued
    if taken is None and is_over:
        refuse_honour(honour_id=wish.honour_id, reason=HonourRefusal.ENDED, now=now)
        return False
    if taken is None:
        _reserve(wish=wish, closed=closed, number=number, now=now)
        return False
    if taken.state == ReservationState.SETTLED:
        _make_ticket(taken=taken, now=now)
        return complete_honour(honour_id=wish.honour_id, now=now)
    was_refused = taken.state == ReservationState.REFUSED
    reason = HonourRefusal.NOT_SETTLED if was_refused else HonourRefusal.NEW_ORDER_CLOSED
    refuse_honour(honour_id=wish.honour_id, reason=reason, now=now)
    return False


def _numbered(*, wish: OpenHonour, closed: Reservation, now: datetime) -> str:
    """Commit the wish's number before anything is reserved with it."""
    number = new_order_number(bucket_of(closed.order_no))
    with transaction.atomic(durable=True):
        if not give_number(honour_id=wish.honour_id, number=number, now=now):
            raise GateUnavailable("somebody else has numbered the wish, or ended it")
    return number


def _reserve(*, wish: OpenHonour, closed: Reservation, number: str, now: datetime) -> None:
    claims = TicketClaims(
        order_no=number,
        item_id=closed.item_id,
        buyer_id=closed.buyer_id,
        limit_key=closed.limit_key,
        price=str(closed.unit_price),
        expires_ms=int((now + CLAIMS_LAST).timestamp() * 1000),
    )
    try:
        reserve(claims=claims, quantity=closed.quantity)
    except (GateUnavailable, Busy):
        raise
    except PurchaseRefused as refusal:
        reason = WHY_NOT.get(type(refusal), HonourRefusal.OTHER)
        refuse_honour(honour_id=wish.honour_id, reason=reason, now=now)


def _make_ticket(*, taken: Reservation, now: datetime) -> None:
    """Write the row that lets the buyer's own pages find what he has; once."""
    Ticket.objects.get_or_create(
        order_no=taken.order_no,
        defaults={
            "pool_id": taken.pool_id,
            "item_id": taken.item_id,
            "buyer_id": taken.buyer_id,
            "limit_key": taken.limit_key,
            "issued_at": now,
        },
    )
