"""The purchase: the hot path. One signature check, one script call, no SQL for an accepted one."""

from dataclasses import dataclass

from seckill import wakeups
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
from seckill.gate import gate
from seckill.gate.codes import ReserveCode
from seckill.holdings import live_orders
from seckill.models import FlashSale, Reservation
from seckill.order_numbers import bucket_of
from seckill.states import SaleState
from seckill.tally import tally
from seckill.tickets import TicketClaims, read_ticket


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """The units are the buyer's; the order follows. A repeat gets the same answer."""

    order_no: str


def purchase(*, ticket: str, quantity: int) -> Accepted:
    """Reserve ``quantity`` units with a ticket, once, however often it is called.

    Raises a ``PurchaseRefused``. After ``GateUnavailable`` the outcome may be unknown, and the
    same ticket may be sent again.
    """
    return reserve(claims=read_ticket(ticket), quantity=quantity)


def reserve(*, claims: TicketClaims, quantity: int) -> Accepted:
    """Reserve by claims that are known to be the shop's own. The one rule, for buyers and for ``honouring``.

    Raises as ``purchase``.
    """
    bucket = bucket_of(claims.order_no)
    reply = gate.reserve(
        bucket=bucket,
        order_no=claims.order_no,
        item_id=claims.item_id,
        buyer_id=claims.buyer_id,
        limit_key=claims.limit_key,
        quantity=quantity,
        price=claims.price,
        ticket_expires_ms=claims.expires_ms,
    )
    tally.count(pool_id=bucket.pool_id, item_id=claims.item_id, code=reply.code)
    if reply.is_wake_up_wanted:
        wakeups.request(bucket)
    if reply.code in {ReserveCode.RESERVED, ReserveCode.ALREADY_YOURS}:
        return Accepted(order_no=claims.order_no)
    if reply.code in {ReserveCode.NOT_PREHEATED, ReserveCode.ENDED} and _is_known(claims=claims, quantity=quantity):
        return Accepted(order_no=claims.order_no)
    if reply.code is ReserveCode.LIMIT_REACHED:
        orders = live_orders(pool_id=bucket.pool_id, buyer_id=claims.buyer_id)
        raise LimitReached(units_held=reply.number, orders=orders)
    raise _refusal(code=reply.code, number=reply.number, pool_id=bucket.pool_id)


def _is_known(*, claims: TicketClaims, quantity: int) -> bool:
    """Ask MySQL before anybody who may hold a reservation is sent away.

    Raises ``Conflict`` when he does, and asks for something else now.
    """
    row = Reservation.objects.filter(order_no=claims.order_no).values_list("buyer_id", "item_id", "quantity").first()
    if row is not None and row != (claims.buyer_id, claims.item_id, quantity):
        raise Conflict
    return row is not None


def _refusal(*, code: ReserveCode, number: int, pool_id: int) -> PurchaseRefused:
    match code:
        case ReserveCode.SOLD_OUT:
            return NotEnoughLeft(units_left=number) if number > 0 else SoldOut()
        case ReserveCode.LIMIT_REACHED:
            return LimitReached(units_held=number)
        case ReserveCode.NOT_STARTED:
            return NotStarted(opens_in_ms=number)
        case ReserveCode.NOT_PREHEATED:
            return _missing_bucket(pool_id)
        case _:
            return _PLAIN[code]()


def _missing_bucket(pool_id: int) -> PurchaseRefused:
    """Tell a lost Redis (an outage) from a sale that is not, or no longer, in Redis."""
    state = FlashSale.objects.filter(pools=pool_id).values_list("state", flat=True).first()
    if state == SaleState.PREHEATED:
        return GateUnavailable("Redis has lost the bucket")
    return Ended() if state in {SaleState.ARCHIVING, SaleState.ARCHIVED} else NotPreheated()


_PLAIN: dict[ReserveCode, type[PurchaseRefused]] = {
    ReserveCode.ENDED: Ended,
    ReserveCode.PAUSED: Paused,
    ReserveCode.BUSY: Busy,
    ReserveCode.UNAVAILABLE: GateUnavailable,
    ReserveCode.BAD_QUANTITY: BadQuantity,
    ReserveCode.CONFLICT: Conflict,
    ReserveCode.TICKET_EXPIRED: TicketExpired,
    ReserveCode.PRICE_CHANGED: PriceChanged,
}
