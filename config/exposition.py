"""``/metrics``: who may read it, and what it says. Without permission there is no such page.

A process answers for all processes of its host, whose counts stand in one directory, and for the stores. The answer is
kept for a second, so that however many ask, the shop is asked once.
"""

from ipaddress import ip_network

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.crypto import constant_time_compare
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest

from config.vitals import StoreCollector
from metrics.directory import directory
from metrics.files import counted
from rest.addresses import NOWHERE, client_address
from rest.memory import Memory

PATH = "/metrics"
KEPT_SECONDS = 1.0
BEARER = "Bearer "
SAFE = frozenset({"GET", "HEAD"})

_told: Memory[bytes] = Memory(seconds=KEPT_SECONDS, entries_max=1)


def may_read(request: HttpRequest) -> bool:
    """Tell whether the caller has the token, or one of the addresses."""
    given = request.META.get("HTTP_AUTHORIZATION", "")
    if settings.METRICS_TOKEN and given.startswith(BEARER):
        return constant_time_compare(given.removeprefix(BEARER), settings.METRICS_TOKEN)
    if not settings.METRICS_ADDRESSES or _comes_through_a_stranger(request):
        return False
    address = client_address(request)
    return address != NOWHERE and any(address in ip_network(known) for known in settings.METRICS_ADDRESSES)


def _comes_through_a_stranger(request: HttpRequest) -> bool:
    """Tell a proxy nobody has told us of: all who come through it would have its address."""
    return not settings.TRUSTED_PROXIES and "HTTP_X_FORWARDED_FOR" in request.META


def metrics(request: HttpRequest) -> HttpResponse:
    """Answer with everything there is to count. The caller has asked ``may_read``."""
    if request.method not in SAFE:
        return HttpResponseNotAllowed(sorted(SAFE))
    body = _told.get("all", lambda: counted_by_processes() + read_from_stores())
    return HttpResponse(body, content_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"})


def counted_by_processes() -> bytes:
    """Return what the processes of this host have counted, as text for Prometheus."""
    path = directory()
    if path is None:
        return generate_latest(REGISTRY)
    with counted(path) as registry:
        return generate_latest(registry)


def read_from_stores() -> bytes:
    """Return what the stores say, as text for Prometheus, within a second."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(StoreCollector())
    return generate_latest(registry)
