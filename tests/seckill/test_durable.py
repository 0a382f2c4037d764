"""Durable mode: no reservation that a buyer was told of is lost with the power or with the server."""

import threading
from collections.abc import Iterator

import pytest
from django.utils import timezone
from pytest_django import Settings
from redis import Redis

from benchmarks.servers import PrivateServers, Server
from seckill.errors import GateUnavailable
from seckill.gate.connection import connection_of_this_thread, raw_client
from seckill.models import Reservation
from seckill.order_numbers import bucket_of
from seckill.polling import PurchaseState, purchase_status
from seckill.purchase import purchase
from seckill.rebuild import rebuild_bucket
from seckill.settlement import settle_bucket
from seckill.sweep import examine
from seckill.tickets import read_ticket
from tests.support.aliases import point
from tests.support.power import Powered, powered_redis, replica_of
from tests.support.shop import Shop, make_ticket, make_tickets, open_sale
from tests.support.web import wait_until

THREADS = 4


def buy_all(tickets: list[str], told: list[str]) -> None:
    """Buy until Redis is gone; what was accepted is told."""
    for ticket in tickets:
        try:
            told.append(purchase(ticket=ticket, quantity=1).order_no)
        except GateUnavailable:
            return


def rush(shop: Shop, *, tickets: list[str], redis: Powered, told_min: int) -> list[str]:
    """Cut the power while several buy, as soon as so many were told; return all who were."""
    told: list[str] = []
    threads = [threading.Thread(target=buy_all, args=(tickets[n::THREADS], told)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(told) >= told_min, seconds=20)
    redis.cut_power()
    for thread in threads:
        thread.join()
    assert told_min <= len(told) < len(tickets)
    return told


def receipts(shop: Shop) -> set[str]:
    """The order numbers that Redis knows."""
    return {number.decode() for number in raw_client().hkeys(shop.bucket.keys[3])} - {"#epoch"}


@pytest.mark.slow
def test_a_power_cut_loses_nothing_that_a_buyer_was_told_of(settings: Settings) -> None:
    with powered_redis(policy="always") as redis:
        point(settings, "stock", redis.url)
        shop = open_sale(units=2_000)
        told = rush(shop, tickets=make_tickets(shop, 800), redis=redis, told_min=100)
        redis.server.start()
        assert set(told) <= receipts(shop)
        assert examine(bucket=shop.bucket)
        rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
        settle_bucket(bucket=shop.bucket, clock=timezone.now)
        assert set(told) <= set(Reservation.objects.filter(state="SETTLED").values_list("order_no", flat=True))


@pytest.mark.slow
def test_control_a_power_cut_with_everysec_loses_what_buyers_were_told_of(settings: Settings) -> None:
    with powered_redis(policy="everysec") as redis:
        point(settings, "stock", redis.url)
        shop = open_sale(units=2_000)
        tickets = make_tickets(shop, 5)
        wait_until(lambda: redis.unsynced_bytes() == 0, seconds=5)
        told: list[str] = []
        buy_all(tickets, told)
        assert len(told) == 5
        assert set(told) <= receipts(shop)
        redis.cut_power()
        redis.server.start()
        assert set(told) - receipts(shop)


@pytest.fixture
def replica(servers: PrivateServers, settings: Settings) -> Iterator[Server]:
    """A replica of the stock Redis, which each purchase has to reach."""
    settings.DURABLE_REPLICAS = 1
    settings.DURABLE_WAIT_MS = 100
    raw_client().config_set("repl-diskless-sync-delay", 0)
    with replica_of(servers.stock_redis.port) as server:
        raw_client().set("begun", 1)
        wait_until(lambda: raw_client().wait(1, 100) == 1, seconds=10)
        yield server
    raw_client().config_set("repl-diskless-sync-delay", 5)


def state(ticket: str) -> PurchaseState:
    claims = read_ticket(ticket)
    return purchase_status(order_no=claims.order_no, buyer_id=claims.buyer_id).state


def on_replica(server: Server, ticket: str) -> bool:
    order_no = read_ticket(ticket).order_no
    with Redis(port=server.port) as client:
        return bool(client.hexists(bucket_of(order_no).keys[3], order_no))


@pytest.mark.slow
def test_a_buyer_is_told_once_a_replica_has_it(replica: Server) -> None:
    """While it stands still he is asked to repeat, and a repeat learns no more; then it is his, once."""
    shop = open_sale(units=5)
    first, second = make_tickets(shop, 2)
    assert purchase(ticket=first, quantity=1).order_no == read_ticket(first).order_no
    assert on_replica(replica, first)
    replica.pause()
    for _ in range(2):
        with pytest.raises(GateUnavailable, match="0 of 1 replicas have it after 100 ms"):
            purchase(ticket=second, quantity=1)
    assert state(second) == PurchaseState.UNKNOWN
    replica.resume()
    assert purchase(ticket=second, quantity=1).order_no == read_ticket(second).order_no
    assert on_replica(replica, second)
    assert (state(first), state(second)) == (PurchaseState.QUEUED, PurchaseState.QUEUED)
    assert settle_bucket(bucket=shop.bucket, clock=timezone.now).entries == 2
    assert (state(first), state(second)) == (PurchaseState.CONFIRMED, PurchaseState.CONFIRMED)


@pytest.mark.slow
def test_a_repeat_over_another_connection_waits_as_well(replica: Server) -> None:
    """That connection has written nothing, and WAIT alone would tell it at once that every replica has it."""
    shop = open_sale(units=5)
    ticket = make_ticket(shop)
    replica.pause()
    with pytest.raises(GateUnavailable, match="0 of 1"):
        purchase(ticket=ticket, quantity=1)
    connection_of_this_thread().disconnect()
    with pytest.raises(GateUnavailable, match="0 of 1"):
        purchase(ticket=ticket, quantity=1)
    connection_of_this_thread().disconnect()
    assert state(ticket) == PurchaseState.UNKNOWN
    replica.resume()
    assert state(ticket) == PurchaseState.QUEUED


@pytest.mark.slow
@pytest.mark.parametrize("replicas_wanted", [0, 1])
def test_only_without_the_wait_a_buyer_is_told_of_what_no_replica_has(
    replica: Server, settings: Settings, replicas_wanted: int
) -> None:
    """The network between the two is gone, and with the server his reservation would be."""
    settings.DURABLE_REPLICAS = replicas_wanted
    shop = open_sale(units=5)
    ticket = make_ticket(shop)
    with Redis(port=replica.port) as client:
        client.replicaof("NO", "ONE")
    told: list[str] = []
    buy_all([ticket], told)
    assert len(told) == 1 - replicas_wanted
    assert not on_replica(replica, ticket)


@pytest.mark.slow
def test_with_too_few_replicas_nothing_is_written(replica: Server) -> None:
    raw_client().config_set("min-replicas-to-write", 1)
    try:
        shop = open_sale(units=5)
        ticket = make_ticket(shop)
        replica.stop()
        wait_until(lambda: raw_client().info("replication")["connected_slaves"] == 0, seconds=5)
        with pytest.raises(GateUnavailable, match="NOREPLICAS"):
            purchase(ticket=ticket, quantity=1)
        assert receipts(shop) == set()
        assert state(ticket) == PurchaseState.NOT_RESERVED
    finally:
        raw_client().config_set("min-replicas-to-write", 0)
