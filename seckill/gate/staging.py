"""The rebuild's side of the gate: freeze, fill staging keys in chunks, swap, take out the trash."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from redis.exceptions import RedisError

from seckill.errors import GateUnavailable, RebuildRefused
from seckill.gate.connection import Script, raw_client
from seckill.gate.entries import BadEntry, QueueEntry, parse_entry, to_text
from seckill.gate.keys import BucketRef
from seckill.gate.receipts import Receipt

SENTINEL = "#epoch"
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_freeze = Script("freeze")
_swap = Script("swap")


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """What a freeze found; a swap goes through only where it still holds."""

    token: str
    run_id: str
    last_queue_id: str
    seq: int
    epoch: int
    settled_seq: int


@dataclass(frozen=True, kw_only=True)
class GateFields:
    """The gate of a new epoch."""

    epoch: int
    opens_ms: int
    closes_ms: int
    limit: int
    max_queue: int
    seq: int
    settled_seq: int
    adj_no: int
    repair_no: int
    paused_items: frozenset[int]
    window_no: int = 0
    adj_applied: int = 0
    buckets: int = 1


def milliseconds(instant: datetime) -> int:
    """Milliseconds since 1970 as the gate has its window, rounded up: nobody is let in before the instant."""
    return -((_UNIX_EPOCH - instant) // timedelta(milliseconds=1))


def freeze(*, bucket: BucketRef, token: str) -> Frozen:
    """Close the gate, if there is one, with the rebuild's token."""
    _, run_id, last_queue_id, *numbers = (to_text(part) for part in _freeze(bucket.keys, token))
    seq, epoch, settled_seq = (int(number) for number in numbers)
    return Frozen(
        token=token, run_id=run_id, last_queue_id=last_queue_id, seq=seq, epoch=epoch, settled_seq=settled_seq
    )


def surviving_entries(*, bucket: BucketRef, chunk_size: int) -> Iterator[list[QueueEntry | BadEntry]]:
    """All entries of a frozen queue, in order, in chunks; none where there is no stream."""
    queue = bucket.keys[4]
    start = "-"
    try:
        client = raw_client()
        if to_text(client.type(queue)) != "stream":
            return
        while raw := client.xrange(queue, min=start, count=chunk_size):
            yield [
                parse_entry((stream_id, [part for pair in fields.items() for part in pair]))
                for stream_id, fields in raw
            ]
            start = "(" + to_text(raw[-1][0])
    except RedisError as error:
        raise GateUnavailable(f"reading the queue: {error}") from error


def begin_staging(*, bucket: BucketRef, token: str, epoch: int) -> None:
    """Make the staging hashes and the empty queue of a new epoch."""
    _, _, buyers, receipts, queue = bucket.staging_keys(token)
    try:
        client = raw_client()
        client.hset(buyers, SENTINEL, str(epoch))
        client.hset(receipts, SENTINEL, str(epoch))
        client.xadd(queue, {"empty": "1"}, id="0-1")
        client.xdel(queue, "0-1")
    except RedisError as error:
        raise GateUnavailable(f"staging: {error}") from error


def stage_receipts(*, bucket: BucketRef, token: str, receipts: Mapping[str, Receipt]) -> None:
    """Write one chunk of receipts."""
    _stage(key=bucket.staging_keys(token)[3], mapping={number: str(receipt) for number, receipt in receipts.items()})


def stage_buyers(*, bucket: BucketRef, token: str, held: Mapping[str, int]) -> None:
    """Write one chunk of units held per limit key."""
    _stage(key=bucket.staging_keys(token)[2], mapping={key: str(units) for key, units in held.items()})


def stage_gate(
    *, bucket: BucketRef, frozen: Frozen, gate: GateFields, left: Mapping[int, int], prices: Mapping[int, str]
) -> None:
    """Write the stock and the gate, the last two; ``left`` is units per item, ``prices`` as tickets name them."""
    stock_key, gate_key = bucket.staging_keys(frozen.token)[:2]
    stock = {SENTINEL: str(gate.epoch)}
    for item_id, units in left.items():
        stock |= {f"{item_id}:left": str(units), f"{item_id}:queued": "0", f"{item_id}:price": prices.get(item_id, "")}
    fields = {name: str(value) for name, value in vars(gate).items() if name != "paused_items"}
    fields |= {f"paused:{item_id}": "1" for item_id in gate.paused_items}
    _stage(key=stock_key, mapping=stock)
    _stage(key=gate_key, mapping=fields | {"run_id": frozen.run_id, "woken_ms": "0", "mend_no": "0"})


def swap(*, bucket: BucketRef, frozen: Frozen, epoch: int) -> None:
    """Put the staging into place and open the gate.

    Raises ``RebuildRefused`` when anything has changed since the freeze.
    """
    keys = (*bucket.keys, *bucket.staging_keys(frozen.token), *bucket.trash_keys(frozen.token))
    reply = _swap(keys, frozen.run_id, frozen.token, frozen.last_queue_id, epoch)
    if reply != 1:
        what = "Redis was restarted" if reply < 0 else "the bucket was changed"
        raise RebuildRefused(f"{what} while it was rebuilt")


def unlink_leavings(*, bucket: BucketRef, token: str) -> None:
    """Remove a rebuild's trash and staging; big keys are freed in the background."""
    try:
        raw_client().unlink(*bucket.staging_keys(token), *bucket.trash_keys(token))
    except RedisError as error:
        raise GateUnavailable(f"unlink: {error}") from error


def _stage(*, key: str, mapping: Mapping[str, str]) -> None:
    if not mapping:
        return
    try:
        raw_client().hset(key, mapping=dict(mapping))
    except RedisError as error:
        raise GateUnavailable(f"staging: {error}") from error
