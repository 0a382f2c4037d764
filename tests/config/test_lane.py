"""The fast lane beside Django's handler: the same to the last header, and what is not plainly in order goes on."""

import io
import json
from typing import Any

import pytest
from django.db import DatabaseError
from django.test import RequestFactory
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from config import lane as lane_module
from config.lane import FastLane
from seckill.gate.connection import raw_client
from seckill.tickets import read_ticket
from tests.support.api import PURCHASES
from tests.support.asgi import call_asgi, django
from tests.support.shop import make_buyers, make_tickets, open_sale, ticket_of
from tests.support.state import dump

JSON = "application/json"
GIVEN_ON = 299


class GivenOn:
    """Stands in Django's place and keeps what it is given."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        """Read, and answer as nobody else does."""
        self.bodies.append((await receive())["body"])
        await send({"type": "http.response.start", "status": GIVEN_ON, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def environ_of(method: str, path: str, body: str = "", **extra: str) -> dict[str, Any]:
    made = RequestFactory().generic(method, path, body, content_type=JSON, **extra).environ  # type: ignore[arg-type]
    raw: bytes = made["wsgi.input"].read(len(body.encode()))
    return {**made, "wsgi.input": io.BytesIO(raw)}


def call(application: Any, environ: dict[str, Any]) -> tuple[int, list[tuple[str, str]], bytes]:
    """Return status, headers in order without the request's id, and body."""
    status, headers, body = call_asgi(application, environ)
    return status, sorted(header for header in headers if header[0] != "X-Request-Id"), body


def body_of(ticket: str, quantity: int = 1) -> str:
    return json.dumps({"ticket": ticket, "quantity": quantity})


@pytest.mark.parametrize("language", ["", "zh-CN,zh;q=0.9", "fr", "en"])
def test_the_same_answers_as_django_s(language: str) -> None:
    """Both doors side by side, for what is accepted, refused with facts and without, throttled, and polled."""
    shop = open_sale(units=2, limit=3)
    first, second, third = make_tickets(shop, 3)
    extra = {"HTTP_ACCEPT_LANGUAGE": language} if language else {}
    number, ask = read_ticket(first).order_no, {"HTTP_AUTHORIZATION": f"Ticket {first}"}
    calls = [
        environ_of("POST", PURCHASES, body_of(first), **extra),
        environ_of("POST", PURCHASES, body_of(second, 3), **extra),
        environ_of("POST", PURCHASES, body_of(first, 2), **extra),
        environ_of("POST", PURCHASES, body_of(f"{third}x"), **extra),
        environ_of("GET", f"{PURCHASES}{number}/", **extra, **ask),
        environ_of("GET", f"{PURCHASES}{read_ticket(second).order_no}/", **extra, **ask),
    ]
    lane = FastLane(GivenOn())
    for environ in calls:
        assert call(lane, environ) == call(django(), environ)
    statuses = [call(lane, environ)[0] for environ in calls]
    assert statuses == [202, 409, 409, 403, 200, 403]


def test_the_language_cookie_counts(settings: Settings) -> None:
    environ = environ_of("POST", PURCHASES, body_of("x"), HTTP_COOKIE=f"a=b; {settings.LANGUAGE_COOKIE_NAME}=zh-hans")
    answer = call(FastLane(GivenOn()), environ)
    assert answer == call(django(), environ)
    assert ("Content-Language", "zh-hans") in answer[1]


def test_what_is_not_plainly_in_order_goes_on_with_its_body() -> None:
    shop = open_sale()
    (ticket,) = make_tickets(shop, 1)
    good, number = body_of(ticket), read_ticket(ticket).order_no
    before = dump(shop.bucket)
    others = [
        environ_of("POST", PURCHASES, good, HTTP_ORIGIN="https://elsewhere.example"),
        environ_of("POST", PURCHASES, good, HTTP_ACCEPT="text/html"),
        environ_of("POST", PURCHASES, good, CONTENT_TYPE="text/plain"),
        environ_of("POST", PURCHASES, good, HTTP_HOST="elsewhere.example"),
        environ_of("POST", f"{PURCHASES}?format=json", good),
        environ_of("POST", PURCHASES, good[:-1]),
        environ_of("POST", PURCHASES, good.replace("1}", "true}")),
        environ_of("POST", PURCHASES, good.replace("1}", "1001}")),
        environ_of("PUT", PURCHASES, good),
    ]
    behind = GivenOn()
    lane = FastLane(behind)
    assert {call(lane, environ)[0] for environ in others} == {GIVEN_ON}
    assert behind.bodies == [environ["wsgi.input"].getvalue() for environ in others]
    for path in (
        PURCHASES,
        f"{PURCHASES}{number}/",
        f"{PURCHASES}{number}",
        f"{PURCHASES}{number}/x/",
        "/api/v1/time/",
    ):
        assert call(lane, environ_of("GET", path))[0] == GIVEN_ON
    assert dump(shop.bucket) == before


def test_a_shop_that_wants_https_redirects_before_anything_else(settings: Settings) -> None:
    shop = open_sale()
    environ = environ_of("POST", PURCHASES, body_of(make_tickets(shop, 1)[0]))
    settings.SECURE_SSL_REDIRECT = True
    before = dump(shop.bucket)
    assert call(FastLane(GivenOn()), environ)[0] == GIVEN_ON
    assert dump(shop.bucket) == before


def test_what_nobody_foresaw_is_logged_and_answered_by_django(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(**_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(lane_module, "apurchase", fail)
    environ = environ_of("POST", PURCHASES, body_of("x"))
    behind = GivenOn()
    assert call(FastLane(behind), environ)[0] == GIVEN_ON
    assert behind.bodies == [environ["wsgi.input"].getvalue()]
    assert "out of order" in caplog.text


def test_a_lost_database_connection_is_django_s_to_replace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Django looks after its connections before each call; the lane does so once a second."""

    async def fail(**_: object) -> None:
        raise DatabaseError(2006, "gone away")

    monkeypatch.setattr(lane_module, "apurchase", fail)
    environ = environ_of("POST", PURCHASES, body_of("x"))
    behind = GivenOn()
    assert call(FastLane(behind), environ)[0] == GIVEN_ON
    assert behind.bodies == [environ["wsgi.input"].getvalue()]


def test_a_purchase_takes_one_script_call_and_no_sql(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    shop = open_sale()
    first, second = (ticket_of(shop, buyer) for buyer in make_buyers(2))
    lane = FastLane(GivenOn())
    call(lane, environ_of("POST", PURCHASES, body_of(first)))
    raw_client().config_resetstat()
    with django_assert_num_queries(0):
        assert call(lane, environ_of("POST", PURCHASES, body_of(second)))[0] == 202
    assert raw_client().info("commandstats")["cmdstat_evalsha"]["calls"] == 1
