"""A sale paused at the desk in the middle of a rush through HTTP, with its worker at work."""

import re
import threading
import time
from collections.abc import Sequence
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from benchmarks.shop import Shop as ShopProcesses
from seckill.gate.connection import raw_client
from seckill.models import Reservation
from seckill.states import ReservationState
from tests.support.shop import Shop, make_tickets, open_sale
from tests.support.state import assert_settled_state, numbers
from tests.support.web import Browser, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("all_running")]

CROWD = 12
TICKETS = 110
# So long is the rush under way before the click, and so long it goes on after it.
BEFORE_SECONDS = 1.2
AFTER_SECONDS = 1.5
BETWEEN_SECONDS = 0.025
ACCEPTED_MIN = 100
LATEST_MS = 1_000


class Operator:
    """Somebody with the permission to change sales, who presses buttons over HTTP."""

    def __init__(self, *, url: str) -> None:
        client = Client()
        client.force_login(User.objects.create_superuser("operator"))
        self._url = url
        self._cookie = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"

    def press(self, path: str) -> None:
        """Open the page of an action and confirm it."""
        with urlopen(Request(self._url + path, headers={"Cookie": self._cookie}), timeout=10) as answer:  # noqa: S310
            token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', answer.read().decode())
            csrf = re.search(rf"{settings.CSRF_COOKIE_NAME}=(\w+)", answer.headers["Set-Cookie"])
        assert token is not None
        assert csrf is not None
        self.clicked_ms = redis_ms()
        body = urlencode({"csrfmiddlewaretoken": token[1], "reason": "the price is wrong"}).encode()
        headers = {"Cookie": f"{self._cookie}; {settings.CSRF_COOKIE_NAME}={csrf[1]}"}
        with urlopen(Request(self._url + path, data=body, headers=headers), timeout=10) as answer:  # noqa: S310
            assert answer.status == 200


def redis_ms() -> int:
    seconds, microseconds = raw_client().time()
    return int(seconds) * 1_000 + int(microseconds) // 1_000


def last_accepted_ms(shop: Shop) -> int:
    """When the gate accepted its last purchase, by its own clock; the stream keeps it when the entry is settled."""
    last = raw_client().xinfo_stream(shop.bucket.keys[4])["last-generated-id"]
    return int(last.decode().partition("-")[0] if isinstance(last, bytes) else str(last).partition("-")[0])


class Rush:
    """Buyers who each try one ticket after the other, until they are told to stop."""

    def __init__(self, *, port: int, tickets: Sequence[str]) -> None:
        self.answers: dict[str, str] = {}
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._buy, args=(port, tickets[number::CROWD])) for number in range(CROWD)
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Let the buyers go home."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def answered(self, code: str) -> list[str]:
        """The tickets that got an answer; an order number is "accepted"."""
        return [ticket for ticket, answer in self.answers.items() if (answer if "-" not in answer else "") == code]

    def _buy(self, port: int, tickets: Sequence[str]) -> None:
        browser = Browser(port=port)
        for ticket in tickets:
            self.answers[ticket] = browser.buy(ticket)
            if self._is_over.wait(timeout=BETWEEN_SECONDS):
                break
        browser.close()


def test_nothing_is_accepted_a_second_after_the_click_and_nothing_is_lost(running: ShopProcesses) -> None:
    shop = open_sale(units=CROWD * TICKETS)
    tickets = make_tickets(shop, CROWD * TICKETS)
    operator = Operator(url=running.url)
    rush = Rush(port=running.web.port, tickets=tickets)
    time.sleep(BEFORE_SECONDS)
    operator.press(f"/admin/sales/{shop.sale.pk}/pause/")
    time.sleep(AFTER_SECONDS)
    rush.end()
    assert last_accepted_ms(shop) <= operator.clicked_ms + LATEST_MS
    accepted, paused = rush.answered(""), rush.answered("paused")
    assert len(accepted) > ACCEPTED_MIN
    assert len(paused) > ACCEPTED_MIN
    assert len(accepted) + len(paused) == len(rush.answers)

    operator.press(f"/admin/sales/{shop.sale.pk}/resume/")
    browser = Browser(port=running.web.port)
    late = {ticket: browser.buy(ticket) for ticket in paused[:20]}
    assert all("-" in answer for answer in late.values())
    assert {ticket: browser.buy(ticket) for ticket in accepted[:20]} == {
        ticket: rush.answers[ticket] for ticket in accepted[:20]
    }
    browser.close()
    wait_until(lambda: numbers(shop).queue_length == 0, seconds=20)
    order_nos = {rush.answers[ticket] for ticket in accepted} | set(late.values())
    settled = Reservation.objects.filter(state=ReservationState.SETTLED).values_list("order_no", flat=True)
    assert set(settled) == order_nos
    assert_settled_state(shop, sold=len(order_nos))


def test_control_without_the_click_the_rush_goes_on(running: ShopProcesses) -> None:
    """The same crowd with nobody at the desk: purchases are accepted after that second, so the test above sees them."""
    shop = open_sale(units=CROWD * TICKETS)
    tickets = make_tickets(shop, CROWD * TICKETS)
    rush = Rush(port=running.web.port, tickets=tickets)
    time.sleep(BEFORE_SECONDS)
    unclicked_ms = redis_ms()
    time.sleep(AFTER_SECONDS)
    rush.end()
    assert last_accepted_ms(shop) > unclicked_ms + LATEST_MS
    wait_until(lambda: numbers(shop).queue_length == 0, seconds=20)
