"""The gate's operations, typed. Each is one script call, and each is safe to repeat.

All raise ``GateUnavailable`` when Redis is away, was restarted since it was checked, or holds a
damaged bucket.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypedDict, Unpack

from metrics import stages
from metrics.stages import Stage
from seckill.errors import BucketUnsound, GateUnavailable, NotPreheated
from seckill.gate.codes import ReserveCode
from seckill.gate.connection import TIMED, Script
from seckill.gate.entries import BadEntry, QueueEntry, parse_entry, to_text
from seckill.gate.keys import BucketRef
from seckill.gate.pipeline import acall
from seckill.gate.receipts import Receipt, parse_receipt

_reserve = Script("reserve")
# The same text for the few calls that are timed, so that the others do nothing for it.
_timed_reserve = Script("reserve", around=TIMED)
_look_up = Script("look_up")
_snapshot = Script("snapshot")
_confirm = Script("confirm")
_release = Script("release")
_drop = Script("drop")
_restock = Script("restock")
_repair = Script("repair")
_pause = Script("pause")
_resume = Script("resume")


class PauseMark(StrEnum):
    """What stands at a paused item in the gate; ``STOP`` where MySQL has to be told of it yet."""

    KNOWN = "1"
    STOP = "stop"


class ReserveQuestion(TypedDict):
    """What a purchase asks for; ``ticket_expires_ms`` as Redis tells the time."""

    bucket: BucketRef
    order_no: str
    item_id: int
    buyer_id: int
    limit_key: str
    quantity: int
    price: Decimal | str
    ticket_expires_ms: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ReserveReply:
    """The script's verdict; ``number`` depends on the code (units left, units held, ms until opening).

    ``buckets`` is how many the pool has, told with ``SOLD_OUT``: the others may have what this one has not.
    """

    code: ReserveCode
    number: int
    is_wake_up_wanted: bool
    buckets: int = 1


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A bucket at one instant. ``left`` and ``queued`` are units per item, ``entries`` the head of the queue.

    ``stopped_items`` are the paused ones that MySQL may not know of. ``receipts`` leaves out missing and damaged
    ones; no script gives anything back for either.
    """

    epoch: int
    seq: int
    settled_seq: int
    adj_no: int
    adj_applied: int
    window_no: int
    buckets: int
    opens_ms: int
    closes_ms: int
    limit: int
    repair_no: int
    frozen_by: str
    is_sealed: bool
    paused_items: frozenset[int]
    stopped_items: frozenset[int]
    left: Mapping[int, int]
    queued: Mapping[int, int]
    prices: Mapping[int, str]
    queue_length: int
    entries: Sequence[QueueEntry | BadEntry]
    receipts: Mapping[str, Receipt]

    @property
    def is_frozen(self) -> bool:
        """Whether the system has closed the gate, whatever an operator may have paused."""
        return self.frozen_by != ""


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """A queue entry whose reservation is settled in MySQL."""

    entry: QueueEntry


@dataclass(frozen=True, kw_only=True)
class Release:
    """A queue entry whose tombstone is written, with what it owes to Redis."""

    entry: QueueEntry
    units_owed: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Restock:
    """A returned reservation that Redis is owed; ``units_back`` is 0 where the units left the sale."""

    order_no: str
    item_id: int
    quantity: int
    limit_key: str
    units_back: int


def reserve(**asked: Unpack[ReserveQuestion]) -> ReserveReply:
    """Try to reserve, in one round trip. After ``GateUnavailable`` the outcome may be unknown."""
    return _reserve_reply(_reserve_script()(asked["bucket"].keys, *_reserve_args(asked)))


async def areserve(**asked: Unpack[ReserveQuestion]) -> ReserveReply:
    """Do as ``reserve``, on an event loop."""
    return _reserve_reply(await acall(_reserve_script(), asked["bucket"].keys, _reserve_args(asked)))


