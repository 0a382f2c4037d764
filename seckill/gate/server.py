"""What a Redis server tells about itself by INFO; managed ones forbid CONFIG."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

from seckill.errors import GateUnavailable
from seckill.gate.nodes import masters


@dataclass(frozen=True, kw_only=True)
class ServerFacts:
    """Persistence, eviction, version and identity; None where the server does not say."""

    run_id: str | None
    version: tuple[int, ...] | None
    eviction_policy: str | None
    is_aof_on: bool | None


@dataclass(frozen=True, kw_only=True)
class StockServer:
    """One of the servers that have stock; ``name`` is its address where there are several, with a blank in front."""

    name: str
    client: Any


# A URL, asked over a connection of its own, or a server that was found through others.
Where = str | StockServer


def stock_servers() -> list[tuple[str, Where]]:
    """Return the server of the stock, or the masters of its cluster, each with what to call it.

    Raises ``GateUnavailable`` when nobody knows them.
    """
    stock = settings.CACHES["stock"]
    if "CONNECTION_FACTORY" not in stock["OPTIONS"]:
        return [("", stock["LOCATION"])]
    try:
        return [(name and f" {name}", StockServer(name=name, client=client)) for name, client in masters()]
    except RedisError as error:
        raise GateUnavailable(str(error)) from error


def server_facts(where: Where) -> ServerFacts:
    """Ask a server.

    Raises ``GateUnavailable`` when it cannot be reached.
    """
    info = server_info(where)
    version = info.get("redis_version")
    aof = info.get("aof_enabled")
    return ServerFacts(
        run_id=info.get("run_id"),
        version=tuple(int(part) for part in str(version).split(".")[:2]) if version else None,
        eviction_policy=info.get("maxmemory_policy"),
        is_aof_on=None if aof is None else bool(aof),
    )


def server_info(where: Where) -> Mapping[str, Any]:
    """Return all that a server tells by INFO. Raises ``GateUnavailable``."""
    try:
        with _client(where) as client:
            info: Mapping[str, Any] = client.info()
            return info
    except RedisError as error:
        raise GateUnavailable(str(error)) from error


def server_options(where: Where, *names: str) -> Mapping[str, str]:
    """Return options by CONFIG GET; none of those the server does not tell, as a managed one. Raises as above."""
    try:
        with _client(where) as client:
            return {name: value for name in names for value in client.config_get(name).values()}
    except ResponseError:
        return {}
    except RedisError as error:
        raise GateUnavailable(str(error)) from error


def server_clock(where: Where) -> float:
    """Return the server's time, in seconds since 1970. Raises ``GateUnavailable``."""
    try:
        with _client(where) as client:
            seconds, microseconds = client.time()
            return float(seconds) + float(microseconds) / 1_000_000
    except RedisError as error:
        raise GateUnavailable(str(error)) from error


@contextmanager
def _client(where: Where) -> Iterator[Any]:
    if isinstance(where, StockServer):
        yield where.client
        return
    no_retry = Retry(NoBackoff(), 0)
    with Redis.from_url(where, socket_timeout=2, socket_connect_timeout=2, protocol=2, retry=no_retry) as client:
        yield client
