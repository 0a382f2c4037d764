"""Tickets: the signed right to try once, issued before the rush, checked by CPU alone.

A ticket is authentication, idempotency key and order number in one. It is a row in MySQL, so that
open ones can be listed, and it never stands in a URL or a log.
"""

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import msgspec
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import IntegrityError, transaction

from orders.selectors import OrderView, order_by_number
from seckill.challenges import require_proof
from seckill.conf import LIMITS
from seckill.eligibility import first_denial, limit_key
from seckill.errors import (
    Ended,
    GateUnavailable,
    LimitReached,
    NotPreheated,
    TicketDenied,
    TicketInvalid,
    UnknownItem,
)
from seckill.gate import gate
from seckill.holdings import live_orders
from seckill.models import Reservation, SaleItem, Ticket
from seckill.order_numbers import bucket_of, new_order_number
from seckill.placing import bucket_count, place_of
from seckill.polling import PurchaseState, PurchaseStatus, purchase_status
from seckill.states import ReservationState, SalePhase, SaleState, sale_phase

TICKET_LENGTH_MAX = 600


class TicketClaims(NamedTuple):
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


_decode_claims = msgspec.json.Decoder(TicketClaims).decode


def read_ticket(text: str) -> TicketClaims:
    """Check the signature and return what the ticket says.

    Raises ``TicketInvalid``; costs no SQL and no Redis.
    """
    told, _, signature = text.rpartition(":")
    if len(text) > TICKET_LENGTH_MAX or not _is_signed(told, signature):
        raise TicketInvalid
    return _decode_claims(_from_base64(told))


def sign_ticket(*, order_no: str, item: SaleItem, buyer_id: int, key: str) -> str:
    """Sign a ticket for an item whose pool and sale are loaded."""
    claims = TicketClaims(
        order_no=order_no,
        item_id=item.pk,
        buyer_id=buyer_id,
        limit_key=key,
        price=str(item.price),
        expires_ms=int(ticket_end(item=item).timestamp() * 1000),
    )
    told = _to_base64(json.dumps(claims, separators=(",", ":")).encode())
    return f"{told}:{_signature(told, _signing_keys(settings.SECRET_KEY)[0])}"


def ticket_end(*, item: SaleItem) -> datetime:
    """Return the instant from which an unused ticket reserves nothing any more."""
    return item.pool.sale.closes_at + timedelta(seconds=LIMITS.ticket_grace_seconds)


def ticket_for(
    *, buyer: AbstractBaseUser, item_id: int, wish: Wish, now: datetime, proof: str = ""
) -> IssuedTicket | HeldReservation:
    """Give the buyer a ticket for an item, or what he has already reserved in its pool.

    An unused ticket is given again; after a refused or returned one there is a new number. Who
    holds a reservation is told so also after the end. Raises ``UnknownItem``, ``NotPreheated``,
    ``Ended``, ``TicketDenied``, ``LimitReached``, and for a new one of a sale with challenges what
    ``require_proof`` raises of ``proof``.
    """
    item = item_with_sale(item_id=item_id)
    last = Ticket.objects.filter(pool_id=item.pool_id, buyer_id=buyer.pk).order_by("-pk").first()
    status = None if last is None else purchase_status(order_no=last.order_no, buyer_id=buyer.pk)
    room = _room(item=item, ticket=last)
    if status is not None and status.is_alive and (wish is Wish.FIRST or not _is_open(item=item, now=now)):
        order = order_by_number(number=status.order_no)
        return HeldReservation(status=status, order=order, may_buy_more=room > 0 and _is_open(item=item, now=now))
    if not _is_open(item=item, now=now) and (held := _held_before(item=item, buyer=buyer)) is not None:
        return held
    _require_open(item=item, now=now)
    denied = first_denial(buyer=buyer, item=item, now=now)
    if denied is not None:
        raise TicketDenied(reason=denied.reason, until=denied.until)
    if status is not None and status.is_alive and room <= 0:
        raise LimitReached(
            units_held=item.pool.limit_per_buyer - room,
            orders=live_orders(pool_id=item.pool_id, buyer_id=buyer.pk),
        )
    return _open_ticket(item=item, buyer=buyer, proof=proof, now=now)


def _held_before(*, item: SaleItem, buyer: AbstractBaseUser) -> HeldReservation | None:
    """Return what an older ticket than the last one has bought in the pool, if anything."""
    tickets = Ticket.objects.filter(pool_id=item.pool_id, buyer_id=buyer.pk).order_by("-pk")
    for order_no in tickets.values_list("order_no", flat=True)[: LIMITS.tickets_looked_at_max]:
        status = purchase_status(order_no=order_no, buyer_id=buyer.pk)
        if status.is_alive:
            return HeldReservation(status=status, order=order_by_number(number=order_no), may_buy_more=False)
    return None


