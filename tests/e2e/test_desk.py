"""The operator's monitor while buyers saturate the shop."""

import json
import threading
import time
from collections.abc import Sequence
from statistics import quantiles
from urllib.request import Request, urlopen

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from benchmarks.shop import Shop as ShopProcesses
from tests.support.shop import make_tickets, open_sale
from tests.support.web import Browser, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("all_running")]

CROWD = 48
UNITS = 400
SECONDS = 12.0
OPERATORS = 3
P99_SECONDS_MAX = 1.0
# So many answers a second on two cores that also run the servers, the worker and the crowd: it is busy.
BUSY_PER_SECOND = 150


def cookie_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def buy_until(*, port: int, tickets: Sequence[str], ends_at: float, answers: list[int]) -> None:
    """Buy with one ticket after the other, and again from the first, without a pause."""
    browser = Browser(port=port)
    number = 0
    while time.monotonic() < ends_at:
        status, _ = browser.purchase(tickets[number % len(tickets)])
        answers.append(status)
        number += 1
    browser.close()


def watch_until(*, url: str, cookie: str, ends_at: float, seconds: list[float], seen: list[dict[str, object]]) -> None:
    """Ask as the page does, each time by a connection of its own."""
    while time.monotonic() < ends_at:
        begun = time.monotonic()
        with urlopen(Request(url, headers={"Cookie": cookie}), timeout=10) as answer:  # noqa: S310  our own shop
            seen.append(json.loads(answer.read()))
        seconds.append(time.monotonic() - begun)
        time.sleep(0.1)


def test_the_monitor_answers_while_the_shop_is_saturated(running: ShopProcesses) -> None:
    """48 buyers without a pause, three operators: p99 below a second, and what is shown is true in the end."""
    shop = open_sale(units=UNITS)
    tickets = make_tickets(shop, CROWD * 12)
    cookie = cookie_of(User.objects.create_superuser("watcher"))
    url = f"{running.url}/admin/monitor/{shop.sale.pk}/now.json"
    ends_at = time.monotonic() + SECONDS
    answers: list[int] = []
    seconds: list[float] = []
    seen: list[dict[str, object]] = []
    threads = [
        threading.Thread(
            target=buy_until,
            kwargs={"port": running.web.port, "tickets": tickets[n::CROWD], "ends_at": ends_at, "answers": answers},
        )
        for n in range(CROWD)
    ] + [
        threading.Thread(
            target=watch_until,
            kwargs={"url": url, "cookie": cookie, "ends_at": ends_at, "seconds": seconds, "seen": seen},
        )
        for _ in range(OPERATORS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) / SECONDS > BUSY_PER_SECOND
    assert set(answers) <= {202, 409, 429}
    assert quantiles(seconds, n=100)[98] < P99_SECONDS_MAX
    assert any(float(str(found["sums"]["accepted_rate"] or 0)) > 0 for found in seen)  # type: ignore[index]
    assert any(float(str(found["sums"]["sold_out_rate"] or 0)) > 0 for found in seen)  # type: ignore[index]

    def last_look() -> dict[str, object]:
        with urlopen(Request(url, headers={"Cookie": cookie}), timeout=10) as answer:  # noqa: S310  our own shop
            sums: dict[str, object] = json.loads(answer.read())["sums"]
        return sums

    wait_until(lambda: last_look()["sold"] == UNITS, seconds=20)
    # A process adds up what it has counted once a second.
    wait_until(lambda: last_look()["sold_out"] == answers.count(409), seconds=5)
    sums = last_look()
    assert (sums["left"], sums["queued"], sums["accepted"]) == (0, 0, UNITS)
