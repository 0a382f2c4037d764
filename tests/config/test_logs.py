"""Log lines: one per request, none per refused purchase, with ids, and without anybody's secrets."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from structlog.contextvars import bound_contextvars, get_contextvars

from config.batched_lines import batched_lines
from config.celery import app
from config.lane import FastLane
from config.logs import BEFORE, RequestLine, logging_settings, without_secrets
from config.task_signals import begin_task, end_task
from metrics.definitions import TASKS
from seckill import wakeups
from seckill.tickets import read_ticket
from tests.config.test_lane import body_of, call, environ_of
from tests.support.api import PURCHASES
from tests.support.asgi import django
from tests.support.broker import broker, wait_for_message
from tests.support.shop import buy, make_buyers, make_ticket, make_tickets, open_sale

PASSWORD = "correct horse battery"
MAIL = "ann.lee@example.com"


class Lines(logging.Handler):
    """Keeps every line as the settings would have it written."""

    def __init__(self) -> None:
        super().__init__(level=logging.DEBUG)
        structured = dict(django_settings.LOGGING["formatters"]["structured"])
        self._structured: logging.Formatter = structured.pop("()")(**structured)
        self.written: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Write with the formatter that the settings give the logger."""
        formatter = RequestLine() if record.name == "shop.requests" else self._structured
        self.written.append(formatter.format(record))

    def of(self, logger: str) -> list[dict[str, Any]]:
        """The lines of one logger, read again."""
        return [line for line in map(json.loads, self.written) if line["logger"] == logger]


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, names = Lines(), ("", "shop.requests")
    for name in names:
        logging.getLogger(name).addHandler(handler)
    yield handler
    for name in names:
        logging.getLogger(name).removeHandler(handler)


def test_one_line_for_each_request(lines: Lines) -> None:
    (buyer,) = make_buyers(1)
    client = Client()
    client.force_login(buyer)
    client.get("/api/v1/me/", headers={"X-Request-Id": "from-a-client"})
    client.get("/api/v1/sales/4711/")
    client.get("/nothing/of/the/kind")
    Client().get("/livez")
    me, sale, nothing = lines.of("shop.requests")
    assert me["ms"] >= 0
    wanted: dict[str, Any] = {"event": "request", "level": "info", "logger": "shop.requests"}
    wanted |= {"request_id": "from-a-client"}
    wanted |= {"route": "api/v1/me/", "method": "GET", "status": 200, "account": buyer.pk}
    assert {name: value for name, value in me.items() if name not in {"ms", "timestamp"}} == wanted
    assert (sale["route"], sale["status"], sale["sale_id"]) == ("api/v1/sales/<int:sale_id>/", 404, 4711)
    assert (nothing["route"], nothing["status"]) == ("unknown", 404)


@pytest.mark.parametrize("is_fast", [True, False])
def test_a_refused_purchase_is_counted_and_gets_no_line(
    lines: Lines, capsys: pytest.CaptureFixture[str], *, is_fast: bool
) -> None:
    """Nor does a poll by ticket; an accepted purchase gets its one."""
    door: Any = FastLane(django()) if is_fast else django()
    first, second = make_tickets(open_sale(units=1), 2)
    for body in (body_of(first), body_of(second), body_of("forged"), "no json at all"):
        call(door, environ_of("POST", PURCHASES, body))
    number = read_ticket(first).order_no
    call(door, environ_of("GET", f"{PURCHASES}{number}/", HTTP_AUTHORIZATION=f"Ticket {first}"))
    if is_fast:
        batched_lines.flush()
        lines.written += [line for line in capsys.readouterr().err.splitlines() if '"shop.requests"' in line]
    (accepted,) = lines.of("shop.requests")
    assert (accepted["route"], accepted["status"], accepted["order_no"]) == ("api/v1/purchases/", 202, number)
    assert len(accepted["request_id"]) == 32
    assert len(lines.written) == 1, lines.written