def _reserve_args(asked: ReserveQuestion) -> tuple[str | int, ...]:
    return (
        asked["order_no"],
        asked["item_id"],
        asked["buyer_id"],
        asked["limit_key"],
        asked["quantity"],
        str(asked["price"]),
        asked["ticket_expires_ms"],
    )


def _reserve_script() -> Script:
    return _timed_reserve if stages.is_watched() else _reserve


def _reserve_reply(reply: Any) -> ReserveReply:
    try:
        code, number, wake, *microseconds = reply
        if microseconds:
            stages.add(Stage.SCRIPT, microseconds[0] / 1_000_000)
        if code == ReserveCode.SOLD_OUT:
            return ReserveReply(code=ReserveCode.SOLD_OUT, number=number, is_wake_up_wanted=False, buckets=wake)
        return ReserveReply(code=ReserveCode(code), number=number, is_wake_up_wanted=wake == 1)
    except (TypeError, ValueError) as error:
        raise GateUnavailable(f"reserve answered {reply!r}") from error


def look_up(*, bucket: BucketRef, order_no: str) -> Receipt | None:
    """The receipt of an order number, or None when the gate is sound and has none.

    Raises ``NotPreheated`` when nothing of the bucket is there.
    """
    return _receipt_of(_look_up(bucket.keys, order_no, ""))


async def alook_up(*, bucket: BucketRef, order_no: str) -> Receipt | None:
    """Do as ``look_up``, on an event loop."""
    return _receipt_of(await acall(_look_up, bucket.keys, (order_no, "")))


def _receipt_of(reply: Any) -> Receipt | None:
    _require(reply[0])
    return parse_receipt(to_text(reply[1])) if reply[1] else None


def units_held(*, bucket: BucketRef, limit_key: str) -> int:
    """Units a limit key holds in the bucket's pool. Raises ``NotPreheated`` when nothing of the bucket is there."""
    reply = _look_up(bucket.keys, "", limit_key)
    _require(reply[0])
    return int(reply[2])


def snapshot(*, bucket: BucketRef, entries_max: int, order_numbers: Sequence[str] = ()) -> Snapshot:
    """All numbers, the first ``entries_max`` queue entries and the receipts asked for, at one instant."""
    reply = _snapshot(bucket.keys, entries_max, *order_numbers)
    _require(reply[0])
    _, gate_list, stock_list, queue_length, raw_entries, raw_receipts = reply
    gate, stock = _to_dict(gate_list), _to_dict(stock_list)
    try:
        return Snapshot(
            epoch=int(gate["epoch"]),
            seq=int(gate["seq"]),
            settled_seq=int(gate["settled_seq"]),
            adj_no=int(gate["adj_no"]),
            adj_applied=int(gate.get("adj_applied", "0")),
            window_no=int(gate.get("window_no", "0")),
            buckets=int(gate.get("buckets", "1")),
            opens_ms=int(gate["opens_ms"]),
            closes_ms=int(gate["closes_ms"]),
            limit=int(gate["limit"]),
            repair_no=int(gate["repair_no"]),
            frozen_by=gate.get("frozen", ""),
            is_sealed="sealed" in gate,
            paused_items=paused_in(gate),
            stopped_items=stopped_in(gate),
            left=_units(stock, ":left"),
            queued=_units(stock, ":queued"),
            prices={int(name.removesuffix(":price")): stock[name] for name in stock if name.endswith(":price")},
            queue_length=queue_length,
            entries=[parse_entry(raw) for raw in raw_entries],
            receipts=_receipts(order_numbers=order_numbers, raw_receipts=raw_receipts),
        )
    except (KeyError, ValueError) as error:
        raise BucketUnsound(f"bucket {bucket} is damaged: {error!r}") from error


def paused_in(gate: Mapping[str, str]) -> frozenset[int]:
    """Return the items that are paused by a gate's fields."""
    return frozenset(int(name.removeprefix("paused:")) for name in gate if name.startswith("paused:"))


def stopped_in(gate: Mapping[str, str]) -> frozenset[int]:
    """Return those of them that MySQL may not know of."""
    return paused_in({name: mark for name, mark in gate.items() if mark == PauseMark.STOP})


