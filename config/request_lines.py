"""One line and one count for each request: which route, what came of it, how long it took; never what it carried.

A refused purchase is counted and gets no line: a rush is made of them. Polls by ticket get one at level DEBUG, as do
static files. Routes stand for addresses, which may hold a token.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from config.batched_lines import batched_lines
from config.frames import IS_FRAME
from metrics.definitions import requests

logger = logging.getLogger("shop.requests")

METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"})
PURCHASE = "api/v1/purchases/"
POLL = "api/v1/purchases/<str:order_no>/"
STATIC = "static"
UNKNOWN = "unknown"
ACCEPTED = 202
# Parts of an address that say which thing was asked for, and give nobody a right to anything.
TOLD = frozenset({"order_no", "number", "item_id", "sale_id", "product_id", "object_id"})


def request_lines(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Count and log what Django answers."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if IS_FRAME in request.META:
            return get_response(request)
        began = perf_counter()
        response = get_response(request)
        method = request.method if request.method in METHODS else "other"
        tell(
            route=_route(request),
            method=method or "other",
            status=response.status_code,
            seconds=perf_counter() - began,
            facts=_facts(request, response),
        )
        return response

    return middleware


def tell(*, route: str, method: str, status: int, seconds: float, facts: dict[str, Any]) -> None:
    """Count an answer, and write its line unless it is one of those that get none."""
    requests(route, method, status).inc()
    level = _level(route=route, method=method, status=status)
    if level and logger.isEnabledFor(level):
        logger.log(
            level,
            "request",
            extra={"route": route, "method": method, "status": status, "ms": round(seconds * 1000, 2), **facts},
        )


def tell_accepted(*, request_id: str, order_no: str, seconds: float) -> None:
    """Count an accepted purchase of the fast lane, and have the same line written by the way that costs least.

    Both ids have a form that needs no escaping.
    """
    requests(PURCHASE, "POST", ACCEPTED).inc()
    if logger.isEnabledFor(logging.INFO):
        batched_lines.add(
            f'{{"event": "request", "level": "info", "logger": "shop.requests", "route": "{PURCHASE}",'
            f' "method": "POST", "status": {ACCEPTED}, "ms": {seconds * 1000:.2f}, "request_id": "{request_id}",'
            f' "order_no": "{order_no}", "timestamp": "{datetime.now(UTC).isoformat()}"}}'
        )


def _level(*, route: str, method: str, status: int) -> int:
    """Return the level of the line, 0 for none."""
    if route == PURCHASE and method == "POST" and status not in {ACCEPTED, 500}:
        return 0
    if status < 500 and route in {POLL, STATIC}:
        return logging.DEBUG
    return logging.INFO


def _route(request: HttpRequest) -> str:
    if request.resolver_match is not None:
        return request.resolver_match.route
    return STATIC if request.path_info.startswith(settings.STATIC_URL) else UNKNOWN


def _facts(request: HttpRequest, response: HttpResponseBase) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if request.resolver_match is not None:
        facts |= {name: value for name, value in request.resolver_match.kwargs.items() if name in TOLD}
    data = getattr(response, "data", None)
    if isinstance(data, dict):
        facts |= {name: data[name] for name in ("code", "order_no") if name in data}
    # Who it was is told where somebody has asked already, and not asked for the log's sake.
    user = getattr(request, "_cached_user", None)
    if user is not None and user.is_authenticated:
        facts["account"] = user.pk
    return facts