def test_no_secret_comes_into_the_log(lines: Lines, caplog: pytest.LogCaptureFixture) -> None:
    """By the ways of a buyer who does everything, and some of it wrong, at every level."""
    for name in ("", "shop.requests", "django.request", "axes", "seckill", "accounts"):
        caplog.set_level(logging.DEBUG, logger=name)
    ann = User.objects.create_user("ann", email=MAIL, password=PASSWORD)
    ticket = make_ticket(open_sale())
    client = Client(raise_request_exception=False)

    def post(path: str, body: dict[str, Any], **headers: str) -> Any:
        return client.post(f"/api/v1/{path}", body, content_type="application/json", headers=headers)

    post("tokens/", {"username": MAIL, "password": "a wrong guess 17"})
    tokens = post("tokens/", {"username": "ann", "password": PASSWORD}).json()
    post("accounts/", {"username": "ann", "password": "another secret 18", "email": MAIL})
    client.get("/api/v1/me/", headers={"Authorization": f"Bearer {tokens['access']}"})
    client.get("/api/v1/me/", headers={"Authorization": f"Bearer {tokens['access']}x"})
    client.post("/accounts/password-reset/", {"email": MAIL})
    client.get("/accounts/password-reset/MQ/c8s3cr-3tt0k3nofareset/")
    client.force_login(ann)
    post("purchases/", {"ticket": ticket, "quantity": 1})
    post("purchases/", {"ticket": f"{ticket}x", "quantity": 1})
    client.get(f"/api/v1/purchases/{read_ticket(ticket).order_no}/", headers={"Authorization": f"Ticket {ticket}"})
    unforeseen = ValueError(f"nobody foresaw {ticket} of {MAIL}")
    logging.getLogger("seckill").error("broken by %s", f"Bearer {tokens['access']}", exc_info=unforeseen)
    session = client.cookies["sessionid"].value
    secrets = {PASSWORD, "a wrong guess 17", "another secret 18", MAIL, ticket, session, "c8s3cr-3tt0k3nofareset"}
    text = "\n".join(lines.written)
    assert "ValueError" in text
    assert not [secret for secret in (*secrets, tokens["access"], tokens["refresh"]) if secret in text]
    assert len(mail.outbox) == 0  # it is sent by a task


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("to ann.lee+1@mail.example.com: refused", "to <address>: refused"),
        ("mysql://shop:pa55word@db:3306/x", "mysql://shop:<secret>@db:3306/x"),
        ("redis://:pa55word@cache:6379/1", "redis://:<secret>@cache:6379/1"),
        ("Authorization: Bearer abcdefghijklmnopqrst", "Authorization: Bearer <secret>"),
        ("password=hunter2&next=/", "password=<secret>&next=/"),
        ("{'sessionid': 'abc123', 'x': 1}", "{'sessionid': '<secret>', 'x': 1}"),
        (
            "order 1-0-abcdef0123456789 of bucket 1:0 at 12:30:05",
            "order 1-0-abcdef0123456789 of bucket 1:0 at 12:30:05",
        ),
        ("Ticket matching query does not exist.", "Ticket matching query does not exist."),
    ],
)
def test_what_has_the_form_of_a_secret_is_cut_out(text: str, left: str) -> None:
    assert without_secrets(text) == left


def test_levels_can_be_set() -> None:
    made = logging_settings(is_for_people=False, level="WARNING", levels={"seckill": "DEBUG", "shop.requests": "ERROR"})
    assert made["root"]["level"] == "WARNING"
    assert made["loggers"]["seckill"] == {"level": "DEBUG"}
    requests = made["loggers"]["shop.requests"]
    assert (requests["level"], requests["propagate"]) == ("ERROR", False)
    assert made["formatters"]["structured"]["foreign_pre_chain"] == BEFORE


def test_a_task_s_lines_have_its_id_and_its_cause() -> None:
    """And the next one's do not have them any more."""
    task = app.tasks["seckill.settle"]
    before = TASKS.labels("seckill.settle", "success")._value.get()
    task.push_request(cause="a-request-of-somebody")
    try:
        begin_task(task_id="0815", task=task)
        assert get_contextvars() == {
            "task_id": "0815",
            "task": "seckill.settle",
            "request_id": "a-request-of-somebody",
        }
        end_task(task=task, state="SUCCESS")
    finally:
        task.pop_request()
    assert get_contextvars() == {}
    assert TASKS.labels("seckill.settle", "success")._value.get() == before + 1


def test_a_wake_up_carries_the_request_that_caused_it() -> None:
    shop = open_sale()
    with bound_contextvars(request_id="the-buyers-request"):
        buy(make_ticket(shop))
    wait_for_message(shop.bucket)
    with bound_contextvars(request_id="another-request"):
        app.send_task("seckill.sweep")
    wakeups.request_alerts()
    with broker() as client:
        (settle,) = [json.loads(raw) for raw in client.lrange("settle", 0, -1)]
        (swept,) = [json.loads(raw) for raw in client.lrange("sweep", 0, -1)]
    assert settle["headers"]["cause"] == "the-buyers-request"
    assert swept["headers"]["cause"] == "another-request"
