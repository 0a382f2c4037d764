"""What a Redis server tells about itself by INFO; managed ones forbid CONFIG."""

from dataclasses import dataclass
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from seckill.errors import GateUnavailable


@dataclass(frozen=True, kw_only=True)
class ServerFacts:
    """Persistence, eviction, version and identity; None where the server does not say."""

    run_id: str | None
    version: tuple[int, ...] | None
    eviction_policy: str | None
    is_aof_on: bool | None


def server_facts(url: str) -> ServerFacts:
    """Ask the server at a URL, over a connection of its own.

    Raises ``GateUnavailable`` when it cannot be reached.
    """
    try:
        with Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2, protocol=2) as client:
            info: Any = client.info()
    except RedisError as error:
        raise GateUnavailable(str(error)) from error
    version = info.get("redis_version")
    aof = info.get("aof_enabled")
    return ServerFacts(
        run_id=info.get("run_id"),
        version=tuple(int(part) for part in str(version).split(".")[:2]) if version else None,
        eviction_policy=info.get("maxmemory_policy"),
        is_aof_on=None if aof is None else bool(aof),
    )
