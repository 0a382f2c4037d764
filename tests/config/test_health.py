"""Health pages: alive touches nothing, ready asks every server and waits for none."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from benchmarks.servers import PrivateServers
from benchmarks.servers.process import Server
from rest.memory import forget_everything
from tests.support.aliases import NOWHERE, point

NAMES = ("mysql", "stock_redis", "cache_redis", "broker")


@contextmanager
def standing_still(*stopped: Server) -> Iterator[None]:
    """Servers that are stopped by SIGSTOP: they take connections and answer nothing."""
    for server in stopped:
        server.pause()
    try:
        yield
    finally:
        for server in stopped:
            server.resume()


def ask() -> tuple[int, str, dict[str, bool], float]:
    """Ask whether the process is ready; return status, word, who is up, and how long it took."""
    forget_everything()
    began = time.monotonic()
    response = Client().get("/readyz")
    body: dict[str, Any] = response.json()
    up = {name: told["up"] for name, told in body["dependencies"].items()}
    return response.status_code, body["status"], up, time.monotonic() - began


def all_but(*missing: str) -> dict[str, bool]:
    return {name: name not in missing for name in NAMES}


def test_ready() -> None:
    assert ask()[:3] == (200, "ready", all_but())
    response = Client().get("/readyz")
    assert response["Cache-Control"] == "no-store"
    assert response["Content-Type"] == "application/json"


def test_alive_touches_nothing(settings: Settings) -> None:
    point(settings, "stock", NOWHERE)
    point(settings, "default", NOWHERE)
    with CaptureQueriesContext(connection) as queries:
        response = Client().get("/livez")
    assert (response.status_code, response.json()) == (200, {"status": "alive"})
    assert len(queries) == 0


def test_a_balancer_may_ask_for_the_head_alone_and_nobody_may_post() -> None:
    for path in ("/livez", "/readyz"):
        assert Client().head(path).status_code == 200
        assert Client().post(path).status_code == 405


def test_machines_call_by_any_name_and_over_plain_http(settings: Settings) -> None:
    """A balancer calls the host by its address; a redirect to HTTPS would be no answer to it."""
    settings.SECURE_SSL_REDIRECT = True
    settings.ALLOWED_HOSTS = ["shop.example"]
    for path in ("/livez", "/readyz"):
        assert Client().get(path, headers={"Host": "10.1.2.3:8000"}).status_code == 200


def test_without_the_stock_redis_nothing_can_be_sold(settings: Settings) -> None:
    point(settings, "stock", NOWHERE)
    assert ask()[:3] == (503, "unavailable", all_but("stock_redis"))


@pytest.mark.slow
def test_servers_that_stand_still_are_not_waited_for(servers: PrivateServers) -> None:
    with standing_still(servers.database):
        status, word, up, seconds = ask()
    assert (status, word, up) == (200, "degraded", all_but("mysql"))
    assert seconds < 2
    with standing_still(servers.cache_redis):
        status, word, up, seconds = ask()
    assert (status, word, up) == (200, "degraded", all_but("cache_redis", "broker"))
    assert seconds < 2
    with standing_still(servers.stock_redis):
        status, word, up, seconds = ask()
    assert (status, word, up) == (503, "unavailable", all_but("stock_redis"))
    assert seconds < 2
    with standing_still(servers.database, servers.stock_redis, servers.cache_redis):
        status, word, up, seconds = ask()
    assert (status, word, up) == (503, "unavailable", all_but(*NAMES))
    assert seconds < 2
