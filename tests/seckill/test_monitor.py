"""The monitor: what an operator sees while a sale runs, and that it costs few reads however much there is to see."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from benchmarks.redis_log import commands_of
from metrics.stages import Stage
from orders.models import Order
from orders.services import cancel_order
from rest.memory import forget_everything
from seckill import monitor_pages
from seckill.errors import GateUnavailable
from seckill.gate import staging
from seckill.incidents import Severity, open_incident
from seckill.models import SaleItem
from seckill.order_counts import order_counts
from seckill.repair import reconcile_and_repair
from seckill.sample_tables import ItemSample
from seckill.settlement import settle_bucket
from seckill.stage_times import stage_sums
from seckill.tally import tally
from tests.support.aliases import NOWHERE, point
from tests.support.people import person
from tests.support.samples import sample
from tests.support.shop import Shop, buy, make_sale, make_tickets, open_sale

QUERIES_MAX = 20
READS_ALL = {"HGETALL", "HSCAN", "HKEYS", "HVALS"}


@pytest.fixture
def watcher() -> Client:
    """The browser of somebody who may see sales and nothing else."""
    client = Client()
    client.force_login(person("view_flashsale"))
    return client


def look(client: Client, shop: Shop) -> dict[str, Any]:
    answer = client.get(reverse("desk_monitor_now", args=[shop.sale.pk]))
    assert answer.status_code == 200
    found: dict[str, Any] = json.loads(answer.content)
    return found


def sell(shop: Shop, number: int) -> list[str]:
    answers = [buy(ticket) for ticket in make_tickets(shop, number)]
    tally.flush()
    return answers


def test_an_item_is_shown_with_both_stores_its_answers_and_its_orders(watcher: Client) -> None:
    shop = open_sale(units=3)
    numbers = sell(shop, 5)[:3]
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    order = Order.objects.get(number=numbers[0])
    cancel_order(number=order.number, buyer_id=order.buyer_id, now=timezone.now())
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    found = look(watcher, shop)
    (item,) = found["items"]
    assert found["phase"] == "live"
    assert (item["left"], item["queued"], item["sold"], item["allocated"]) == (0, 0, 3, 3)
    assert (item["accepted"], item["sold_out"], item["refused"]) == (3, 2, 0)
    assert item["orders"] == {"PENDING_PAYMENT": 2, "PAID": 0, "CANCELLED": 1, "EXPIRED": 0}
    (bucket,) = found["buckets"]
    assert (bucket["gate"], bucket["verdict"], bucket["drift"], bucket["members"]) == ("open", "BALANCED", 0, 3)
    assert found["incidents"] == []


def test_what_waits_for_mysql_is_shown_with_its_age(watcher: Client) -> None:
    shop = open_sale(units=10, limit=3)
    buy(make_tickets(shop, 1)[0], 3)
    sums = look(watcher, shop)["sums"]
    assert (sums["left"], sums["queued"], sums["sold"], sums["queue_length"]) == (7, 3, 0, 1)
    assert 0 <= sums["oldest_ms"] < 10_000


def test_rates_are_over_the_last_seconds(watcher: Client) -> None:
    """Also after a quiet while, whose last sample is old: what came since came just now."""
    shop = open_sale(units=30)
    now = timezone.now()
    sample(now=now - timedelta(seconds=20))
    sell(shop, 10)
    (item,) = look(watcher, shop)["items"]
    assert item["accepted_rate"] == 2.0
    assert item["sold_out_rate"] == 0


def test_without_samples_no_rate_is_made_up(watcher: Client) -> None:
    shop = open_sale()
    sell(shop, 1)
    found = look(watcher, shop)
    assert found["items"][0]["accepted_rate"] is None
    assert found["sampled_at"] is None


def test_incidents_and_a_frozen_gate_are_shown(watcher: Client) -> None:
    shop = open_sale()
    staging.freeze(bucket=shop.bucket, token="token")
    now = timezone.now()
    open_incident(kind="phantom", severity=Severity.CRITICAL, bucket=shop.bucket, detail="one unit", now=now)
    found = look(watcher, shop)
    assert found["buckets"][0]["gate"] == "frozen"
    (incident,) = found["incidents"]
    assert (incident["kind"], incident["severity"], incident["detail"]) == ("phantom", "CRITICAL", "one unit")
    assert incident["what"] == "Redis sold units that do not exist"


def test_a_redis_that_is_away_is_unknown_and_the_page_stays(watcher: Client, settings: Settings) -> None:
    shop = open_sale(units=5)
    point(settings, "stock", NOWHERE)
    found = look(watcher, shop)
    assert found["items"][0]["left"] is None
    assert found["sums"]["left"] is None
    assert found["sums"]["allocated"] == 5
    assert found["buckets"][0]["gate"] == "missing"
    assert watcher.get(reverse("desk_monitor_sale", args=[shop.sale.pk])).status_code == 200
    assert watcher.get(reverse("desk_monitor")).status_code == 200


def test_ten_operators_cost_as_much_as_one(watcher: Client) -> None:
    shop = open_sale()
    look(watcher, shop)
    with CaptureQueriesContext(connection) as queries:
        look(watcher, shop)
    assert not [query["sql"] for query in queries if "seckill_" in query["sql"]]


def test_no_page_costs_more_for_more_items_or_reads_a_buyer(watcher: Client) -> None:
    """Each of them in few statements; of the buyers Redis is asked how many there are, and nothing else."""
    shop, _ = open_sale(units=3, items=8), open_sale(units=1)
    for item in shop.items[:3]:
        buy(make_tickets(shop, 1, item=item)[0])
    tally.flush()
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    sample(now=timezone.now() - timedelta(seconds=10))
    paths = [reverse("desk_monitor"), reverse("desk_monitor_stages")] + [
        reverse(name, args=[shop.sale.pk]) for name in ("desk_monitor_sale", "desk_monitor_now", "desk_monitor_history")
    ]
    members = set(shop.bucket.keys[2:4])
    for path in paths:
        with CaptureQueriesContext(connection) as queries, commands_of("stock") as commands:
            assert watcher.get(path).status_code == 200
        assert len(queries) <= QUERIES_MAX, path
        touched = {name for name, *args in commands if set(args) & members}
        assert touched <= {"HLEN"}, path
        assert len([name for name, *_ in commands if name == "XRANGE"]) <= 2


def test_where_a_purchases_time_goes_is_told(watcher: Client, settings: Settings) -> None:
    url = reverse("desk_monitor_stages")
    none = json.loads(watcher.get(url).content)
    assert (none["sampled"], none["stages"], none["one_in"]) == (0, [], settings.STAGE_SAMPLE_ONE_IN)
    forget_everything()
    seconds = {Stage.RECEIVE: 0.001, Stage.TICKET: 0.0005, Stage.REDIS: 0.003, Stage.SCRIPT: 0.0001, Stage.PUBLISH: 0.0}
    for _ in range(4):
        stage_sums.note(seconds | {Stage.ANSWER: 0.0005, Stage.WHOLE: 0.005})
    stage_sums.flush()
    found = json.loads(watcher.get(url).content)
    assert (found["sampled"], found["whole_us"], found["seconds"]) == (4, 5_000, 60)
    times = {stage["stage"]: (stage["own_us"], stage["share"], stage["p50_us"]) for stage in found["stages"]}
    assert times["redis"] == (2_900, 0.58, 4_096)
    assert times["script"] == (100, 0.02, 128)
    assert sum(stage["share"] for stage in found["stages"]) == pytest.approx(1)


def test_without_the_cache_there_are_no_stages(watcher: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(**_: object) -> None:
        raise GateUnavailable("away")

    monkeypatch.setattr(monitor_pages, "stage_breakdown", away)
    assert watcher.get(reverse("desk_monitor_stages")).status_code == 503


def test_an_hour_can_be_asked_for(watcher: Client) -> None:
    shop = open_sale(units=3, items=2)
    now = timezone.now()
    sample(now=now - timedelta(seconds=60))
    url = reverse("desk_monitor_history", args=[shop.sale.pk])
    whole = json.loads(watcher.get(url).content)
    one = json.loads(watcher.get(url, {"item": shop.item.pk}).content)
    assert len(whole["left"]) == len(one["left"]) == 720
    assert (whole["left"][-2], one["left"][-2]) == (6, 3)
    minutes = json.loads(watcher.get(url, {"span": "300"}).content)
    assert (len(minutes["left"]), minutes["slot_seconds"]) == (150, 2)
    assert watcher.get(url, {"item": "x"}).status_code == 400
    assert watcher.get(url, {"span": "301"}).status_code == 400


def test_who_may_not_see_sales_may_not_watch() -> None:
    shop = open_sale()
    client = Client()
    names = ("desk_monitor_sale", "desk_monitor_now", "desk_monitor_history")
    paths = [reverse("desk_monitor")] + [reverse(name, args=[shop.sale.pk]) for name in names]
    assert [client.get(path).status_code for path in paths] == [302] * 4
    client.force_login(person())
    assert [client.get(path).status_code for path in paths] == [403] * 4
    client.force_login(person("view_flashsale"))
    assert [client.post(path).status_code for path in paths] == [405] * 4
    assert client.get(reverse("desk_monitor_sale", args=[999_999])).status_code == 404


def test_the_list_shows_what_is_on_and_what_comes(watcher: Client) -> None:
    live, planned = open_sale(units=7), make_sale(opens_in=timedelta(hours=2), closes_in=timedelta(hours=3))
    type(planned.sale).objects.filter(pk=planned.sale.pk).update(state="SCHEDULED", name="Tomorrow")
    draft = make_sale()
    buy(make_tickets(live, 1)[0])
    html = watcher.get(reverse("desk_monitor")).content.decode()
    assert "<b>6</b> left" in html
    assert "Tomorrow" in html
    assert reverse("desk_monitor_sale", args=[draft.sale.pk]) not in html


def test_a_planned_sale_has_a_page_that_waits(watcher: Client) -> None:
    shop = make_sale()
    found = look(watcher, shop)
    assert (found["items"], found["buckets"], found["sums"]["left"]) == ([], [], None)
    html = watcher.get(reverse("desk_monitor_sale", args=[shop.sale.pk])).content.decode()
    assert "Not preheated yet" in html


def test_orders_are_counted_by_one_at_a_time_and_kept_as_long_as_it_was_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(units=3)
    sell(shop, 2)
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    items = {(shop.pool.pk, shop.item.sku_id): shop.item.pk}
    seen: list[datetime | None] = []

    def clock() -> datetime:
        # Whoever asks while another counts gets what was counted before: nothing yet.
        seen.append(order_counts(sale_id=shop.sale.pk, items=items, clock=timezone.now).counted_at)
        return timezone.now()

    counts = order_counts(sale_id=shop.sale.pk, items=items, clock=clock)
    assert seen == [None]
    assert counts.of_item == {shop.item.pk: {"PENDING_PAYMENT": 2, "PAID": 0, "CANCELLED": 0, "EXPIRED": 0}}
    again = order_counts(sale_id=shop.sale.pk, items=items, clock=clock)
    assert again == counts
    assert seen == [None]


def test_orders_of_another_pool_with_a_longer_number_are_not_counted() -> None:
    """Pool 12 is no pool 1, nor pool 120 pool 12."""
    shop = open_sale(units=3)
    other = open_sale(units=3)
    SaleItem.objects.filter(pk=other.item.pk).update(sku=shop.item.sku_id)
    for each in (shop, other):
        sell(each, 1)
        settle_bucket(bucket=each.bucket, clock=timezone.now)
    Order.objects.filter(number__startswith=f"{other.pool.pk}-").update(number=f"{shop.pool.pk}0-0-aaaaaaaaaaaaaaaa")
    items = {(shop.pool.pk, shop.item.sku_id): shop.item.pk}
    counts = order_counts(sale_id=shop.sale.pk, items=items, clock=timezone.now)
    assert counts.of_item[shop.item.pk]["PENDING_PAYMENT"] == 1


def test_a_superuser_of_the_shop_sees_it_too() -> None:
    shop = open_sale()
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    assert client.get(reverse("desk_monitor_sale", args=[shop.sale.pk])).status_code == 200
    assert not ItemSample.objects.exists()