def _open_ticket(*, item: SaleItem, buyer: AbstractBaseUser, proof: str, now: datetime) -> IssuedTicket:
    """Return the buyer's unused ticket for the item, or a new one in place of a used one."""
    open_key = f"{buyer.pk}:{item.pk}"
    current = Ticket.objects.filter(open_key=open_key).first()
    if current is not None and current.pool_id == item.pool_id and _is_unused(current):
        return _issued(ticket=current, item=item, is_new=False)
    if item.pool.sale.has_challenge:
        require_proof(proof=proof, item_id=item.pk, buyer_id=buyer.pk)
    key = limit_key(buyer=buyer, item=item)
    try:
        with transaction.atomic():
            if current is not None:
                Ticket.objects.filter(pk=current.pk).update(open_key=None)
            made = new_ticket(item=item, buyer_id=buyer.pk, key=key, open_key=open_key, now=now)
    except IntegrityError:
        # A second click was quicker: both get the same ticket.
        return _issued(ticket=Ticket.objects.get(open_key=open_key), item=item, is_new=False)
    return _issued(ticket=made, item=item, is_new=True)


def new_ticket(*, item: SaleItem, buyer_id: int, key: str, open_key: str | None, now: datetime) -> Ticket:
    """Write a ticket with a number of its own. Raises ``IntegrityError`` when another has the open key.

    Its row holds the pool's still from its insert on, as every row with a foreign key does in InnoDB. So if the number
    of buckets is then what it was, no pool grows until this ticket, and with it its key's place, is there for all.
    """
    while True:
        with transaction.atomic():
            buckets = bucket_count(item.pool_id)
            ticket = Ticket.objects.create(
                order_no=new_order_number(place_of(pool_id=item.pool_id, key=key)),
                pool_id=item.pool_id,
                item_id=item.pk,
                buyer_id=buyer_id,
                limit_key=key,
                open_key=open_key,
                issued_at=now,
            )
            if bucket_count(item.pool_id) == buckets:
                return ticket
            transaction.set_rollback(True)


def item_with_sale(*, item_id: int) -> SaleItem:
    """Return an item of a sale that is no draft any more. Raises ``UnknownItem``."""
    item = SaleItem.objects.select_related("pool__sale").filter(pk=item_id).first()
    if item is None or item.pool.sale.state == SaleState.DRAFT:
        raise UnknownItem
    return item


def _phase(*, item: SaleItem, now: datetime) -> SalePhase:
    sale = item.pool.sale
    return sale_phase(state=SaleState(sale.state), opens_at=sale.opens_at, closes_at=sale.closes_at, now=now)


def _is_open(*, item: SaleItem, now: datetime) -> bool:
    return _phase(item=item, now=now) in {SalePhase.PREHEATED, SalePhase.LIVE}


def _require_open(*, item: SaleItem, now: datetime) -> None:
    if _phase(item=item, now=now) is SalePhase.SCHEDULED:
        raise NotPreheated
    if not _is_open(item=item, now=now):
        raise Ended


def _is_unused(ticket: Ticket) -> bool:
    status = purchase_status(order_no=ticket.order_no, buyer_id=ticket.buyer_id)
    return status.state in {PurchaseState.NOT_RESERVED, PurchaseState.UNKNOWN}


def _issued(*, ticket: Ticket, item: SaleItem, is_new: bool) -> IssuedTicket:
    signed = sign_ticket(order_no=ticket.order_no, item=item, buyer_id=ticket.buyer_id, key=ticket.limit_key)
    return IssuedTicket(ticket=signed, order_no=ticket.order_no, expires_at=ticket_end(item=item), is_new=is_new)


def _room(*, item: SaleItem, ticket: Ticket | None) -> int:
    """Units the buyer may still have in the pool: as Redis counts them, else as far as MySQL knows."""
    if ticket is None:
        return item.pool.limit_per_buyer
    try:
        held = gate.units_held(bucket=bucket_of(ticket.order_no), limit_key=ticket.limit_key)
    except (GateUnavailable, NotPreheated):
        rows = Reservation.objects.filter(
            pool_id=item.pool_id, limit_key=ticket.limit_key, state=ReservationState.SETTLED
        )
        held = sum(rows.values_list("quantity", flat=True))
    return item.pool.limit_per_buyer - held


def _is_signed(told: str, signature: str) -> bool:
    """Tell whether the shop's secret has signed it, or one of those it had before."""
    if not (told.isascii() and signature.isascii()):
        return False
    keys = _signing_keys(settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return any(hmac.compare_digest(_signature(told, key), signature) for key in keys)


def _signature(told: str, key: bytes) -> str:
    """HMAC-SHA256 in base64 for URLs; in one call, which takes a third of the time of Django's ``Signer``."""
    return _to_base64(hmac.digest(key, told.encode(), "sha256"))


@lru_cache
def _signing_keys(*secrets: str) -> tuple[bytes, ...]:
    """One key per secret, for tickets alone: derived as ``django.core.signing`` derives its own."""
    return tuple(hashlib.sha256(b"seckill.ticketsigner" + secret.encode()).digest() for secret in secrets)


def _to_base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _from_base64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
