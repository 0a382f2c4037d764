"""A walk over every route of the API: what caches are told, the id of the request, the form of errors."""

import json
from collections.abc import Iterator
from functools import cache

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests.support.shop import make_buyers, open_sale

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
VALUES = {"int": "1", "str": "x", "slug": "x", "path": "x"}


@cache
def addresses() -> tuple[str, ...]:
    """One address for each route below ``/api/``."""
    return tuple(sorted(path for path in _paths(get_resolver(), "/") if path.startswith("/api/")))


def _paths(resolver: URLResolver, prefix: str) -> Iterator[str]:
    for pattern in resolver.url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _paths(pattern, route)
        elif isinstance(pattern, URLPattern):
            for name, converter in pattern.pattern.converters.items():
                kind = type(converter).__name__.removesuffix("Converter").lower().replace("string", "str")
                route = route.replace(f"<{kind}:{name}>", VALUES[kind])
            yield route


def visitors() -> dict[str, Client]:
    buyer, operator = Client(), Client()
    buyer.force_login(make_buyers(1)[0])
    operator.force_login(User.objects.create_superuser("walker"))
    return {"nobody": Client(), "a buyer": buyer, "an operator": operator}


def test_the_walk_knows_the_routes() -> None:
    assert {"/api/v1/sales/", "/api/v1/sales/1/", "/api/v1/purchases/x/", "/api/v1/items/1/ticket/"} <= set(addresses())
    assert len(addresses()) >= 12


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_answer_tells_caches_what_to_do(method: str) -> None:
    """CASES 40d: what is about one caller is kept by nobody, what is kept is about nobody."""
    open_sale()
    for name, client in visitors().items():
        for address in addresses():
            response = client.generic(method, address, b"{}", content_type="application/json")
            where = (name, method, address, response.status_code)
            kept = response["Cache-Control"]
            assert response.status_code < 500, where
            assert kept == "no-store" or kept.startswith("public, max-age="), where
            assert len(response["X-Request-Id"]) == 32, where
            if kept != "no-store":
                assert response.status_code in {200, 304}, where
                assert not response.cookies, where
                assert "Cookie" not in response["Vary"], where
            if response.status_code >= 400:
                assert response["Content-Type"] == "application/problem+json", where
                assert method == "HEAD" or json.loads(response.content)["status"] == response.status_code, where


@pytest.mark.slow
def test_no_call_needs_patch_or_put() -> None:
    """Some clients of small programs have neither."""
    for client in visitors().values():
        for address in addresses():
            for method in ("PUT", "PATCH", "DELETE"):
                response = client.generic(method, address, b"{}", content_type="application/json")
                assert response.status_code in {401, 403, 405}, (method, address)
