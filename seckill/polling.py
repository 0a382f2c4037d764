"""Polling: what became of an order number. Redis answers first, MySQL has the last word."""

from dataclasses import dataclass
from enum import StrEnum

from orders.selectors import OrderView, order_by_number
from seckill.errors import GateUnavailable, NotPreheated, UnknownOrder
from seckill.gate import durable
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
    is_gate_readable = True
    receipt: Receipt | None = None
    try:
        receipt = durable.receipt_to_tell(bucket=bucket_of(order_no), order_no=order_no)
    except NotPreheated:
        is_gate_readable = not _is_on_sale(order_no)
    except GateUnavailable:
        is_gate_readable = _is_archived(order_no)
    if receipt is not None:
        return _of_receipt(order_no=order_no, receipt=receipt, buyer_id=buyer_id)
    row = Reservation.objects.filter(order_no=order_no).first()
    if row is not None:
        if row.buyer_id != buyer_id:
            raise UnknownOrder
        return status_of_row(row)
    if not Ticket.objects.filter(order_no=order_no, buyer_id=buyer_id).exists():
        raise UnknownOrder
    state = PurchaseState.NOT_RESERVED if is_gate_readable else PurchaseState.UNKNOWN
    return PurchaseStatus(order_no=order_no, state=state)


def _of_receipt(*, order_no: str, receipt: Receipt, buyer_id: int) -> PurchaseStatus:
    if receipt.buyer_id != buyer_id:
        raise UnknownOrder
    has_order = receipt.state in {ReceiptState.CONFIRMED, ReceiptState.RETURNED}
    return PurchaseStatus(
        order_no=order_no,
        state=PurchaseState(receipt.state.value),
        quantity=receipt.quantity,
        reason=receipt.reason,
        order=order_by_number(number=order_no) if has_order else None,
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
