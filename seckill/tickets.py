"""Tickets: the signed right to try once, issued before the rush, checked by CPU alone.

A ticket is authentication, idempotency key and order number in one. It is a row in MySQL, so that
open ones can be listed, and it never stands in a URL or a log.
"""

import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.contrib.auth.models import AbstractBaseUser
from django.core.signing import BadSignature, Signer

from orders.selectors import OrderView, order_by_number
from seckill.conf import LIMITS
from seckill.eligibility import first_denial, limit_key
from seckill.errors import Ended, LimitReached, NotPreheated, TicketDenied, TicketInvalid, UnknownItem
from seckill.gate.keys import BucketRef
from seckill.models import Bucket, Reservation, SaleItem, Ticket
from seckill.order_numbers import new_order_number
from seckill.polling import PurchaseState, PurchaseStatus, purchase_status
from seckill.states import ReservationState, SalePhase, SaleState, sale_phase

TICKET_LENGTH_MAX = 600


@dataclass(frozen=True, kw_only=True, slots=True)
class TicketClaims:
    """What a ticket says, once its signature holds. The expiry bars a new reservation only."""

    order_no: str
    item_id: int
    buyer_id: int
    limit_key: str
    price: str
    expires_ms: int


@dataclass(frozen=True, kw_only=True)
class IssuedTicket:
    """A ticket for a buyer to use."""

    ticket: str
    order_no: str
    expires_at: datetime
    is_new: bool


@dataclass(frozen=True, kw_only=True)
class HeldReservation:
    """What the buyer already has instead of a new ticket."""

    status: PurchaseStatus
    order: OrderView | None
    may_buy_more: bool


class Wish(StrEnum):
    """What a buyer asks the ticket endpoint for."""

    FIRST = "first"
    ANOTHER = "another"


def read_ticket(text: str) -> TicketClaims:
    """Check the signature and return what the ticket says.

    Raises ``TicketInvalid``; costs no SQL and no Redis.
    """
    if len(text) > TICKET_LENGTH_MAX:
        raise TicketInvalid
    try:
        order_no, item_id, buyer_id, key, price, expires_ms = _signer().unsign_object(text)
    except (BadSignature, ValueError) as error:
        raise TicketInvalid from error
    return TicketClaims(
        order_no=order_no, item_id=item_id, buyer_id=buyer_id, limit_key=key, price=price, expires_ms=expires_ms
    )


def sign_ticket(*, order_no: str, item: SaleItem, buyer_id: int, key: str) -> str:
    """Sign a ticket for an item whose pool and sale are loaded."""
    return _signer().sign_object(
        [order_no, item.pk, buyer_id, key, str(item.price), int(ticket_end(item=item).timestamp() * 1000)]
    )


def ticket_end(*, item: SaleItem) -> datetime:
    """Return the instant from which an unused ticket reserves nothing any more."""
    return item.pool.sale.closes_at + timedelta(seconds=LIMITS.ticket_grace_seconds)


def ticket_for(*, buyer: AbstractBaseUser, item_id: int, wish: Wish, now: datetime) -> IssuedTicket | HeldReservation:
    """Give the buyer a ticket for an item, or what he has already reserved in its pool.

    An unused ticket is given again; after a refused or returned one there is a new number.
    Raises ``UnknownItem``, ``NotPreheated``, ``Ended``, ``TicketDenied``, ``LimitReached``.
    """
    item = _item_on_sale(item_id=item_id, now=now)
    denied = first_denial(buyer=buyer, item=item, now=now)
    if denied is not None:
        raise TicketDenied(reason=denied.reason, until=denied.until)
    key = limit_key(buyer=buyer, item=item)
    last = Ticket.objects.filter(pool_id=item.pool_id, buyer_id=buyer.pk).order_by("-pk").first()
    if last is not None:
        status = purchase_status(order_no=last.order_no, buyer_id=buyer.pk)
        if status.state in {PurchaseState.NOT_RESERVED, PurchaseState.UNKNOWN} and last.item_id == item.pk:
            return _issued(order_no=last.order_no, item=item, buyer_id=buyer.pk, key=last.limit_key, is_new=False)
        if status.is_alive:
            room = item.pool.limit_per_buyer - _units_held(pool_id=item.pool_id, key=key, status=status)
            if wish is Wish.FIRST:
                order = order_by_number(number=last.order_no)
                return HeldReservation(status=status, order=order, may_buy_more=room > 0)
            if room <= 0:
                raise LimitReached(units_held=item.pool.limit_per_buyer - room)
    return new_ticket(item=item, buyer_id=buyer.pk, key=key, now=now)


def new_ticket(*, item: SaleItem, buyer_id: int, key: str, now: datetime) -> IssuedTicket:
    """Write and sign a ticket with a number of its own."""
    buckets = Bucket.objects.filter(pool_id=item.pool_id).count()
    order_no = new_order_number(bucket_for(pool_id=item.pool_id, key=key, buckets=buckets))
    Ticket.objects.create(
        order_no=order_no, pool_id=item.pool_id, item_id=item.pk, buyer_id=buyer_id, limit_key=key, issued_at=now
    )
    return _issued(order_no=order_no, item=item, buyer_id=buyer_id, key=key, is_new=True)


def bucket_for(*, pool_id: int, key: str, buckets: int) -> BucketRef:
    """Return the bucket of a limit key: a stable hash, so that the limit is exact in one place."""
    return BucketRef(pool_id=pool_id, number=zlib.crc32(key.encode()) % max(1, buckets))


def _item_on_sale(*, item_id: int, now: datetime) -> SaleItem:
    item = SaleItem.objects.select_related("pool__sale").filter(pk=item_id).first()
    if item is None or item.pool.sale.state == SaleState.DRAFT:
        raise UnknownItem
    sale = item.pool.sale
    phase = sale_phase(state=SaleState(sale.state), opens_at=sale.opens_at, closes_at=sale.closes_at, now=now)
    if phase is SalePhase.SCHEDULED:
        raise NotPreheated
    if phase not in {SalePhase.PREHEATED, SalePhase.LIVE}:
        raise Ended
    return item


def _issued(*, order_no: str, item: SaleItem, buyer_id: int, key: str, is_new: bool) -> IssuedTicket:
    return IssuedTicket(
        ticket=sign_ticket(order_no=order_no, item=item, buyer_id=buyer_id, key=key),
        order_no=order_no,
        expires_at=ticket_end(item=item),
        is_new=is_new,
    )


def _units_held(*, pool_id: int, key: str, status: PurchaseStatus) -> int:
    """Units the key holds as far as MySQL knows, and the last purchase where only Redis knows it."""
    rows = Reservation.objects.filter(pool_id=pool_id, limit_key=key, state=ReservationState.SETTLED)
    settled = sum(rows.values_list("quantity", flat=True))
    return settled + (status.quantity if status.state is PurchaseState.QUEUED else 0)


def _signer() -> Signer:
    return Signer(salt="seckill.ticket")
