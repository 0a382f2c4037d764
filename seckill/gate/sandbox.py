"""Only with ``SANDBOX=1``: brings a bucket into states that are otherwise waited for, or that only a fault makes."""

from seckill.gate.connection import raw_client
from seckill.gate.keys import BucketRef


def close_queue(bucket: BucketRef) -> None:
    """Let the queue count as full, until a rebuild brings the pool's own bound back."""
    raw_client().hset(bucket.keys[1], "max_queue", 0)


def invent_unit(bucket: BucketRef, *, item_id: int) -> None:
    """Let Redis have a unit that MySQL does not have, until a reconciliation lowers it."""
    raw_client().hincrby(bucket.keys[0], f"{item_id}:left", 1)


def forget_buyer(bucket: BucketRef, *, limit_key: str) -> None:
    """Let Redis forget what a limit key holds, until a reconciliation of the members finds it."""
    raw_client().hdel(bucket.keys[2], limit_key)
