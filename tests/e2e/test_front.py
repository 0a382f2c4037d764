"""nginx, as ``deploy/nginx`` sets it up, in front of the running shop."""

import json
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmarks.servers.process import HOST
from benchmarks.shop import Shop as ShopProcesses
from seckill.tickets import read_ticket
from tests.support.front import Front, make_certificate, run_front
from tests.support.shop import make_tickets, open_sale

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("all_running")]

PURCHASES = "/api/v1/purchases/"
SALES = "/api/v1/sales/"
CALLS_AT_ONCE = 60


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("front"))


@pytest.fixture(scope="module")
def front(running: ShopProcesses, certificate: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """The shop behind nginx."""
    directory = tmp_path_factory.mktemp("shop-front")
    with run_front(certificate=certificate, directory=directory, upstreams=[running.web.port]) as front:
        yield front


class _Echo(BaseHTTPRequestHandler):
    """Says which headers have reached it."""

    def do_GET(self) -> None:
        """Answer with the headers, in JSON."""
        body = json.dumps({name.lower(): value for name, value in self.headers.items()}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture
def echo(certificate: Path, tmp_path: Path) -> Iterator[Front]:
    """Nginx before a server that says what it was told."""
    server = ThreadingHTTPServer((HOST, 0), _Echo)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    with run_front(certificate=certificate, directory=tmp_path, upstreams=[server.server_port]) as front:
        yield front
    server.shutdown()
    server.server_close()
    thread.join()


def test_plain_http_is_sent_to_https(front: Front) -> None:
    wire = HTTPConnection(HOST, front.plain_port, timeout=5)
    wire.request("GET", "/sales/1/?a=b", headers={"Host": HOST})
    answer = wire.getresponse()
    assert (answer.status, answer.getheader("Location")) == (308, f"https://{HOST}/sales/1/?a=b")
    wire.close()


def test_sales_are_kept_for_a_moment_and_the_shop_asked_once(front: Front) -> None:
    open_sale()
    replies = [front.call("GET", SALES) for _ in range(20)]
    assert {reply.status for reply in replies} == {200}
    assert [reply.headers["x-cache"] for reply in replies].count("HIT") >= 15
    assert len({reply.body for reply in replies if reply.headers["x-cache"] == "HIT"}) <= 2


def test_languages_are_kept_apart_and_who_is_logged_in_is_answered_by_the_shop(front: Front) -> None:
    sale = open_sale()
    path = f"{SALES}{sale.item.pool.sale_id}/"
    for language in ("en", "zh-hans", "en", "zh-hans"):
        reply = front.call("GET", path, Accept_Language=language)
        assert (reply.status, reply.headers["content-language"]) == (200, language)
    assert reply.headers["x-cache"] == "HIT"
    assert front.call("GET", path, Cookie="sessionid=somebody").headers["x-cache"] == "BYPASS"


def test_a_purchase_is_never_kept_and_the_same_ticket_gets_the_same_answer(front: Front) -> None:
    tickets = make_tickets(open_sale(units=10), 3)
    bodies = [json.dumps({"ticket": ticket, "quantity": 1}) for ticket in (*tickets, tickets[0])]
    replies = [front.call("POST", PURCHASES, body, Content_Type="application/json") for body in bodies]
    assert [reply.status for reply in replies] == [202] * 4
    numbers = [json.loads(reply.body)["order_no"] for reply in replies]
    assert numbers == [read_ticket(ticket).order_no for ticket in (*tickets, tickets[0])]
    assert all(reply.headers["cache-control"] == "no-store" and "x-cache" not in reply.headers for reply in replies)
    poll = front.call("GET", f"{PURCHASES}{numbers[0]}/", Authorization=f"Ticket {tickets[0]}")
    assert (poll.status, poll.headers["cache-control"]) == (200, "no-store")


def test_a_crowd_at_the_tickets_is_held_back_in_the_api_s_own_form(front: Front) -> None:
    path = f"/api/v1/items/{open_sale().item.pk}/ticket/"
    replies = [front.call("POST", path, "{}", Content_Type="application/json") for _ in range(CALLS_AT_ONCE)]
    held = [reply for reply in replies if reply.status == 429]
    assert {reply.status for reply in replies} == {401, 429}
    assert len(held) > CALLS_AT_ONCE // 4
    assert {json.loads(reply.body)["code"] for reply in held} == {"throttled"}
    assert {reply.headers["content-type"] for reply in held} == {"application/problem+json"}
    assert {reply.headers["retry-after"] for reply in held} == {"1"}


def test_what_a_client_says_of_himself_does_not_reach_the_shop(echo: Front) -> None:
    forged = {
        "X_Forwarded_For": "203.0.113.7",
        "X_Forwarded_Proto": "http",
        "X_Forwarded_Host": "evil.example",
        "X_Forwarded_Port": "1",
    }
    told = json.loads(echo.call("GET", "/", X_Request_Id="from-a-client-1", **forged).body)
    assert (told["x-forwarded-for"], told["x-forwarded-proto"], told["host"]) == (HOST, "https", HOST)
    assert "x-forwarded-host" not in told
    assert "x-forwarded-port" not in told
    assert told["x-request-id"] == "from-a-client-1"
    other = json.loads(echo.call("GET", "/", X_Request_Id="bad id\tof mine").body)
    assert len(other["x-request-id"]) == 32


def test_what_is_for_machines_stays_inside(front: Front) -> None:
    assert front.call("GET", "/metrics").status == 404
    assert front.call("GET", "/readyz").status == 404
    assert front.call("GET", "/livez").status == 200


def test_files_are_kept(front: Front) -> None:
    path = "/static/admin/css/base.css"
    first, second = front.call("GET", path), front.call("GET", path)
    assert (first.status, second.body) == (200, first.body)
