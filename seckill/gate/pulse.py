"""A bucket's pulse: the few numbers an operator watches, for many buckets in one round trip per node.

It is for showing only, like the shop window: nothing is decided by it, and the parts of one pulse are microseconds
apart. No member is read, only how many there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seckill.gate.entries import to_text
from seckill.gate.keys import BucketRef
from seckill.gate.nodes import read_by_node
from seckill.gate.shop_window import UnitsShown


@dataclass(frozen=True, kw_only=True)
class Pulse:
    """What a bucket's keys say. ``oldest_ms`` is how long the head of the queue has waited, 0 for an empty one."""

    epoch: int
    seq: int
    settled_seq: int
    max_queue: int
    queue_length: int
    oldest_ms: int
    members: int
    is_frozen: bool
    is_sealed: bool
    paused_items: frozenset[int]
    units: Mapping[int, UnitsShown]


def pulses(*, buckets: Sequence[BucketRef]) -> dict[BucketRef, Pulse]:
    """Read the pulses; a bucket that is missing or damaged, or whose node is away, is left out.

    Raises ``GateUnavailable`` when no Redis answers.
    """
    if not buckets:
        return {}
    found = {}
    for bucket, replies in read_by_node(buckets=buckets, ask=_ask).items():
        if (pulse := _pulse(parts=replies.parts, now_ms=replies.now_ms)) is not None:
            found[bucket] = pulse
    return found


def _ask(pipeline: Any, bucket: BucketRef) -> None:
    stock, gate, buyers, _, queue = bucket.keys
    pipeline.hgetall(stock)
    pipeline.hgetall(gate)
    pipeline.xlen(queue)
    pipeline.xrange(queue, count=1)
    pipeline.hlen(buyers)


def _pulse(*, parts: Sequence[Any], now_ms: int) -> Pulse | None:
    if any(isinstance(part, Exception) for part in parts) or not parts[0] or not parts[1]:
        return None
    stock, gate = (_texts(part) for part in parts[:2])
    queue_length, head, members = parts[2:]
    if stock.pop("#epoch", "") != gate.get("epoch"):
        return None
    try:
        items = {int(name.partition(":")[0]) for name in stock}
        return Pulse(
            epoch=int(gate["epoch"]),
            seq=int(gate["seq"]),
            settled_seq=int(gate["settled_seq"]),
            max_queue=int(gate["max_queue"]),
            queue_length=queue_length,
            oldest_ms=max(0, now_ms - int(to_text(head[0][0]).partition("-")[0])) if head else 0,
            members=max(0, members - 1),  # one field is the sentinel
            is_frozen=gate.get("frozen", "") != "",
            is_sealed="sealed" in gate,
            paused_items=frozenset(int(name.removeprefix("paused:")) for name in gate if name.startswith("paused:")),
            units={
                item: UnitsShown(left=int(stock[f"{item}:left"]), queued=int(stock[f"{item}:queued"])) for item in items
            },
        )
    except (KeyError, ValueError):
        return None


def _texts(raw: Mapping[Any, Any]) -> dict[str, str]:
    return {to_text(name): to_text(value) for name, value in raw.items()}
