"""Receipts: the state of an order number in Redis, for replay and polling."""

from dataclasses import dataclass
from enum import StrEnum

from seckill.errors import GateUnavailable


class ReceiptState(StrEnum):
    """What became of a reservation, as far as Redis knows."""

    QUEUED = "queued"
    CONFIRMED = "confirmed"
    REFUSED = "refused"
    RETURNED = "returned"


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """One receipt; ``reason`` is set for refused ones only."""

    state: ReceiptState
    item_id: int
    quantity: int
    buyer_id: int
    reason: str = ""

    def __str__(self) -> str:
        state = f"{self.state}:{self.reason}" if self.reason else str(self.state)
        return f"{state}|{self.item_id}|{self.quantity}|{self.buyer_id}"


def parse_receipt(text: str) -> Receipt:
    """Read ``state[:reason]|item|quantity|buyer``.

    Raises ``GateUnavailable`` when the text is none: a damaged receipt answers nothing.
    """
    try:
        state, item_id, quantity, buyer_id = text.split("|")
        name, _, reason = state.partition(":")
        return Receipt(
            state=ReceiptState(name),
            item_id=int(item_id),
            quantity=int(quantity),
            buyer_id=int(buyer_id),
            reason=reason,
        )
    except ValueError as error:
        raise GateUnavailable(f"a receipt is damaged: {text!r}") from error
