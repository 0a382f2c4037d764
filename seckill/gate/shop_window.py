"""What the shop window may know of Redis: units left, for many buckets in one round trip per node.

It is for showing only. Nothing is reserved by it, so the server's run id is not compared; a bucket
that is frozen, missing or not in plain numbers shows nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seckill.gate.entries import to_text
from seckill.gate.keys import BucketRef
from seckill.gate.nodes import read_by_node


@dataclass(frozen=True, kw_only=True)
class UnitsShown:
    """Units of one item in one bucket: still to be had, and reserved but not in MySQL yet."""

    left: int
    queued: int


def units_shown(*, buckets: Sequence[BucketRef]) -> dict[BucketRef, Mapping[int, UnitsShown]]:
    """Read the units of all items; a bucket that cannot be shown is missing, also since its node is away.

    Raises ``GateUnavailable`` when no Redis answers.
    """
    if not buckets:
        return {}
    shown = {}
    for bucket, replies in read_by_node(buckets=buckets, ask=_ask).items():
        if (units := _units(*replies.parts)) is not None:
            shown[bucket] = units
    return shown


def _ask(pipeline: Any, bucket: BucketRef) -> None:
    stock, gate, *_ = bucket.keys
    pipeline.hgetall(stock)
    pipeline.hmget(gate, "epoch", "frozen")


def _units(stock: Any, gate: Any) -> Mapping[int, UnitsShown] | None:
    if isinstance(stock, Exception) or isinstance(gate, Exception) or not stock:
        return None
    epoch, frozen = gate
    texts = {to_text(name): to_text(value) for name, value in stock.items()}
    if epoch is None or frozen or texts.pop("#epoch", "") != to_text(epoch):
        return None
    try:
        items = {int(name.partition(":")[0]) for name in texts}
        return {
            item: UnitsShown(left=int(texts[f"{item}:left"]), queued=int(texts[f"{item}:queued"])) for item in items
        }
    except (KeyError, ValueError):
        return None
