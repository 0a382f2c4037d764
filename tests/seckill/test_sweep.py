"""The sweep: it looks at every bucket on sale and leaves alone what somebody is at."""

from datetime import timedelta

import pytest
from django.utils import timezone

from benchmarks.servers import PrivateServers
from seckill.errors import GateUnavailable
from seckill.gate.connection import raw_client
from seckill.models import Bucket, FlashSale, Incident
from seckill.settlement import settle_bucket
from seckill.sweep import look_over
from seckill.tasks import rebuild_one, reconcile_all, sweep_buckets
from tests.support.broker import broker
from tests.support.shop import buy, make_sale, make_ticket, open_sale
from tests.support.state import numbers


def test_quiet_buckets_want_nothing() -> None:
    make_sale()
    open_sale()
    findings = look_over(now=timezone.now())
    assert (findings.to_settle, findings.to_rebuild) == ([], [])
    assert not Incident.objects.exists()


def test_waiting_entries_want_a_worker() -> None:
    quiet, busy = open_sale(), open_sale()
    buy(make_ticket(busy))
    assert look_over(now=timezone.now()).to_settle == [busy.bucket]
    assert numbers(quiet).queue_length == 0


def test_a_live_rebuild_is_left_alone_and_a_dead_one_taken_over() -> None:
    shop = open_sale()
    raw_client().hset(shop.bucket.keys[1], "frozen", "token")
    now = timezone.now()
    Bucket.objects.update(claim="token", claim_until=now + timedelta(seconds=5))
    assert look_over(now=now).to_rebuild == []
    assert look_over(now=now + timedelta(seconds=6)).to_rebuild == [shop.bucket]


def test_a_gate_of_an_older_epoch_is_noticed() -> None:
    shop = open_sale()
    Bucket.objects.update(epoch=5)
    assert look_over(now=timezone.now()).to_rebuild == [shop.bucket]
    rebuild_one(shop.bucket.pool_id, 0)
    assert numbers(shop).epoch == 6


def test_an_incident_opens_once_is_counted_and_resolved() -> None:
    shop = open_sale()
    raw_client().delete(shop.bucket.keys[0])
    for _ in range(3):
        look_over(now=timezone.now())
    incident = Incident.objects.get()
    assert (incident.kind, incident.count, incident.resolved_at) == ("redis_lost", 3, None)
    rebuild_one(shop.bucket.pool_id, 0)
    incident.refresh_from_db()
    assert incident.resolved_at is not None
    raw_client().delete(shop.bucket.keys[0])
    look_over(now=timezone.now())
    assert Incident.objects.count() == 2


def test_a_rebuild_that_is_no_longer_needed_is_not_done() -> None:
    shop = open_sale()
    rebuild_one(shop.bucket.pool_id, 0)
    assert numbers(shop).epoch == 1


def test_archived_sales_are_not_looked_at() -> None:
    open_sale()
    raw_client().flushall()
    FlashSale.objects.update(state="ARCHIVED")
    assert look_over(now=timezone.now()).to_rebuild == []


def test_redis_away_is_an_error_and_no_incident(servers: PrivateServers) -> None:
    open_sale()
    servers.stock_redis.stop()
    try:
        with pytest.raises(GateUnavailable):
            sweep_buckets()
    finally:
        servers.stock_redis.start()
    assert not Incident.objects.exists()


def test_the_tasks_publish_to_their_queues() -> None:
    waiting, damaged = open_sale(), open_sale()
    buy(make_ticket(waiting))
    raw_client().delete(damaged.bucket.keys[2])
    sweep_buckets()
    with broker() as client:
        assert client.llen("slow") == 1
    settle_bucket(bucket=waiting.bucket, clock=timezone.now)
    rebuild_one(damaged.bucket.pool_id, 0)
    reconcile_all()
    assert look_over(now=timezone.now()).to_rebuild == []
