"""Queue entries: what ``reserve.lua`` hands over to settlement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

# As in prelude.lua: what is larger is a hand's work, and would have every gate after it look damaged.
SEQ_MAX = 1_000_000_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueEntry:
    """One reservation that MySQL may not have yet."""

    stream_id: str
    order_no: str
    item_id: int
    buyer_id: int
    limit_key: str
    quantity: int
    price: Decimal
    epoch: int
    seq: int


@dataclass(frozen=True, kw_only=True, slots=True)
class BadEntry:
    """An entry that cannot be read; ``fields`` as they stand."""

    stream_id: str
    fields: Mapping[str, str]
    error: str


def raw_fields(entry: QueueEntry) -> dict[str, str]:
    """An entry as it stood in the queue, so that ``parse_entry`` can read it again."""
    return {
        "order": entry.order_no,
        "item": str(entry.item_id),
        "buyer": str(entry.buyer_id),
        "key": entry.limit_key,
        "quantity": str(entry.quantity),
        "price": str(entry.price),
        "epoch": str(entry.epoch),
        "seq": str(entry.seq),
    }


def to_text(raw: bytes | str | int) -> str:
    """Decode what Redis answered; bytes that are no UTF-8 stay visible as escapes."""
    return raw.decode(errors="backslashreplace") if isinstance(raw, bytes) else str(raw)


def parse_entry(raw: Sequence[Any]) -> QueueEntry | BadEntry:
    """Read one XRANGE row; what cannot be read comes back as a ``BadEntry``."""
    stream_id = to_text(raw[0])
    texts = [to_text(part) for part in raw[1]]
    fields = dict(zip(texts[::2], texts[1::2], strict=False))
    try:
        entry = QueueEntry(
            stream_id=stream_id,
            order_no=fields["order"],
            item_id=int(fields["item"]),
            buyer_id=int(fields["buyer"]),
            limit_key=fields["key"],
            quantity=int(fields["quantity"]),
            price=Decimal(fields["price"]),
            epoch=int(fields["epoch"]),
            seq=int(fields["seq"]),
        )
    except (KeyError, ValueError, InvalidOperation) as error:
        return BadEntry(stream_id=stream_id, fields=fields, error=repr(error))
    if entry.quantity < 1 or not 1 <= entry.seq <= SEQ_MAX or not entry.order_no or not entry.price.is_finite():
        return BadEntry(stream_id=stream_id, fields=fields, error="a number is out of range")
    return entry
