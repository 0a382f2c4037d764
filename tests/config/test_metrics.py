"""``/metrics``: shut unless opened, true, and bounded when a server is away."""

import time
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from benchmarks.servers import PrivateServers
from config.errors import ANSWERS
from rest.memory import forget_everything
from seckill.answer_counts import outcome_of
from seckill.errors import PurchaseRefused
from seckill.gate.connection import raw_client
from seckill.incidents import Severity, open_incident
from seckill.models import DeadLetter, ReconciliationRun
from tests.config.test_health import NAMES, standing_still
from tests.support.aliases import NOWHERE, point
from tests.support.scrape import TOKEN, scrape, value
from tests.support.shop import buy, make_tickets, open_sale

PATH = "/metrics"


@pytest.fixture(autouse=True)
def token(settings: Settings) -> None:
    settings.METRICS_TOKEN = TOKEN


def status_of(**meta: str) -> int:
    forget_everything()
    return Client().get(PATH, **meta).status_code  # type: ignore[arg-type]


def test_shut_unless_somebody_is_named(settings: Settings) -> None:
    settings.METRICS_TOKEN = ""
    assert status_of() == 404
    assert status_of(HTTP_AUTHORIZATION="Bearer ") == 404
    assert status_of(HTTP_AUTHORIZATION=f"Bearer {TOKEN}") == 404


def test_the_token_opens_it_and_a_wrong_one_does_not() -> None:
    assert status_of() == 404
    assert status_of(HTTP_AUTHORIZATION=f"Bearer {TOKEN}") == 200
    for wrong in (f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, "Bearer 票"):
        assert status_of(HTTP_AUTHORIZATION=wrong) == 404


def test_some_networks_may_read_and_no_others(settings: Settings) -> None:
    settings.METRICS_TOKEN = ""
    settings.METRICS_ADDRESSES = ["10.2.0.0/16", "2001:db8::7"]
    assert status_of(REMOTE_ADDR="10.2.3.4") == 200
    assert status_of(REMOTE_ADDR="2001:db8::7") == 200
    for stranger in ("10.3.0.1", "127.0.0.1", "2001:db8::8", ""):
        assert status_of(REMOTE_ADDR=stranger) == 404


def test_an_address_counts_only_as_far_as_the_shop_s_proxies_vouch_for_it(settings: Settings) -> None:
    settings.METRICS_TOKEN = ""
    settings.METRICS_ADDRESSES = ["10.2.0.0/16"]
    # Whoever comes through a proxy that nobody has told us of has the proxy's address.
    assert status_of(REMOTE_ADDR="10.2.3.4", HTTP_X_FORWARDED_FOR="203.0.113.9") == 404
    settings.TRUSTED_PROXIES = 1
    assert status_of(REMOTE_ADDR="10.2.3.4", HTTP_X_FORWARDED_FOR="203.0.113.9") == 404
    assert status_of(REMOTE_ADDR="10.9.9.9", HTTP_X_FORWARDED_FOR="10.2.3.4, 203.0.113.9") == 404
    assert status_of(REMOTE_ADDR="10.9.9.9", HTTP_X_FORWARDED_FOR="203.0.113.9, 10.2.3.4") == 200


