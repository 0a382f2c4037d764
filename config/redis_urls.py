"""How Redis is reached: one URL says it, and becomes what django-redis wants in ``CACHES``.

``redis://``, ``rediss://`` (TLS), ``unix://``         one server
``redis+sentinel://:password@host:port,…/master/0``   the master that Sentinels name; ``?sentinel_password=``
``redis+cluster://:password@host:port,…``              a Redis Cluster, found by any of these nodes
``rediss+sentinel://``, ``rediss+cluster://``          the same over TLS
"""

from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from redis.backoff import NoBackoff
from redis.retry import Retry

from seckill.gate.handshake import ask_run_id, learn_run_id

# The client library must not repeat a write by itself: a lost reply is not a failure.
NO_RETRY = {"retry": Retry(NoBackoff(), 0), "protocol": 2}
TIMEOUTS = {"SOCKET_CONNECT_TIMEOUT": 1, "SOCKET_TIMEOUT": 1}
SENTINEL_OPTIONS = {"socket_connect_timeout": 0.5, "socket_timeout": 0.5, **NO_RETRY}
# Connections of a pool; there are never more than threads.
UNLIMITED = 2**31
SENTINEL_PORT, REDIS_PORT = 26_379, 6_379


@dataclass(frozen=True, kw_only=True)
class Place:
    """Several addresses under one URL, and what stands around them."""

    scheme: str
    login: str
    addresses: tuple[tuple[str, int], ...]
    path: tuple[str, ...]
    query: dict[str, list[str]]

    @classmethod
    def of(cls, url: str, *, port: int) -> Self:
        """Read a URL of a kind with several addresses. Raises ``ImproperlyConfigured`` where it has none."""
        parts = urlsplit(url)
        login, _, hosts = parts.netloc.rpartition("@")
        addresses = tuple(_address(host, port=port) for host in hosts.split(",") if host)
        if not addresses:
            raise ImproperlyConfigured(f"{parts.scheme}:// needs addresses, host:port and commas between them")
        return cls(
            scheme=parts.scheme.partition("+")[0],
            login=f"{login}@" if login else "",
            addresses=addresses,
            path=tuple(part for part in parts.path.split("/") if part),
            query=parse_qs(parts.query),
        )


def cache_of(url: str) -> dict[str, Any]:
    """Return the CACHES entry of cache and sessions: one server, or the master of Sentinels."""
    kind = _kind(url)
    if kind == "cluster":
        raise ImproperlyConfigured("cache and broker need no cluster: give CACHE_REDIS_URL one server, or Sentinels")
    if kind == "sentinel":
        return _entry(*_sentinel(url, pool={}))
    return _entry(url, {})


def stock_of(url: str, *, connections: int) -> dict[str, Any]:
    """Return the CACHES entry of the Redis that decides, whose connections learn the run id of their server."""
    if _kind(url) == "cluster":
        return _entry(*_cluster(url))
    pool = {**NO_RETRY, "redis_connect_func": learn_run_id, "max_connections": connections}
    if _kind(url) == "sentinel":
        # Each thread has a connection that counts here for good, also a thread that has ended.
        return _entry(*_sentinel(url, pool={**pool, "max_connections": UNLIMITED}))
    options = {
        "CONNECTION_POOL_CLASS": "redis.connection.BlockingConnectionPool",
        "CONNECTION_POOL_KWARGS": {**pool, "timeout": 0.5},
    }
    return _entry(url, options)


def broker_of(url: str) -> tuple[str, dict[str, Any]]:
    """Return what Celery calls a broker's URL, and the transport options that belong to it."""
    kind = _kind(url)
    if is_rabbitmq(url):
        # A message counts as sent once the broker has it: a broker at its memory's limit drops others without a word.
        return url, {"confirm_publish": True}
    if kind == "cluster":
        raise ImproperlyConfigured("messages need no cluster: give BROKER_URL one Redis, Sentinels or RabbitMQ")
    if kind == "sentinel":
        place = Place.of(url, port=SENTINEL_PORT)
        service, database = _service(place)
        servers = [f"sentinel://{place.login}{host}:{port}/{database}" for host, port in place.addresses]
        return ";".join(servers), {"master_name": service, "sentinel_kwargs": _sentinel_login(place)}
    return url, {}


def is_rabbitmq(url: str) -> bool:
    """Tell whether a broker's URL is a RabbitMQ's."""
    return urlsplit(url).scheme in {"amqp", "amqps", "pyamqp"}


def _kind(url: str) -> str:
    return urlsplit(url).scheme.partition("+")[2]


def _entry(location: str, options: dict[str, Any]) -> dict[str, Any]:
    return {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": location,
        "OPTIONS": {**TIMEOUTS, **options},
    }


def _cluster(url: str) -> tuple[str, dict[str, Any]]:
    place = Place.of(url, port=REDIS_PORT)
    (host, port), *others = place.addresses
    # redis-py makes the retries of a cluster's nodes itself, none, and takes no such option.
    pool = {"protocol": NO_RETRY["protocol"], "redis_connect_func": ask_run_id, "max_connections": UNLIMITED}
    options = {
        "CONNECTION_FACTORY": "seckill.gate.cluster.ClusterConnectionFactory",
        "CONNECTION_POOL_KWARGS": pool,
        "NODES": tuple(others),
    }
    return f"{place.scheme}://{place.login}{host}:{port}/0", options


def _sentinel(url: str, *, pool: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    place = Place.of(url, port=SENTINEL_PORT)
    service, database = _service(place)
    options = {
        "CONNECTION_FACTORY": "seckill.gate.sentinel.SentinelFactory",
        "CONNECTION_POOL_CLASS": "redis.sentinel.SentinelConnectionPool",
        "CONNECTION_POOL_KWARGS": {**pool, **({"ssl": True} if place.scheme == "rediss" else {})},
        "SENTINELS": place.addresses,
        "SENTINEL_KWARGS": {**SENTINEL_OPTIONS, **_sentinel_login(place)},
    }
    # The service stands where a host would, and its TLS is the pool's affair.
    return f"redis://{place.login}{service}/{database}", options


def _service(place: Place) -> tuple[str, int]:
    if not place.path:
        raise ImproperlyConfigured("a Sentinel's URL ends with the master's name: redis+sentinel://host:port/name/0")
    return place.path[0], int(place.path[1]) if len(place.path) > 1 else 0


def _sentinel_login(place: Place) -> dict[str, str]:
    return {
        name: place.query[f"sentinel_{name}"][0]
        for name in ("username", "password")
        if f"sentinel_{name}" in place.query
    }


def _address(text: str, *, port: int) -> tuple[str, int]:
    host, _, number = text.rpartition(":")
    if not host:
        return unquote(text), port
    return host.strip("[]"), int(number)
