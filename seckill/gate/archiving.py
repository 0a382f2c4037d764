"""The archive's side of the gate: seal, close, read in chunks, remove. None of it costs more than what is asked for.

All raise ``NotPreheated`` when nothing of the bucket is there, ``BucketUnsound`` when what is there
is no sound bucket of this epoch, and ``GateUnavailable`` when Redis does not answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redis.exceptions import RedisError

from seckill.errors import BucketUnsound, GateUnavailable, NotPreheated
from seckill.gate.connection import Script, raw_client
from seckill.gate.keys import BucketRef
from seckill.gate.staging import SENTINEL

_seal = Script("seal")
_close = Script("close")
_scan = Script("scan")
_members = Script("members")

FIRST_CURSOR = "0"


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Some buyers of a closed bucket as they stand there, bytes; ``cursor`` is ``FIRST_CURSOR`` after the last."""

    cursor: str
    buyers: Mapping[bytes, bytes]


@dataclass(frozen=True, kw_only=True)
class Members:
    """How many buyers and receipts a closed bucket has, and the receipts asked for that are there."""

    buyers: int
    receipts: int
    receipts_of: Mapping[str, str]


def seal(*, bucket: BucketRef, epoch: int) -> bool:
    """End the window for good and let nothing but settlement change the bucket.

    False when the window is still open by Redis's own clock; nothing is changed then.
    """
    code = _seal(bucket.keys, epoch)
    _require(code)
    return bool(code == 1)


def close(*, bucket: BucketRef, epoch: int) -> bool:
    """Let nothing at all change a sealed bucket any more; False, and nothing is changed, while something is queued."""
    code = _close(bucket.keys, epoch)
    _require(code)
    return bool(code == 1)


def scan_buyers(*, bucket: BucketRef, epoch: int, cursor: str, count: int) -> Chunk:
    """About ``count`` buyers from a cursor on; one may come twice in different chunks."""
    code, *found = _scan(bucket.keys, epoch, cursor, count)
    _require(code)
    next_cursor, flat = found
    buyers = dict(zip(flat[::2], flat[1::2], strict=True))
    buyers.pop(SENTINEL.encode(), None)
    return Chunk(cursor=next_cursor.decode(), buyers=buyers)


def members(*, bucket: BucketRef, epoch: int, order_numbers: Sequence[str] = ()) -> Members:
    """Count buyers and receipts, and read the receipts of some order numbers."""
    code, *found = _members(bucket.keys, epoch, *order_numbers)
    _require(code)
    buyers, receipts, raw = found
    texts = (receipt.decode(errors="backslashreplace") for receipt in raw)
    receipts_of = {number: text for number, text in zip(order_numbers, texts, strict=True) if text}
    return Members(buyers=buyers, receipts=receipts, receipts_of=receipts_of)


def unlink(*, bucket: BucketRef, token: str) -> None:
    """Remove the bucket, whatever is left of it, and the leavings of its last rebuild; big keys go in the background.

    For a bucket of which MySQL has everything. Raises ``GateUnavailable`` only.
    """
    keys = (*bucket.keys, *bucket.staging_keys(token), *bucket.trash_keys(token))
    try:
        raw_client().unlink(*keys)
    except RedisError as error:
        raise GateUnavailable(f"unlink: {error}") from error


def _require(code: int) -> None:
    if code == -1:
        raise NotPreheated
    if code < 0:
        raise BucketUnsound("the bucket is frozen, damaged, of another epoch, or the server was restarted")