def test_nobody_may_post() -> None:
    assert Client().post(PATH, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 405


def test_purchases_are_counted_by_their_outcome() -> None:
    shop = open_sale(units=2)
    first, second, third = make_tickets(shop, 3)
    before = scrape()
    outcomes = [buy(first), buy(first), buy(second), buy(third), buy("forged"), buy(third, quantity=0)]
    assert outcomes[3:] == ["SoldOut", "TicketInvalid", "BadQuantity"]
    after = scrape()

    def counted(outcome: str) -> float:
        name = "seckill_purchases_total"
        return value(after, name, outcome=outcome) - value(before, name, outcome=outcome)

    wanted = {"accepted": 3, "sold_out": 1, "ticket_invalid": 1, "bad_quantity": 1, "limit_reached": 0}
    assert {name: counted(name) for name in wanted} == wanted


def test_an_outcome_is_called_as_the_api_calls_it() -> None:
    """But for a quantity that cannot be, which the API has no code of its own for."""
    names = {outcome_of(kind): ANSWERS[kind].code for kind in PurchaseRefused.__subclasses__()}
    assert len(names) == len(PurchaseRefused.__subclasses__())
    assert {name: code for name, code in names.items() if name != code} == {"bad_quantity": "bad_request"}


def test_the_stores_tell_of_queues_incidents_and_reconciliations() -> None:
    shop = open_sale(units=5)
    now = timezone.now()
    for ticket in make_tickets(shop, 2):
        buy(ticket)
    open_incident(kind="drift", severity=Severity.WARNING, bucket=shop.bucket, detail="", now=now)
    DeadLetter.objects.create(
        pool=shop.pool, bucket_no=0, epoch=1, stream_id="1-1", fields={}, error="unreadable", created_at=now
    )
    for verdict, minutes in ((ReconciliationRun.Verdict.EXCESS, 9), (ReconciliationRun.Verdict.BALANCED, 2)):
        ReconciliationRun.objects.create(
            pool=shop.pool, bucket_no=0, verdict=verdict, numbers={}, created_at=now - timedelta(minutes=minutes)
        )
    told = scrape()
    bucket, item = str(shop.bucket), str(shop.item.pk)
    assert value(told, "seckill_queue_entries", bucket=bucket) == 2
    assert value(told, "seckill_queue_entries_max", bucket=bucket) == 20_000
    assert 0 <= value(told, "seckill_queue_oldest_seconds", bucket=bucket) < 5
    assert value(told, "seckill_units_left", bucket=bucket, item=item) == 3
    assert value(told, "seckill_bucket_open", bucket=bucket) == 1
    assert value(told, "seckill_incidents_open", kind="drift", severity="warning") == 1
    assert value(told, "seckill_dead_letters_open") == 1
    assert value(told, "seckill_reconcile_verdict", bucket=bucket, verdict="balanced") == 1
    assert ("seckill_reconcile_verdict", (("bucket", bucket), ("verdict", "excess"))) not in told
    assert 120 <= value(told, "seckill_reconcile_age_seconds", bucket=bucket) < 130
    assert value(told, "seckill_scheduled_task_interval_seconds", task="seckill.sweep") == 1
    assert [value(told, "seckill_up", dependency=name) for name in NAMES] == [1, 1, 1, 1]


def test_a_bucket_that_redis_has_lost_is_not_open() -> None:
    shop = open_sale()
    told = scrape()
    assert value(told, "seckill_bucket_open", bucket=str(shop.bucket)) == 1
    raw_client().delete(*shop.bucket.keys)
    told = scrape()
    assert told["seckill_bucket_open", (("bucket", str(shop.bucket)),)] == 0


def test_many_askers_cost_the_stores_one_look(settings: Settings) -> None:
    scrape()
    point(settings, "stock", NOWHERE)
    response = Client().get(PATH, headers={"Authorization": f"Bearer {TOKEN}"})
    assert b'seckill_up{dependency="stock_redis"} 1.0' in response.content


@pytest.mark.slow
def test_a_server_that_stands_still_is_told_within_a_second(servers: PrivateServers) -> None:
    shop = open_sale()
    scrape()
    for stopped, names in (
        (servers.database, {"mysql"}),
        (servers.stock_redis, {"stock_redis"}),
        (servers.cache_redis, {"cache_redis", "broker"}),
    ):
        with standing_still(stopped):
            began = time.monotonic()
            told = scrape()
            seconds = time.monotonic() - began
        down = {labels[0][1] for (name, labels), up in told.items() if name == "seckill_up" and up == 0}
        assert down == names
        assert seconds < 1.5
        # What MySQL says is gone with it, what Redis says is not.
        has_queue = ("seckill_queue_entries", (("bucket", str(shop.bucket)),)) in told
        assert has_queue is ("stock_redis" not in names)
        assert (("seckill_dead_letters_open", ()) in told) is ("mysql" not in names)
        time.sleep(1)  # Its errand ends by its own time-outs.
