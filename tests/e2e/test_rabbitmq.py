"""RabbitMQ as the broker: the shop runs by its URL, and its messages outlive a worker that was killed with one."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from pytest_django.plugin import DjangoDbBlocker

from benchmarks.servers.rabbitmq import RabbitMQ, rabbitmq
from benchmarks.shop import Shop as ShopProcesses
from orders.models import Order
from seckill.outcomes import lock_bucket
from tests.e2e.conftest import ROOT
from tests.support.locks import is_bucket_lock_wanted
from tests.support.shop import make_tickets, open_sale
from tests.support.state import assert_settled_state
from tests.support.web import Browser, wait_until

pytestmark = pytest.mark.slow

QUEUES = {"settle", "sweep", "slow", "archive", "alerts", "money"}
# Nobody sweeps here: beat does not run, so only a wake-up brings an order about.
UNITS = 50


@pytest.fixture(scope="module")
def broker() -> Iterator[RabbitMQ]:
    with rabbitmq(directory=ROOT / "var" / "test" / "rabbitmq") as running:
        yield running


@pytest.fixture
def shop(
    broker: RabbitMQ, test_environment: dict[str, str], django_db_blocker: DjangoDbBlocker
) -> Iterator[ShopProcesses]:
    """The web and a worker, and no beat."""
    environment = {**test_environment, "BROKER_URL": broker.url}
    with ShopProcesses(directory=ROOT / "var" / "test" / "shop-on-rabbitmq", environment=environment) as processes:
        for server in (processes.web, processes.worker):
            server.launch()
        for server in (processes.web, processes.worker):
            server.await_ready()
        yield processes


def listed(broker: RabbitMQ, what: str, *columns: str) -> list[dict[str, Any]]:
    """Ask the broker for a list of what it has."""
    path, arguments, environment = broker.command("rabbitmqctl", "--quiet", "--formatter=json", what, *columns)
    done = subprocess.run([path, *arguments], env=environment, check=True, capture_output=True, text=True)
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def buy(shop: ShopProcesses, tickets: list[str]) -> list[str]:
    browser = Browser(port=shop.web.port)
    try:
        return [browser.buy(ticket) for ticket in tickets]
    finally:
        browser.close()


def wait_for_orders(number: int) -> None:
    wait_until(lambda: Order.objects.count() == number, seconds=15)


def test_wake_ups_come_by_quorum_queues_and_are_confirmed(broker: RabbitMQ, shop: ShopProcesses) -> None:
    sale = open_sale(units=UNITS)
    assert all("-" in answer for answer in buy(shop, make_tickets(sale, UNITS)))
    wait_for_orders(UNITS)
    assert_settled_state(sale, sold=UNITS)
    queues = {row["name"]: row["type"] for row in listed(broker, "list_queues", "name", "type")}
    assert {name: queues.get(name) for name in QUEUES} == dict.fromkeys(QUEUES, "quorum")
    publishing = [row for row in listed(broker, "list_channels", "confirm", "consumer_count") if row["confirm"]]
    assert publishing


def test_a_message_whose_worker_was_killed_comes_again(broker: RabbitMQ, shop: ShopProcesses) -> None:
    sale = open_sale(units=UNITS)
    with transaction.atomic():
        lock_bucket(sale.bucket)
        buy(shop, make_tickets(sale, 1))
        wait_until(is_bucket_lock_wanted, seconds=10)
        shop.worker.kill()
    assert not Order.objects.exists()
    shop.worker.start()
    wait_for_orders(1)
    assert_settled_state(sale, sold=1)


def test_a_broker_that_is_gone_delays_no_purchase_and_is_told_afterwards(broker: RabbitMQ, shop: ShopProcesses) -> None:
    sale = open_sale(units=UNITS)
    tickets = make_tickets(sale, 3)
    buy(shop, tickets[:1])
    wait_for_orders(1)
    broker.node.kill()
    assert all("-" in answer for answer in buy(shop, tickets[1:]))
    broker.node.start()
    wait_for_orders(3)
    assert_settled_state(sale, sold=3)
