"""Health of a web process, for whoever starts, restarts and balances.

``/livez`` touches nothing: a process that answers it gains nothing by a restart. ``/readyz`` asks every server, all at
once, for at most a second. Only the stock Redis is needed to be ready: without it no purchase can be accepted here.
While MySQL, the cache or the broker is away, purchases are accepted and settled later, and what cannot be served says
so by itself; a balancer that took all web processes away for it would end the sale.
"""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse

from config import dependencies
from config.errands import Finding, run_errands
from rest.memory import Memory

WAIT_SECONDS = 1.0
# A crowd of balancers costs one look a second.
KEPT_SECONDS = 1.0
NEEDED = frozenset({dependencies.STOCK_REDIS.name})
READY, DEGRADED, UNAVAILABLE = "ready", "degraded", "unavailable"
SAFE = frozenset({"GET", "HEAD"})

_findings: Memory[Mapping[str, Finding]] = Memory(seconds=KEPT_SECONDS, entries_max=1)


def livez(request: HttpRequest) -> HttpResponse:
    """Say that this process answers."""
    return _answer(request, {"status": "alive"})


def readyz(request: HttpRequest) -> HttpResponse:
    """Say whether purchases can be accepted here (200, else 503), and which server is away."""
    found = _findings.get("all", lambda: run_errands(dependencies.ALL, seconds=WAIT_SECONDS))
    status = _status({name for name, finding in found.items() if not finding.is_up})
    body = {
        "status": status,
        "dependencies": {
            name: {"up": finding.is_up, "needed": name in NEEDED, "ms": round(finding.seconds * 1000, 1)}
            for name, finding in found.items()
        },
    }
    return _answer(request, body, status=503 if status == UNAVAILABLE else 200)


def _status(missing: set[str]) -> str:
    if missing & NEEDED:
        return UNAVAILABLE
    return DEGRADED if missing else READY


def _answer(request: HttpRequest, body: Mapping[str, Any], *, status: int = 200) -> HttpResponse:
    if request.method not in SAFE:
        return HttpResponseNotAllowed(sorted(SAFE))
    return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})
