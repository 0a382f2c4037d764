"""Polling: what became of an order number. Redis answers first, MySQL has the last word.

``purchase_status`` is for a thread, ``apurchase_status`` for an event loop; they differ in how they wait.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from django.conf import settings

from orders.selectors import OrderView, order_by_number
from rest.threads import in_thread
from seckill.errors import GateUnavailable, NotPreheated, UnknownOrder
from seckill.gate import durable, gate
from seckill.gate.receipts import Receipt, ReceiptState
from seckill.models import FlashSale, Reservation, Ticket
from seckill.order_numbers import bucket_of
from seckill.states import ReservationState, SaleState


class PurchaseState(StrEnum):
    """Everything a poll may say."""

    QUEUED = "queued"
    CONFIRMED = "confirmed"
    REFUSED = "refused"
    RETURNED = "returned"
    UNKNOWN = "unknown"
    NOT_RESERVED = "not_reserved"


_OF_ROW = {
    ReservationState.SETTLED: PurchaseState.CONFIRMED,
    ReservationState.REFUSED: PurchaseState.REFUSED,
    ReservationState.RETURNED: PurchaseState.RETURNED,
}


# Receipts of these have an order in MySQL.
HAS_ORDER = frozenset({ReceiptState.CONFIRMED, ReceiptState.RETURNED})


@dataclass(frozen=True, kw_only=True)
class PurchaseStatus:
    """The state of one purchase; ``reason`` for refused ones, ``order`` for confirmed and returned ones."""

    order_no: str
    state: PurchaseState
    quantity: int = 0
    reason: str = ""
    order: OrderView | None = None

    @property
    def is_alive(self) -> bool:
        """Whether the buyer holds units by it."""
        return self.state in {PurchaseState.QUEUED, PurchaseState.CONFIRMED}


def purchase_status(*, order_no: str, buyer_id: int) -> PurchaseStatus:
    """Tell the buyer what became of his order number.

    ``unknown`` means that Redis cannot be asked and MySQL has no row yet; ``not_reserved`` that
    there is no trace, so the same ticket may be used again. Raises ``UnknownOrder`` for a number
    that is not the buyer's.
    """
    try:
        receipt = durable.receipt_to_tell(bucket=bucket_of(order_no), order_no=order_no)
    except (NotPreheated, GateUnavailable) as error:
        return _of_mysql(order_no=order_no, buyer_id=buyer_id, error=error)
    if receipt is None:
        return _of_mysql(order_no=order_no, buyer_id=buyer_id, error=None)
    return _of_receipt(order_no=order_no, receipt=receipt, buyer_id=buyer_id)


async def apurchase_status(*, order_no: str, buyer_id: int) -> PurchaseStatus:
    """Do as ``purchase_status``, on an event loop: a thread is taken only by what waits for MySQL or replicas."""
    if settings.DURABLE_REPLICAS:
        return await in_thread(partial(purchase_status, order_no=order_no, buyer_id=buyer_id))
    try:
        receipt = await gate.alook_up(bucket=bucket_of(order_no), order_no=order_no)
    except (NotPreheated, GateUnavailable) as error:
        return await in_thread(partial(_of_mysql, order_no=order_no, buyer_id=buyer_id, error=error))
    if receipt is None:
        return await in_thread(partial(_of_mysql, order_no=order_no, buyer_id=buyer_id, error=None))
    status = partial(_of_receipt, order_no=order_no, receipt=receipt, buyer_id=buyer_id)
    return await in_thread(status) if receipt.state in HAS_ORDER else status()


def _of_mysql(*, order_no: str, buyer_id: int, error: NotPreheated | GateUnavailable | None) -> PurchaseStatus:
    """Answer where Redis has no receipt, or could not be asked, and with which error."""
    # Before the row is looked for: what is archived meanwhile has one.
    is_gate_readable = _is_gate_readable(order_no, error)
    row = Reservation.objects.filter(order_no=order_no).first()
    if row is not None:
        if row.buyer_id != buyer_id:
            raise UnknownOrder
        return status_of_row(row)
    if not Ticket.objects.filter(order_no=order_no, buyer_id=buyer_id).exists():
        raise UnknownOrder
    state = PurchaseState.NOT_RESERVED if is_gate_readable else PurchaseState.UNKNOWN
    return PurchaseStatus(order_no=order_no, state=state)


def _is_gate_readable(order_no: str, error: NotPreheated | GateUnavailable | None) -> bool:
    match error:
        case None:
            return True
        case NotPreheated():
            return not _is_on_sale(order_no)
        case GateUnavailable():
            return _is_archived(order_no)


def _of_receipt(*, order_no: str, receipt: Receipt, buyer_id: int) -> PurchaseStatus:
    if receipt.buyer_id != buyer_id:
        raise UnknownOrder
    return PurchaseStatus(
        order_no=order_no,
        state=PurchaseState(receipt.state.value),
        quantity=receipt.quantity,
        reason=receipt.reason,
        order=order_by_number(number=order_no) if receipt.state in HAS_ORDER else None,
    )


def status_of_row(row: Reservation) -> PurchaseStatus:
    """Tell what MySQL knows of a reservation. The caller has checked who is asking."""
    return PurchaseStatus(
        order_no=row.order_no,
        state=_OF_ROW[ReservationState(row.state)],
        quantity=row.quantity,
        reason=row.reason,
        order=None if row.state == ReservationState.REFUSED else order_by_number(number=row.order_no),
    )


def _is_archived(order_no: str) -> bool:
    """Tell whether MySQL alone answers for the number."""
    pool_id = bucket_of(order_no).pool_id
    return FlashSale.objects.filter(pools=pool_id, state=SaleState.ARCHIVED).exists()


def _is_on_sale(order_no: str) -> bool:
    """Tell whether Redis ought to have the number's bucket."""
    pool_id = bucket_of(order_no).pool_id
    return FlashSale.objects.filter(pools=pool_id, state=SaleState.PREHEATED).exists()
