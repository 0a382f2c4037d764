"""The purchase: the hot path. One signature check, one script call, no SQL for an accepted one.

Only who is refused by one of several buckets costs more (``elsewhere``), and a crowd of them not much.

``purchase`` is for a thread, ``apurchase`` for an event loop. Each step is the same function in both; they differ in
how they wait.
"""

from dataclasses import dataclass, replace
from functools import partial

from django.conf import settings

from metrics import stages
from metrics.stages import Stage
from rest.threads import in_thread
from seckill import wakeups
from seckill.answer_counts import count_answer
from seckill.elsewhere import Seen, memory, units_of_item
from seckill.errors import (
    BadQuantity,
    Busy,
    Conflict,
    Ended,
    GateUnavailable,
    LimitReached,
    NotEnoughLeft,
    NotPreheated,
    NotStarted,
    Paused,
    PriceChanged,
    PurchaseRefused,
    SoldOut,
    TicketExpired,
)
from seckill.gate import durable, gate
from seckill.gate.codes import ReserveCode
from seckill.gate.gate import ReserveQuestion, ReserveReply
from seckill.holdings import live_orders
from seckill.models import FlashSale, Reservation
from seckill.order_numbers import bucket_of
from seckill.shut import shut_items
from seckill.states import SaleState
from seckill.stop_file import stop_file
from seckill.tally import tally
from seckill.tickets import TicketClaims, read_ticket


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """The units are the buyer's; the order follows. A repeat gets the same answer."""

    order_no: str


def purchase(*, ticket: str, quantity: int, is_first: bool = False) -> Accepted:
    """Reserve ``quantity`` units with a ticket, once, however often it is called.

    Raises a ``PurchaseRefused``. After ``GateUnavailable`` the outcome may be unknown, and the
    same ticket may be sent again. Only a call that says that it is the ticket's first may be
    refused without a look at Redis: any other may be the repeat of one that was accepted.
    """
    try:
        claims = _claims(ticket=ticket, is_first=is_first)
        if stop_file.is_there():
            accepted = _accepted_before(claims=claims, quantity=quantity)
        else:
            accepted = reserve(claims=claims, quantity=quantity)
    except PurchaseRefused as refusal:
        count_answer(refusal)
        raise
    count_answer(None)
    return accepted


async def apurchase(*, ticket: str, quantity: int, is_first: bool = False) -> Accepted:
    """Do as ``purchase``, on an event loop: a thread is taken only by what asks more than one script.

    And by everything in durable mode with replicas: who waits for them keeps a connection to himself.
    """
    if settings.DURABLE_REPLICAS:
        return await in_thread(partial(purchase, ticket=ticket, quantity=quantity, is_first=is_first))
    try:
        claims = _claims(ticket=ticket, is_first=is_first)
        if stop_file.is_there():
            accepted = await in_thread(partial(_accepted_before, claims=claims, quantity=quantity))
        else:
            accepted = await _areserve(claims=claims, quantity=quantity)
    except PurchaseRefused as refusal:
        count_answer(refusal)
        raise
    count_answer(None)
    return accepted


def _claims(*, ticket: str, is_first: bool) -> TicketClaims:
    stages.mark(Stage.RECEIVE)
    claims = read_ticket(ticket)
    stages.mark(Stage.TICKET)
    if is_first:
        _require_not_shut(claims)
    return claims


def _accepted_before(*, claims: TicketClaims, quantity: int) -> Accepted:
    """Answer while all sales are stopped: who has a receipt is told so again, nobody gets a new one. Asks no SQL.

    Raises ``Paused``, ``Conflict`` and ``GateUnavailable``.
    """
    try:
        receipt = durable.receipt_to_tell(bucket=bucket_of(claims.order_no), order_no=claims.order_no)
    except NotPreheated as error:
        raise Paused from error
    if receipt is None:
        raise Paused
    if (receipt.buyer_id, receipt.item_id, receipt.quantity) != (claims.buyer_id, claims.item_id, quantity):
        raise Conflict
    return Accepted(order_no=claims.order_no)


def _require_not_shut(claims: TicketClaims) -> None:
    """Refuse what the script has refused to somebody within the last half second; see ``shut``."""
    bucket = bucket_of(claims.order_no)
    code = shut_items.look_up((bucket, claims.item_id))
    if code is not None:
        tally.count(pool_id=bucket.pool_id, item_id=claims.item_id, code=code)
        raise _refusal(code=code, number=0, order_no=claims.order_no)


def reserve(*, claims: TicketClaims, quantity: int) -> Accepted:
    """Reserve by claims that are known to be the shop's own. The one rule, for buyers and for ``honouring``.

    Raises as ``purchase``.
    """
    reply = gate.reserve(**_question(claims=claims, quantity=quantity))
    return _verdict(claims=claims, quantity=quantity, reply=reply)


async def _areserve(*, claims: TicketClaims, quantity: int) -> Accepted:
    """Do as ``reserve``, on an event loop."""
    reply = await gate.areserve(**_question(claims=claims, quantity=quantity))
    seen = memory.look_up(claims.item_id) if reply.buckets > 1 else None
    verdict = partial(_verdict, claims=claims, quantity=quantity, reply=reply, seen=seen)
    has_to_look = reply.buckets > 1 and seen is None
    return await in_thread(verdict) if has_to_look or reply.code in ASKS_MYSQL else verdict()


