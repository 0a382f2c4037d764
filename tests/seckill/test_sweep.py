"""The sweep: it looks at every bucket on sale and leaves alone what somebody is at."""

from datetime import timedelta

import pytest
from django.utils import timezone

from benchmarks.servers import PrivateServers
from seckill.errors import GateUnavailable
from seckill.gate import gate, staging
from seckill.gate.connection import raw_client
from seckill.models import Bucket, FlashSale, Incident, ReconciliationRun, SaleItem
from seckill.purchase import purchase
from seckill.settlement import settle_bucket
from seckill.sweep import look_over
from seckill.tasks import rebuild_one, reconcile_all, reconcile_one, sweep_buckets
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


def test_an_incident_is_resolved_when_the_damage_is_gone_by_other_means() -> None:
    shop = open_sale()
    raw_client().hset(shop.bucket.keys[1], "frozen", "token")
    look_over(now=timezone.now())
    raw_client().hdel(shop.bucket.keys[1], "frozen")
    look_over(now=timezone.now())
    assert Incident.objects.get().resolved_at is not None


def test_a_rebuild_that_is_no_longer_needed_is_not_done() -> None:
    shop = open_sale()
    rebuild_one(shop.bucket.pool_id, 0)
    assert numbers(shop).epoch == 1


def test_archived_sales_are_not_looked_at() -> None:
    open_sale()
    raw_client().flushall()
    FlashSale.objects.update(state="ARCHIVED")
    assert look_over(now=timezone.now()).to_rebuild == []


def test_redis_away_is_no_damage(servers: PrivateServers) -> None:
    """No answer is not a bad answer: nothing is rebuilt on a guess, and no incident is opened."""
    shop = open_sale()
    servers.stock_redis.stop()
    try:
        findings = look_over(now=timezone.now())
        sweep_buckets()
    finally:
        servers.stock_redis.start()
    assert (findings.to_rebuild, findings.unreachable) == ([], [shop.bucket])
    assert not Incident.objects.exists()


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("stock", "{item}:left", " 10"),
        ("stock", "{item}:left", "+10"),
        ("stock", "{item}:left", "1_0"),
        ("stock", "{item}:left", "-1"),
        ("stock", "{item}:left", "007"),
        ("stock", "{item}:left", None),
        ("stock", "{item}:queued", "-1"),
        ("gate", "opens_ms", "x"),
        ("gate", "opens_ms", None),
        ("gate", "limit", ""),
        ("gate", "woken_ms", None),
        ("gate", "max_queue", "1e3"),
        ("gate", "seq", "-1"),
        ("gate", "settled_seq", "+1"),
    ],
)
def test_whatever_stops_the_sale_is_noticed(part: str, field: str, value: str | None) -> None:
    """CASES 15: a number that the gate refuses to work with is damage to the sweep too, and a rebuild mends it."""
    shop = open_sale()
    key = shop.bucket.keys[("stock", "gate").index(part)]
    name = field.format(item=shop.item.pk)
    if value is None:
        raw_client().hdel(key, name)
    else:
        raw_client().hset(key, name, value)
    with pytest.raises(GateUnavailable):
        purchase(ticket=make_ticket(shop), quantity=1)
    assert look_over(now=timezone.now()).to_rebuild == [shop.bucket]
    rebuild_one(shop.bucket.pool_id, 0)
    assert "-" in buy(make_ticket(shop))


def test_a_pause_that_did_not_arrive_is_carried_over() -> None:
    """MySQL is the truth about pauses, whatever was lost or overtaken on the way to Redis."""
    shop = open_sale(items=2)
    first, second = (item.pk for item in shop.items)
    SaleItem.objects.filter(pk=first).update(is_paused=True)
    gate.pause(bucket=shop.bucket, item_id=second)
    look_over(now=timezone.now())
    assert numbers(shop).paused_items == {first}


def test_a_dead_rebuilds_keys_are_removed() -> None:
    shop = open_sale()
    staging.begin_staging(bucket=shop.bucket, token="dead", epoch=9)
    Bucket.objects.update(claim="dead", claim_until=None)
    look_over(now=timezone.now())
    assert {key.decode() for key in raw_client().scan_iter()} == set(shop.bucket.keys)
    assert Bucket.objects.get().claim == ""


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
    with broker() as client:
        assert client.llen("slow") == 4  # the rebuild, the full reconciliation after it, and one of each bucket
    reconcile_one(damaged.bucket.pool_id, 0)
    assert ReconciliationRun.objects.get().verdict == "BALANCED"
    assert look_over(now=timezone.now()).to_rebuild == []
