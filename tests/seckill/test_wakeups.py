"""Wake-ups: advisory. Dropped, doubled, late or never sent, they change nothing but the time it takes."""

import time
from statistics import quantiles

import pytest
from django.utils import timezone

from benchmarks.servers import PrivateServers
from seckill import wakeups
from seckill.gate.keys import BucketRef
from seckill.settlement import settle_bucket
from seckill.sweep import look_over
from seckill.tasks import settle, sweep_buckets
from seckill.wakeups import Publisher
from tests.support.broker import broker, settle_messages, wait_for_message
from tests.support.shop import Shop, buy, make_ticket, make_tickets, open_sale
from tests.support.state import assert_settled_state, numbers

RUSH = 200


def rush(shop: Shop, tickets: list[str]) -> list[float]:
    """Buy with all tickets, asking for a wake-up each time; return the seconds each purchase took."""
    seconds = []
    for ticket in tickets:
        started = time.monotonic()
        assert "-" in buy(ticket)
        wakeups.request(shop.bucket)
        seconds.append(time.monotonic() - started)
    return seconds


def p99(seconds: list[float]) -> float:
    return quantiles(seconds, n=100)[98]


def test_a_dropped_wake_up_is_replaced_by_the_sweep() -> None:
    """CASES 24: the message vanishes after it was published."""
    shop = open_sale()
    buy(make_ticket(shop))
    wait_for_message(shop.bucket)
    with broker() as client:
        client.delete("settle")
    assert look_over(now=timezone.now()).to_settle == [shop.bucket]
    sweep_buckets()
    assert settle_messages() == [shop.bucket]


def test_doubled_and_late_wake_ups_change_nothing() -> None:
    """CASES 25: each effect once, however often and whenever the message comes."""
    shop = open_sale()
    tickets = make_tickets(shop, 2)
    buy(tickets[0])
    for _ in range(3):
        settle(shop.bucket.pool_id, shop.bucket.number)
    assert_settled_state(shop, sold=1)
    buy(tickets[1])
    for _ in range(3):
        settle(shop.bucket.pool_id, shop.bucket.number)
    assert_settled_state(shop, sold=2)
    assert look_over(now=timezone.now()).to_settle == []


def test_notes_for_one_bucket_coalesce(monkeypatch: pytest.MonkeyPatch) -> None:
    """A publisher that is slow has one message to send afterwards, not a thousand."""
    published: list[BucketRef] = []
    publisher = Publisher()

    def publish(bucket: BucketRef, _cause: str) -> bool:
        published.append(bucket)
        if len(published) == 1:
            for _ in range(1_000):
                publisher.request(bucket)
            publisher.request(other)
        return True

    monkeypatch.setattr(publisher, "_publish", publish)
    bucket, other = BucketRef(pool_id=1, number=0), BucketRef(pool_id=2, number=0)
    publisher.request(bucket)
    deadline = time.monotonic() + 5
    while other not in published:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert published == [bucket, bucket, other]


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["stopped", "hung"])
def test_a_broken_broker_delays_no_purchase(fault: str, servers: PrivateServers) -> None:
    """Law 9: purchases keep their latency while the broker is gone or hangs, and the orders come afterwards."""
    shop = open_sale(units=2 * RUSH)
    tickets = make_tickets(shop, 2 * RUSH)
    normal = rush(shop, tickets[:RUSH])
    server = servers.cache_redis
    if fault == "stopped":
        server.stop()
    else:
        server.pause()
    try:
        broken = rush(shop, tickets[RUSH:])
    finally:
        if fault == "stopped":
            server.start()
        else:
            server.resume()
    assert p99(broken) < max(3 * p99(normal), 0.02)
    assert numbers(shop).queue_length == 2 * RUSH
    assert look_over(now=timezone.now()).to_settle == [shop.bucket]
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert_settled_state(shop, sold=2 * RUSH)


@pytest.mark.slow
def test_the_publisher_works_again_after_the_broker_is_back(servers: PrivateServers) -> None:
    """CASES 24, 27: no restart of the web process is needed."""
    publisher, first, second = Publisher(), BucketRef(pool_id=1, number=0), BucketRef(pool_id=2, number=0)
    publisher.request(first)
    wait_for_message(first)
    servers.cache_redis.stop()
    publisher.request(second)
    servers.cache_redis.start()
    wait_for_message(second)
