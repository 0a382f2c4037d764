"""Shared tallies of what buyers were answered, in the cache's Redis: for showing, and worth nothing else.

They stand beside cache and sessions, not beside the stock: what is counted here may be lost, evicted or counted
twice after a lost reply, and no decision depends on it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django_redis import get_redis_connection
from redis.exceptions import RedisError

from seckill.errors import GateUnavailable
from seckill.gate.entries import to_text

# Of an item of a pool, by what is counted.
TallyKey = tuple[int, int, str]

# A sale's tallies outlive it by days; a pool of another sale has another key.
KEPT_SECONDS = 7 * 24 * 3600


def add_tallies(counts: Mapping[TallyKey, int]) -> None:
    """Add counts to the shared ones, in one round trip. Raises ``GateUnavailable``."""
    try:
        with _client().pipeline(transaction=False) as pipeline:
            for (pool_id, item_id, name), count in counts.items():
                pipeline.hincrby(_key(pool_id), f"{item_id}:{name}", count)
            for pool_id in {pool_id for pool_id, _, _ in counts}:
                pipeline.expire(_key(pool_id), KEPT_SECONDS)
            pipeline.execute()
    except RedisError as error:
        raise GateUnavailable(str(error)) from error


def read_tallies(*, pool_ids: Iterable[int]) -> dict[int, dict[str, int]]:
    """Read all tallies of some pools, by item and name, in one round trip; a dozen numbers an item.

    Raises ``GateUnavailable``.
    """
    try:
        with _client().pipeline(transaction=False) as pipeline:
            for pool_id in pool_ids:
                pipeline.hgetall(_key(pool_id))
            replies = pipeline.execute()
    except RedisError as error:
        raise GateUnavailable(str(error)) from error
    found: dict[int, dict[str, int]] = {}
    for reply in replies:
        for field, count in reply.items():
            item_id, _, name = to_text(field).partition(":")
            found.setdefault(int(item_id), {})[name] = int(count)
    return found


def _client() -> Any:
    return get_redis_connection("default")


def _key(pool_id: int) -> str:
    return f"monitor:tally:{pool_id}"
