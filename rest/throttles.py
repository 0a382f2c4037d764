"""How often somebody may call: counted before authentication, permission, SQL or script.

Counts stand in the cache's Redis, one atomic call each. Calls that come with a ticket in the rush are counted
in the process instead: a further round trip would cost as much as the call itself.
"""

import threading
import time
from collections import Counter
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from limits import RateLimitItem, parse
from limits.errors import StorageError
from limits.storage import RedisSentinelStorage, RedisStorage
from limits.strategies import FixedWindowRateLimiter
from rest_framework import exceptions
from rest_framework.request import Request

from rest.askers import asker_of

REDIS_TIMEOUT_SECONDS = 1


class CountsUnavailable(exceptions.APIException):
    """Raised when Redis cannot count: nobody gets in uncounted."""

    status_code = 503
    default_detail = "Calls cannot be counted at the moment."
    default_code = "unavailable"


class SecondCounts:
    """Calls of this second by key; a new second begins with an empty table, so nothing has to be cleaned up.

    Not the library's storage in memory, which walks over all its keys a hundred times a second.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._second = 0
        self._counts: Counter[str] = Counter()

    def add(self, key: str) -> int:
        """Count one call; return how many there were in this second."""
        second = int(time.monotonic())
        with self._lock:
            if second != self._second:
                self._second, self._counts = second, Counter()
            self._counts[key] += 1
            return self._counts[key]

    def forget(self) -> None:
        """Begin anew, as a test wants."""
        with self._lock:
            self._counts = Counter()


second_counts = SecondCounts()


def throttle(*, scope: str, request: Request) -> None:
    """Count a call of whoever asks.

    Raises ``Throttled`` with the seconds to wait, and ``CountsUnavailable``.
    """
    throttle_key(scope=scope, key=asker_of(request._request))  # noqa: SLF001  DRF's own would look the account up


def throttle_key(*, scope: str, key: str) -> None:
    """Count a call by a key of the caller's choice. Raises as ``throttle``."""
    rate = _rate(settings.THROTTLES[scope])
    try:
        if _shared().hit(rate, scope, key):
            return
        ends_at = _shared().get_window_stats(rate, scope, key).reset_time
    except StorageError as error:
        raise CountsUnavailable from error
    raise exceptions.Throttled(wait=max(1, ends_at - time.time()))


def throttle_in_process(*, scope: str, key: str) -> None:
    """Count a call in this process alone, against a rate per second. Raises ``Throttled``."""
    if second_counts.add(f"{scope}:{key}") > settings.THROTTLES_PER_SECOND[scope]:
        raise exceptions.Throttled(wait=1)


@cache
def _rate(text: str) -> RateLimitItem:
    return parse(text)


@cache
def _shared() -> FixedWindowRateLimiter:
    return FixedWindowRateLimiter(_storage(settings.CACHES["default"]))


def _storage(cache_settings: dict[str, Any]) -> RedisStorage:
    """Return where the cache is: on one server, or on the master that Sentinels name."""
    further: dict[str, Any] = {"socket_timeout": REDIS_TIMEOUT_SECONDS, "socket_connect_timeout": REDIS_TIMEOUT_SECONDS}
    options = cache_settings["OPTIONS"]
    if "SENTINELS" not in options:
        return RedisStorage(cache_settings["LOCATION"], wrap_exceptions=True, **further)
    master = urlsplit(cache_settings["LOCATION"])
    addresses = ",".join(f"{host}:{port}" for host, port in options["SENTINELS"])
    if master.password:
        further |= {"username": master.username, "password": master.password}
    if options["CONNECTION_POOL_KWARGS"].get("ssl"):
        further |= {"ssl": True}
    # The library would tell the Sentinels the master's password.
    own: dict[str, Any] = {"username": None, "password": None, **options["SENTINEL_KWARGS"]}
    url = f"redis+sentinel://{addresses}/{master.hostname}"
    return RedisSentinelStorage(url, use_replicas=False, sentinel_kwargs=own, wrap_exceptions=True, **further)
