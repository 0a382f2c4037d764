"""A stock Redis that stays away is one incident, opened after some seconds, closed by the first sweep it answers."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from benchmarks.servers import PrivateServers
from seckill import tasks
from seckill.alert_tables import Alert
from seckill.models import Incident
from seckill.silence import FORGOTTEN_SECONDS, SILENT_SECONDS, note_silence
from seckill.silence_tables import StockSilence
from tests.support.shop import Shop, open_sale

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


def hear(*silent: Shop, seconds: float) -> None:
    note_silence(silent=[shop.bucket for shop in silent], now=NOON + timedelta(seconds=seconds))


def test_one_missed_answer_is_none() -> None:
    shop = open_sale()
    hear(shop, seconds=0)
    hear(shop, seconds=SILENT_SECONDS - 0.1)
    hear(seconds=SILENT_SECONDS)
    hear(shop, seconds=SILENT_SECONDS + 0.1)
    assert not Incident.objects.exists()


def test_seconds_of_silence_are_one_incident_however_many_buckets_are_silent() -> None:
    first, second = open_sale(), open_sale()
    for seconds in (0, SILENT_SECONDS, SILENT_SECONDS + 1):
        hear(first, second, seconds=seconds)
    incident = Incident.objects.get()
    assert (incident.kind, incident.severity, incident.count) == ("stock_unreachable", "CRITICAL", 2)
    assert (incident.pool_id, incident.resolved_at) == (first.pool.pk, None)
    assert "2 buckets" in incident.detail
    hear(seconds=SILENT_SECONDS + 2)
    incident.refresh_from_db()
    assert incident.resolved_at == NOON + timedelta(seconds=SILENT_SECONDS + 2)
    assert not StockSilence.objects.exists()
    assert list(Alert.objects.order_by("pk").values_list("event", flat=True).distinct()) == ["OPENED", "CLOSED"]


def test_the_incident_moves_on_when_its_own_bucket_answers_again() -> None:
    first, second = open_sale(), open_sale()
    for seconds in (0, SILENT_SECONDS):
        hear(first, second, seconds=seconds)
    hear(second, seconds=SILENT_SECONDS + 1)
    open_ones = Incident.objects.filter(resolved_at=None)
    assert list(open_ones.values_list("pool_id", flat=True)) == [second.pool.pk]


def test_a_silence_whose_end_nobody_saw_is_not_the_beginning_of_the_next() -> None:
    """No sweep ran for a while: what it missed first after that is one missed answer."""
    shop = open_sale()
    hear(shop, seconds=0)
    hear(shop, seconds=FORGOTTEN_SECONDS + 1)
    assert not Incident.objects.exists()
    hear(shop, seconds=FORGOTTEN_SECONDS + 1 + SILENT_SECONDS)
    assert Incident.objects.exists()


@pytest.mark.slow
def test_the_sweep_opens_and_closes_it(servers: PrivateServers) -> None:
    shop = open_sale()
    servers.stock_redis.stop()
    try:
        tasks.sweep_buckets()
        assert not Incident.objects.exists()
        StockSilence.objects.update(since=timezone.now() - timedelta(seconds=SILENT_SECONDS))
        tasks.sweep_buckets()
        assert Incident.objects.get().pool_id == shop.pool.pk
    finally:
        servers.stock_redis.start()
    tasks.sweep_buckets()
    assert Incident.objects.get(kind="stock_unreachable").resolved_at is not None
