"""Which buckets and items Redis has, by its own keys: for the one case in which MySQL cannot be asked."""

import re
from collections.abc import Iterator
from typing import Any

from redis.exceptions import RedisError

from seckill.errors import GateUnavailable
from seckill.gate.connection import raw_client
from seckill.gate.entries import to_text
from seckill.gate.gate import stopped_in
from seckill.gate.keys import BucketRef
from seckill.gate.nodes import masters

KEYS_PER_STEP = 1_000
_STOCK = re.compile(r"seckill:\{([1-9][0-9]{0,17}):([0-9]{1,4})\}:stock")
_LEFT = re.compile(r"([1-9][0-9]{0,17}):left")


def items_in_redis() -> Iterator[tuple[BucketRef, tuple[int, ...]]]:
    """Walk over all buckets with the items each sells; small steps, so that purchases go on meanwhile.

    Raises ``GateUnavailable``, after the buckets of all other servers, when one of them does not answer.
    """
    failed: RedisError | None = None
    try:
        servers = list(masters())
    except RedisError as error:
        raise GateUnavailable(f"the buckets cannot be listed: {error}") from error
    for _, client in servers:
        try:
            yield from _items_of(client)
        except RedisError as error:
            failed = error
    if failed is not None:
        raise GateUnavailable(f"the buckets cannot be listed: {failed}") from failed


def _items_of(client: Any) -> Iterator[tuple[BucketRef, tuple[int, ...]]]:
    for key in client.scan_iter(match="seckill:{*}:stock", count=KEYS_PER_STEP):
        match = _STOCK.fullmatch(to_text(key))
        if match is not None:
            names = [_LEFT.fullmatch(to_text(name)) for name in client.hkeys(to_text(key))]
            items = tuple(int(name[1]) for name in names if name is not None)
            yield BucketRef(pool_id=int(match[1]), number=int(match[2])), items


def stopped_items(*, bucket: BucketRef) -> frozenset[int]:
    """Items of a bucket, be it damaged, that were stopped without MySQL. Raises ``GateUnavailable``."""
    gate_key = bucket.keys[1]
    try:
        if to_text(raw_client().type(gate_key)) != "hash":
            return frozenset()
        return stopped_in({to_text(name): to_text(mark) for name, mark in raw_client().hgetall(gate_key).items()})
    except ValueError:
        # A field that is no item's: the bucket is rebuilt for other reasons.
        return frozenset()
    except RedisError as error:
        raise GateUnavailable(f"the gate of bucket {bucket} cannot be read: {error}") from error