def _question(*, claims: TicketClaims, quantity: int) -> ReserveQuestion:
    return {
        "bucket": bucket_of(claims.order_no),
        "order_no": claims.order_no,
        "item_id": claims.item_id,
        "buyer_id": claims.buyer_id,
        "limit_key": claims.limit_key,
        "quantity": quantity,
        "price": claims.price,
        "ticket_expires_ms": claims.expires_ms,
    }


def _verdict(*, claims: TicketClaims, quantity: int, reply: ReserveReply, seen: Seen | None = None) -> Accepted:
    """Make the script's reply the shop's. Raises as ``purchase``.

    Asks further only for ``ASKS_MYSQL``, and where one of several buckets has too few units and what all have was not
    ``seen`` a moment ago.
    """
    bucket = bucket_of(claims.order_no)
    if reply.buckets > 1:
        seen = seen or units_of_item(pool_id=bucket.pool_id, item_id=claims.item_id)
        reply = _in_all_buckets(reply=reply, seen=seen, claims=claims, quantity=quantity)
    stages.mark(Stage.REDIS)
    tally.count(pool_id=bucket.pool_id, item_id=claims.item_id, code=reply.code)
    if reply.is_wake_up_wanted:
        wakeups.request(bucket)
    stages.mark(Stage.PUBLISH)
    if reply.code is ReserveCode.RESERVED or reply.code is ReserveCode.ALREADY_YOURS:
        durable.await_replicas(bucket=bucket, has_written=reply.code is ReserveCode.RESERVED)
        return Accepted(order_no=claims.order_no)
    if reply.code in {ReserveCode.NOT_PREHEATED, ReserveCode.ENDED} and _is_known(claims=claims, quantity=quantity):
        return Accepted(order_no=claims.order_no)
    if reply.code is ReserveCode.LIMIT_REACHED:
        orders = live_orders(pool_id=bucket.pool_id, buyer_id=claims.buyer_id)
        raise LimitReached(units_held=reply.number, orders=orders)
    if reply.code is ReserveCode.ENDED or (reply.code is ReserveCode.SOLD_OUT and reply.number == 0):
        shut_items.note((bucket, claims.item_id), reply.code)
    raise _refusal(code=reply.code, number=reply.number, order_no=claims.order_no)


def _in_all_buckets(*, reply: ReserveReply, seen: Seen, claims: TicketClaims, quantity: int) -> ReserveReply:
    """Say what a bucket that has too few units is to answer, in view of the others.

    While they have enough together the buyer is to come again, and units are brought meanwhile. Where all are empty
    the gate is asked once more: another call of the same ticket may have been quicker than the look.
    """
    if seen.units is None:
        return replace(reply, code=ReserveCode.BUSY, number=0)
    if seen.units >= quantity:
        wakeups.request_units(bucket=bucket_of(claims.order_no), item_id=claims.item_id, units=quantity)
        return replace(reply, code=ReserveCode.BUSY, number=0)
    if seen.units == 0 and seen.is_fresh:
        return gate.reserve(**_question(claims=claims, quantity=quantity))
    return replace(reply, number=seen.units)


def _is_known(*, claims: TicketClaims, quantity: int) -> bool:
    """Ask MySQL before anybody who may hold a reservation is sent away.

    Raises ``Conflict`` when he does, and asks for something else now.
    """
    row = Reservation.objects.filter(order_no=claims.order_no).values_list("buyer_id", "item_id", "quantity").first()
    if row is not None and row != (claims.buyer_id, claims.item_id, quantity):
        raise Conflict
    return row is not None


def _refusal(*, code: ReserveCode, number: int, order_no: str) -> PurchaseRefused:
    match code:
        case ReserveCode.SOLD_OUT if number > 0:
            return NotEnoughLeft(units_left=number)
        case ReserveCode.LIMIT_REACHED:
            return LimitReached(units_held=number)
        case ReserveCode.NOT_STARTED:
            return NotStarted(opens_in_ms=number)
        case ReserveCode.NOT_PREHEATED:
            return _missing_bucket(order_no)
        case ReserveCode.SOLD_OUT | ReserveCode.ENDED | ReserveCode.TICKET_EXPIRED:
            return _FINAL[code](order_no)
    return _PLAIN[code]()


def _missing_bucket(order_no: str) -> PurchaseRefused:
    """Tell a lost Redis (an outage) from a sale that is not, or no longer, in Redis."""
    state = FlashSale.objects.filter(pools=bucket_of(order_no).pool_id).values_list("state", flat=True).first()
    if state == SaleState.PREHEATED:
        return GateUnavailable("Redis has lost the bucket")
    return Ended(order_no) if state in {SaleState.ARCHIVING, SaleState.ARCHIVED} else NotPreheated()


# Who may hold a reservation all the same, or is to be told of the orders he has.
ASKS_MYSQL = frozenset({ReserveCode.NOT_PREHEATED, ReserveCode.ENDED, ReserveCode.LIMIT_REACHED})

_FINAL: dict[ReserveCode, type[SoldOut | Ended | TicketExpired]] = {
    ReserveCode.SOLD_OUT: SoldOut,
    ReserveCode.ENDED: Ended,
    ReserveCode.TICKET_EXPIRED: TicketExpired,
}
_PLAIN: dict[ReserveCode, type[PurchaseRefused]] = {
    ReserveCode.PAUSED: Paused,
    ReserveCode.BUSY: Busy,
    ReserveCode.UNAVAILABLE: GateUnavailable,
    ReserveCode.BAD_QUANTITY: BadQuantity,
    ReserveCode.CONFLICT: Conflict,
    ReserveCode.PRICE_CHANGED: PriceChanged,
}
