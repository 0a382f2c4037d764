"""Sessions while their Redis stands still or is gone: nobody is taken for a stranger, and nobody loses his cookie."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.backends.cache import KEY_PREFIX
from django.http import HttpResponseBase as Response
from django.test import Client
from django_redis import get_redis_connection

from benchmarks.servers import PrivateServers
from config.session_store import SessionStore
from tests.support.shop import make_buyers

COOKIE = settings.SESSION_COOKIE_NAME


@pytest.fixture
def buyer() -> User:
    (made,) = make_buyers(1)
    return made


@pytest.fixture
def client(buyer: User) -> Client:
    """Somebody who is logged in; what a view raises is answered, as in production."""
    made = Client(raise_request_exception=False)
    made.force_login(buyer)
    return made


@contextmanager
def away(servers: PrivateServers, how: str) -> Iterator[None]:
    leave, come_back = {
        "stalled": (servers.cache_redis.pause, servers.cache_redis.resume),
        "stopped": (servers.cache_redis.stop, servers.cache_redis.start),
    }[how]
    leave()
    try:
        yield
    finally:
        come_back()


def assert_told_to_come_again(response: Response) -> None:
    assert (response.status_code, response["Retry-After"]) == (503, "2")
    assert "no-store" in response["Cache-Control"]
    assert COOKIE not in response.cookies


@pytest.mark.parametrize("how", ["stalled", pytest.param("stopped", marks=pytest.mark.slow)])
@pytest.mark.parametrize("path", ["/api/v1/orders/", "/orders/", "/admin/"])
def test_who_cannot_be_recognised_comes_again(client: Client, servers: PrivateServers, how: str, path: str) -> None:
    with away(servers, how):
        response = client.get(path)
    assert_told_to_come_again(response)
    assert ('"code":"unavailable"' in response.content.decode()) == path.startswith("/api/")


def test_he_is_still_logged_in_when_it_answers_again(client: Client, servers: PrivateServers) -> None:
    with away(servers, "stalled"):
        assert_told_to_come_again(client.get("/orders/"))
    assert client.get("/orders/").status_code == 200
    assert client.get("/api/v1/orders/").status_code == 200


def test_a_session_that_cannot_be_written_is_no_log_in(buyer: User, servers: PrivateServers) -> None:
    buyer.set_password("correct horse battery")
    buyer.save()
    client = Client(raise_request_exception=False)
    with away(servers, "stalled"):
        response = client.post("/accounts/login/", {"username": buyer.username, "password": "correct horse battery"})
    assert response.status_code == 503
    assert COOKIE not in response.cookies


def test_a_session_that_was_written_and_cannot_be_written_again(client: Client, servers: PrivateServers) -> None:
    """The end of a request: what it has changed is kept nowhere, and the answer says so."""
    key = client.cookies[COOKIE].value
    store = SessionStore(key)
    store["color"] = "red"
    with away(servers, "stalled"):
        for ask in (store.save, store.create, store.delete, lambda: store.exists(key)):
            with pytest.raises(Exception, match="recognised"):
                ask()
    assert SessionStore(key).load()["_auth_user_id"]


def test_who_is_forgotten_is_a_stranger(client: Client) -> None:
    SessionStore(client.cookies[COOKIE].value).delete()
    response = client.get("/api/v1/orders/")
    assert response.status_code == 401
    assert response.cookies[COOKIE].value == ""


@pytest.mark.parametrize("garbage", [b"", b"garbage", b"17", b"\x80\x05\x95", pickle.dumps(["a list"])])
def test_what_cannot_be_read_is_forgotten(client: Client, garbage: bytes) -> None:
    """An outage passes by itself; this would not."""
    key = f"{KEY_PREFIX}{client.cookies[COOKIE].value}"
    (name,) = get_redis_connection("default").keys(f"*{key}")
    get_redis_connection("default").set(name, garbage)
    response = client.get("/api/v1/orders/")
    assert response.status_code == 401
    assert response.cookies[COOKIE].value == ""


def test_nobody_who_brings_no_session_needs_them(servers: PrivateServers) -> None:
    with away(servers, "stalled"):
        assert Client().get("/accounts/login/").status_code == 200
