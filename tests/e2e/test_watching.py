"""Watching the running shop: it answers while it is saturated, its processes count together, the doctor is content."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from http.client import HTTPConnection
from statistics import quantiles
from typing import Any

import pytest
from django_celery_beat.models import PeriodicTask

from benchmarks.servers.process import HOST
from benchmarks.shop import ROOT
from benchmarks.shop import Shop as ShopProcesses
from orders.models import Order
from tests.e2e.conftest import METRICS_TOKEN
from tests.support.scrape import Samples, samples_of, value
from tests.support.shop import make_tickets, open_sale
from tests.support.web import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("all_running")]

CONNECTIONS = 64
SATURATED_SECONDS = 5
NAMES = ("mysql", "stock_redis", "cache_redis", "broker")


def ask(port: int, path: str, **headers: str) -> tuple[int, str]:
    connection = HTTPConnection(HOST, port, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def scrape(port: int) -> Samples:
    status, text = ask(port, "/metrics", Authorization=f"Bearer {METRICS_TOKEN}")
    assert status == 200
    return samples_of(text)


@contextmanager
def saturated(port: int, tickets: list[str]) -> Iterator[dict[str, int]]:
    """A crowd that leaves no thread of the shop idle; afterwards what it was answered."""
    command = [sys.executable, "-m", "tests.support.hammer", str(os.getpid()), str(port), str(CONNECTIONS)]
    answers: dict[str, int] = {}
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as crowd:
        assert crowd.stdin is not None
        assert crowd.stdout is not None
        crowd.stdin.write("\n".join(tickets))
        crowd.stdin.close()
        assert crowd.stdout.readline() == "ready\n"
        try:
            yield answers
        finally:
            crowd.terminate()
            answers.update(json.loads(crowd.stdout.readline()))


def test_metrics_and_health_answer_while_the_shop_is_saturated(running: ShopProcesses) -> None:
    """p99 below a second, with 64 buyers who never pause; and what was counted is what the crowd was answered."""
    shop, port = open_sale(units=100), running.web.port
    tickets = make_tickets(shop, 640)
    before = scrape(port)
    seconds: list[float] = []
    with saturated(port, tickets) as answers:
        end = time.monotonic() + SATURATED_SECONDS
        while time.monotonic() < end:
            for path in ("/metrics", "/readyz", "/livez"):
                began = time.monotonic()
                status, _ = ask(port, path, Authorization=f"Bearer {METRICS_TOKEN}")
                seconds.append(time.monotonic() - began)
                assert status == 200, path
    wait_until(lambda: Order.objects.count() == 100, seconds=20)
    assert sum(answers.values()) > 1_000 * SATURATED_SECONDS / 2, answers
    assert quantiles(seconds, n=100)[98] < 1

    def counted(outcome: str) -> float:
        name = "seckill_purchases_total"
        return value(scrape(port), name, outcome=outcome) - value(before, name, outcome=outcome)

    # What was under way when the crowd left was counted, and answered to nobody; a scrape may be a second old.
    for outcome, number in (("accepted", answers["202"]), ("sold_out", answers["409"])):
        wait_until(partial(lambda o, n: n <= counted(o) <= n + CONNECTIONS, outcome, number), seconds=5)


def test_processes_of_the_host_are_counted_and_every_server_is_up(running: ShopProcesses) -> None:
    told = scrape(running.web.port)
    assert [value(told, "seckill_up", dependency=name) for name in NAMES] == [1, 1, 1, 1]
    roles = {role: value(told, "seckill_processes", role=role) for role in ("web", "worker", "beat")}
    assert roles == {"web": 2, "worker": 2, "beat": 1}
    status, text = ask(running.web.port, "/readyz")
    assert (status, json.loads(text)["status"]) == (200, "ready")
    assert ask(running.web.port, "/metrics")[0] == 404


def lines_of(log: str, running: ShopProcesses) -> list[dict[str, Any]]:
    text = (running.directory / f"{log}.log").read_text()
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_a_task_s_lines_carry_the_request_that_caused_it(running: ShopProcesses) -> None:
    """From the buyer's click to the worker's line; and no line holds the ticket."""
    shop = open_sale(units=1)
    (ticket,) = make_tickets(shop, 1)
    request_id = f"click-{shop.pool.pk}-of-somebody"
    with closing(HTTPConnection(HOST, running.web.port, timeout=10)) as connection:
        headers = {"Content-Type": "application/json", "X-Request-Id": request_id}
        connection.request("POST", "/api/v1/purchases/", json.dumps({"ticket": ticket, "quantity": 1}), headers)
        assert connection.getresponse().status == 202

    def lines(log: str) -> list[dict[str, Any]]:
        return [line for line in lines_of(log, running) if line.get("request_id") == request_id]

    wait_until(lambda: "seckill.settle" in {line.get("task") for line in lines("worker")}, seconds=10)
    assert all(len(line["task_id"]) == 36 for line in lines("worker"))
    wait_until(lambda: lines("web"), seconds=5)
    (web,) = lines("web")
    assert (web["logger"], web["status"], web["route"]) == ("shop.requests", 202, "api/v1/purchases/")
    for log in ("web", "worker", "beat"):
        assert ticket not in (running.directory / f"{log}.log").read_text()


def test_the_doctor_is_content_with_a_sound_deployment(
    running: ShopProcesses, test_environment: dict[str, str]
) -> None:
    """In a process of its own, with the settings of production."""
    wait_until(PeriodicTask.objects.filter(task="seckill.sweep", last_run_at__isnull=False).exists, seconds=30)
    environment = {
        **test_environment,
        "HTTPS": "1",
        "PUBLIC_URL": "https://shop.example",
        "SANDBOX": "0",
        "PAYMENT_PROVIDERS": "bank=orders.providers.sandbox.provider.SandboxProvider",
        "ALERT_WEBHOOK_URL": "https://alerts.example/",
        "ALERT_WEBHOOK_SECRET": "webhook-0123456789abcdef0123456789abcdef",
    }
    done = subprocess.run(
        [sys.executable, "manage.py", "doctor", "--json", "--web-threads", "8"],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    found = json.loads(done.stdout)["findings"]
    assert [one for one in found if one["verdict"] != "ok"] == []
    assert done.returncode == 0, done.stderr
    assert {one["topic"] for one in found} >= {"checks", "beat", "workers", "clocks", "database", "stock redis"}