def confirm(*, bucket: BucketRef, epoch: int, settled_seq: int, confirmations: Sequence[Confirmation]) -> int:
    """Tell Redis that MySQL has these; return how many were still in the queue."""
    args: list[str | int] = [epoch, settled_seq]
    for done in confirmations:
        args += [done.entry.stream_id, done.entry.order_no, done.entry.item_id, done.entry.quantity]
    return _counted(_confirm(bucket.keys, *args))


def release(*, bucket: BucketRef, epoch: int, settled_seq: int, releases: Sequence[Release]) -> int:
    """Give back what refused entries are owed; return how many were still in the queue."""
    args: list[str | int] = [epoch, settled_seq]
    for done in releases:
        entry = done.entry
        args += [entry.stream_id, entry.order_no, entry.item_id, entry.quantity, entry.limit_key]
        args += [done.units_owed, done.reason]
    return _counted(_release(bucket.keys, *args))


def restock(*, bucket: BucketRef, epoch: int, restocks: Sequence[Restock]) -> list[str]:
    """Make returned units buyable and their buyers free; return the order numbers that are done.

    The others are still queued in Redis: they are to be confirmed first and tried again.
    """
    args: list[str | int] = [epoch]
    for due in restocks:
        args += [due.order_no, due.item_id, due.quantity, due.limit_key, due.units_back]
    code, *done = _restock(bucket.keys, *args)
    _require(code)
    return [due.order_no for due, is_done in zip(restocks, done, strict=True) if is_done]


def repair(
    *, bucket: BucketRef, epoch: int, seen_repair_no: int, deltas: Mapping[int, int]
) -> Mapping[int, int] | None:
    """Change the units left of items by deltas, never below zero; return what was applied.

    None when another repair came first. Raises ``BucketUnsound`` when the bucket is frozen or of
    another epoch.
    """
    args: list[str | int] = [epoch, seen_repair_no]
    for item_id, delta in deltas.items():
        args += [item_id, delta]
    code, *applied = _repair(bucket.keys, *args)
    _require(code)
    return dict(zip(deltas, applied, strict=True)) if code == 1 else None


def drop(*, bucket: BucketRef, epoch: int, stream_ids: Sequence[str]) -> int:
    """Take unreadable entries, which MySQL keeps as dead letters, out of the queue."""
    return _counted(_drop(bucket.keys, epoch, *stream_ids))


def pause(*, bucket: BucketRef, item_id: int, mark: PauseMark = PauseMark.KNOWN) -> bool:
    """Refuse new reservations of an item; False when there is no gate."""
    return bool(_pause(bucket.keys, item_id, mark))


def resume(*, bucket: BucketRef, item_id: int) -> bool:
    """Take a pause back; False when there is no gate. A frozen gate stays frozen."""
    return bool(_resume(bucket.keys, item_id))


def _require(code: int) -> None:
    if code == ReserveCode.NOT_PREHEATED:
        raise NotPreheated
    if code == ReserveCode.UNAVAILABLE:
        raise BucketUnsound("the bucket is frozen, damaged, or the server was restarted since it was checked")


def _counted(reply: int) -> int:
    if reply < 0:
        raise BucketUnsound("the bucket is missing, damaged, or of another epoch")
    return reply


def _to_dict(flat: Sequence[Any]) -> dict[str, str]:
    texts = [to_text(part) for part in flat]
    return dict(zip(texts[::2], texts[1::2], strict=True))


def _receipts(*, order_numbers: Sequence[str], raw_receipts: Sequence[Any]) -> dict[str, Receipt]:
    found = {}
    for order_no, raw in zip(order_numbers, raw_receipts, strict=True):
        with suppress(GateUnavailable):
            found[order_no] = parse_receipt(to_text(raw))
    return found


def _units(stock: Mapping[str, str], suffix: str) -> dict[int, int]:
    return {int(name.removesuffix(suffix)): int(value) for name, value in stock.items() if name.endswith(suffix)}
