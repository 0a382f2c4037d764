"""What a Redis server tells about itself by INFO; managed ones forbid CONFIG."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

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
    info = server_info(url)
    version = info.get("redis_version")
    aof = info.get("aof_enabled")
    return ServerFacts(
        run_id=info.get("run_id"),
        version=tuple(int(part) for part in str(version).split(".")[:2]) if version else None,
        eviction_policy=info.get("maxmemory_policy"),
        is_aof_on=None if aof is None else bool(aof),
    )


def server_info(url: str) -> Mapping[str, Any]:
    """Return all that the server at a URL tells by INFO. Raises ``GateUnavailable``."""
    try:
        with _client(url) as client:
            info: Mapping[str, Any] = client.info()
            return info
    except RedisError as error:
        raise GateUnavailable(str(error)) from error


def server_options(url: str, *names: str) -> Mapping[str, str]:
    """Return options by CONFIG GET; none of those the server does not tell, as a managed one. Raises as above."""
    try:
        with _client(url) as client:
            return {name: value for name in names for value in client.config_get(name).values()}
    except ResponseError:
        return {}
    except RedisError as error:
        raise GateUnavailable(str(error)) from error


def server_clock(url: str) -> float:
    """Return the server's time, in seconds since 1970. Raises ``GateUnavailable``."""
    try:
        with _client(url) as client:
            seconds, microseconds = client.time()
            return float(seconds) + float(microseconds) / 1_000_000
    except RedisError as error:
        raise GateUnavailable(str(error)) from error


def _client(url: str) -> Any:
    return Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2, protocol=2, retry=Retry(NoBackoff(), 0))
