"""Shared sums of how long the stages of sampled purchases took, in the cache's Redis, by slots of ten seconds.

For showing, like the tallies: what is lost here is missed by nobody.
"""

from collections.abc import Mapping

from django_redis import get_redis_connection
from redis.exceptions import RedisError

from seckill.errors import GateUnavailable
from seckill.gate.entries import to_text

SLOT_SECONDS = 10
KEPT_SECONDS = 3_600

# Of a stage: "count", "us" (microseconds in all), or "below:<2^n>" (calls that took less, and not less than half).
SumKey = tuple[str, str]


def add_stage_sums(sums: Mapping[SumKey, int], *, at: float) -> None:
    """Add to the sums of the slot that the time (seconds since 1970) falls into. Raises ``GateUnavailable``."""
    key = _key(int(at) // SLOT_SECONDS)
    try:
        with get_redis_connection("default").pipeline(transaction=False) as pipeline:
            for (stage, what), number in sums.items():
                pipeline.hincrby(key, f"{stage}/{what}", number)
            pipeline.expire(key, KEPT_SECONDS)
            pipeline.execute()
    except RedisError as error:
        raise GateUnavailable(str(error)) from error


def read_stage_sums(*, since: float, until: float) -> dict[SumKey, int]:
    """Add the slots between two times up, in one round trip. Raises ``GateUnavailable``."""
    try:
        with get_redis_connection("default").pipeline(transaction=False) as pipeline:
            for slot in range(int(since) // SLOT_SECONDS, int(until) // SLOT_SECONDS + 1):
                pipeline.hgetall(_key(slot))
            replies = pipeline.execute()
    except RedisError as error:
        raise GateUnavailable(str(error)) from error
    sums: dict[SumKey, int] = {}
    for reply in replies:
        for field, number in reply.items():
            stage, _, what = to_text(field).partition("/")
            sums[stage, what] = sums.get((stage, what), 0) + int(number)
    return sums


def _key(slot: int) -> str:
    return f"monitor:stages:{slot}"
