"""The gate's members, one by one: marks of limit keys and receipts of order numbers, looked at and mended."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from redis.exceptions import RedisError

from seckill.errors import BucketUnsound, GateUnavailable, NotPreheated
from seckill.gate.codes import ReserveCode
from seckill.gate.connection import Script, raw_client
from seckill.gate.entries import BadEntry, QueueEntry, parse_entry, to_text
from seckill.gate.keys import BucketRef
from seckill.gate.staging import SENTINEL

_compare = Script("compare")
_mend = Script("mend")


class Part(Enum):
    """The two hashes that have a field per member, by their place among a bucket's keys."""

    BUYERS = 2
    RECEIPTS = 3


@dataclass(frozen=True, kw_only=True)
class MembersSeen:
    """Members at one instant: their texts as they stand, missing ones left out, and the head of the queue."""

    epoch: int
    settled_seq: int
    mend_no: str
    is_frozen: bool
    queue_length: int
    entries: Sequence[QueueEntry | BadEntry]
    marks: Mapping[str, bytes]
    receipts: Mapping[str, bytes]

    @property
    def is_queue_known(self) -> bool:
        """Whether all of the queue was read and understood."""
        return self.queue_length <= len(self.entries) and not any(isinstance(e, BadEntry) for e in self.entries)


@dataclass(frozen=True, kw_only=True)
class Mend:
    """One member to be written anew: its name, what the look saw (None: nothing), and what it ought to be."""

    name: str
    seen: bytes | None
    wanted: str


def look(
    *, bucket: BucketRef, limit_keys: Sequence[str], order_numbers: Sequence[str], entries_max: int
) -> MembersSeen:
    """Read members and the head of the queue. Raises ``NotPreheated`` and ``GateUnavailable``."""
    reply = _compare(bucket.keys, entries_max, len(limit_keys), *limit_keys, *order_numbers)
    _require(reply[0])
    _, epoch, settled_seq, mend_no, is_frozen, queue_length, raw_entries, marks, receipts = reply
    return MembersSeen(
        epoch=int(epoch),
        settled_seq=settled_seq,
        mend_no=to_text(mend_no),
        is_frozen=is_frozen == 1,
        queue_length=queue_length,
        entries=[parse_entry(raw) for raw in raw_entries],
        marks=_present(limit_keys, marks),
        receipts=_present(order_numbers, receipts),
    )


def mend(
    *, bucket: BucketRef, epoch: int, seen_mend_no: str, marks: Sequence[Mend], receipts: Sequence[Mend]
) -> frozenset[str]:
    """Write members anew; return the names of those that were still as seen, and are right now.

    None of them where another mend came first. Raises ``BucketUnsound`` when the bucket is frozen or
    of another epoch.
    """
    args: list[str | int | bytes] = [epoch, seen_mend_no, len(marks)]
    for member in (*marks, *receipts):
        args += [member.name, b"" if member.seen is None else b"=" + member.seen, member.wanted]
    code, *written = _mend(bucket.keys, *args)
    _require(code)
    return frozenset(
        member.name for member, is_written in zip((*marks, *receipts), written, strict=False) if is_written
    )


def scan(*, bucket: BucketRef, part: Part, cursor: int, count: int) -> tuple[int, list[str]]:
    """Some names out of a hash and the cursor to go on from, 0 at the end; small hashes come as a whole."""
    try:
        next_cursor, fields = raw_client().hscan(bucket.keys[part.value], cursor=cursor, count=count)
    except RedisError as error:
        raise GateUnavailable(f"scanning {part.name.lower()}: {error}") from error
    names = (to_text(name) for name in fields)
    return int(next_cursor), [name for name in names if name != SENTINEL]


def _present(names: Iterable[str], texts: Iterable[Any]) -> dict[str, bytes]:
    return {name: text for name, text in zip(names, texts, strict=True) if text is not None}


def _require(code: int) -> None:
    if code == ReserveCode.NOT_PREHEATED:
        raise NotPreheated
    if code == ReserveCode.UNAVAILABLE:
        raise BucketUnsound("the bucket is frozen, damaged, or the server was restarted since it was checked")
