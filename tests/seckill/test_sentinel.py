"""The stock behind Sentinels: a master dies and another takes over, a master is demoted; the sale goes on."""

import os
import time
from collections.abc import Iterator

import pytest
from django.utils import timezone
from pytest_django import Settings

from benchmarks.servers.sentinels import SERVICE, RedisWithSentinels, redis_with_sentinels
from config.checks import check_stock_redis
from config.doctor.redis_servers import examine_stock_redis
from config.redis_urls import stock_of
from seckill.errors import GateUnavailable
from seckill.gate.connection import forget_connections
from seckill.purchase import purchase
from seckill.settlement import settle_bucket
from tests.plugin import ROOT
from tests.support.asgi import forget_pipeline
from tests.support.rush import Rush, sweeping
from tests.support.shop import buy, make_ticket, make_tickets, open_sale
from tests.support.state import assert_settled_state
from tests.support.web import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.one_server]

OPEN_AGAIN_SECONDS_MAX = 15
UNITS = 200


@pytest.fixture
def watched(settings: Settings) -> Iterator[RedisWithSentinels]:
    """The stock on a Redis that Sentinels watch."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    with redis_with_sentinels(directory=ROOT / "var" / "test" / f"sentinels-{worker}") as them:
        wait_until(them.is_ready, seconds=20)
        settings.CACHES = {**settings.CACHES, "stock": stock_of(them.url, connections=8)}
        yield them
    forget_connections()
    forget_pipeline()


def test_a_master_that_dies_and_one_that_is_demoted(watched: RedisWithSentinels) -> None:
    """Both times: unavailable for some seconds, found by the run id, rebuilt, and nobody is told "sold out"."""
    shop = open_sale(units=UNITS)
    tickets = make_tickets(shop, UNITS)
    first = watched.master()
    assert check_stock_redis(databases=["default"]) == []
    assert any(f.what == "it is a master" for f in examine_stock_redis())
    rush = Rush()
    with sweeping(), rush.of(tickets[: UNITS // 2], pause=0.02):
        wait_until(lambda: len(rush.answers) > UNITS // 8, seconds=20)
        killed_at = time.monotonic()
        first.kill()
    assert rush.seconds_without(since=killed_at) < OPEN_AGAIN_SECONDS_MAX
    second = watched.master()
    assert second is not first

    first.start()
    wait_until(lambda: is_replica(watched, first.port), seconds=20)
    wait_until(watched.is_ready, seconds=20)
    with sweeping(), rush.of(tickets[UNITS // 2 :], pause=0.02):
        wait_until(lambda: len(rush.answers) > UNITS * 5 // 8, seconds=20)
        with watched.client(watched.sentinels[0]) as client:
            client.execute_command("SENTINEL FAILOVER", SERVICE)
        demoted_at = time.monotonic()
        wait_until(lambda: watched.master() is first, seconds=20)
    assert rush.seconds_without(since=demoted_at) < OPEN_AGAIN_SECONDS_MAX
    assert all("-" in answer for answer in rush.answers.values())
    assert [rush.buy(ticket) for ticket in tickets] == [rush.answers[ticket] for ticket in tickets]
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert_settled_state(shop, sold=UNITS)


def is_replica(watched: RedisWithSentinels, port: int) -> bool:
    server = next(server for server in watched.servers if server.port == port)
    with watched.client(server) as client:
        info = client.info("replication")
    return bool(info["role"] == "slave" and info["master_link_status"] == "up")


def test_a_demoted_master_that_keeps_its_connections_is_left(watched: RedisWithSentinels) -> None:
    """CASES 18: READONLY is an outage, and the next call asks the Sentinels who is the master."""
    shop = open_sale(units=2)
    first, second = watched.servers
    (ticket,) = make_tickets(shop, 1)
    buy(make_ticket(shop))
    with watched.client(first) as client:
        client.replicaof("127.0.0.1", second.port)
        try:
            with pytest.raises(GateUnavailable):
                purchase(ticket=ticket, quantity=1)
        finally:
            client.replicaof("NO", "ONE")
    assert "-" in buy(ticket)
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert_settled_state(shop, sold=2)
