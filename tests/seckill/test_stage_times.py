"""Where a purchase's milliseconds go: sampled, measured for real, added up over the processes."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from config.lane import FastLane
from config.timing import with_stage_times
from metrics import stages
from metrics.stages import Stage, watched
from seckill.gate import gate
from seckill.gate.gate import ReserveReply
from seckill.stage_times import PARTS, stage_breakdown, stage_sums
from tests.config.test_lane import body_of, call, environ_of
from tests.support.api import PURCHASES
from tests.support.asgi import django
from tests.support.scrape import TOKEN, scrape, value
from tests.support.shop import Shop, make_tickets, open_sale


def shop_door(settings: Settings, *, one_in: int, is_fast: bool = True) -> Any:
    """The application as it is served, with or without the fast lane."""
    settings.STAGE_SAMPLE_ONE_IN = one_in
    return with_stage_times(FastLane(django()) if is_fast else django())


def send(door: Any, ticket: str) -> int:
    status, _, _ = call(door, environ_of("POST", PURCHASES, body_of(ticket)))
    return int(status)


@pytest.mark.parametrize("is_fast", [True, False])
def test_every_stage_of_a_sampled_purchase_is_told(settings: Settings, *, is_fast: bool) -> None:
    settings.METRICS_TOKEN = TOKEN
    door, tickets = shop_door(settings, one_in=1, is_fast=is_fast), make_tickets(open_sale(units=2), 3)
    before = scrape()
    assert [send(door, ticket) for ticket in tickets] == [202, 202, 409]
    stage_sums.flush()

    told = stage_breakdown(now=timezone.now())
    assert told.sampled == 3
    assert tuple(time.stage for time in told.stages) == PARTS
    means = {time.stage: time.mean_us for time in told.stages}
    assert all(mean > 0 for stage, mean in means.items() if stage is not Stage.PUBLISH)
    assert means[Stage.SCRIPT] < means[Stage.REDIS] < told.whole_us
    assert sum(time.share for time in told.stages) == pytest.approx(1, abs=0.01)
    assert sum(time.own_us for time in told.stages) == pytest.approx(told.whole_us, abs=5)
    assert all(time.p90_us >= time.mean_us / 3 for time in told.stages)
    assert all(time.p50_us <= time.p90_us <= time.p99_us for time in told.stages)
    after = scrape()
    for stage in Stage:
        name = "seckill_purchase_stage_seconds_count"
        assert value(after, name, stage=stage) - value(before, name, stage=stage) == 3


def test_a_window_is_told_and_nothing_else(settings: Settings) -> None:
    send(shop_door(settings, one_in=1), make_tickets(open_sale(), 1)[0])
    stage_sums.flush()
    now = timezone.now()
    assert stage_breakdown(now=now).sampled == 1
    later = stage_breakdown(now=now + timedelta(minutes=5))
    assert (later.sampled, later.whole_us, later.stages) == (0, 0.0, ())


def test_calls_that_did_not_reach_redis_have_no_stages(settings: Settings) -> None:
    door = shop_door(settings, one_in=1)
    assert send(door, "forged") == 403
    assert call(door, environ_of("GET", PURCHASES))[0] == 401
    stage_sums.flush()
    assert stage_breakdown(now=timezone.now()).sampled == 0


def test_who_is_not_sampled_is_not_timed(settings: Settings) -> None:
    send(shop_door(settings, one_in=0), make_tickets(open_sale(), 1)[0])
    stage_sums.flush()
    assert stage_breakdown(now=timezone.now()).sampled == 0
    assert not stages.is_watched()


def test_one_in_so_many_is_sampled(settings: Settings) -> None:
    shop, door = open_sale(units=1), shop_door(settings, one_in=4)
    for ticket in make_tickets(shop, 200):
        send(door, ticket)
    stage_sums.flush()
    assert 15 <= stage_breakdown(now=timezone.now()).sampled <= 100


def answers(shop: Shop) -> list[ReserveReply]:
    """Everything a bucket can be asked: reserve, repeat, conflict, limit, price, quantity, sold out."""
    numbers = {name: f"{shop.pool.pk}-0-{name}" for name in ("a", "b", "c", "d", "e", "f")}
    tries = [
        ("a", "7", 1, "1499.00"),
        ("a", "7", 1, "1499.00"),
        ("a", "7", 2, "1499.00"),
        ("b", "7", 1, "1499.00"),
        ("c", "8", 1, "1.00"),
        ("d", "8", 0, "1499.00"),
        ("e", "9", 1, "1499.00"),
        ("f", "10", 1, "1499.00"),
    ]
    return [
        gate.reserve(
            bucket=shop.bucket,
            order_no=numbers[name],
            item_id=shop.item.pk,
            buyer_id=7,
            limit_key=key,
            quantity=quantity,
            price=price,
            ticket_expires_ms=2**42,
        )
        for name, key, quantity, price in tries
    ]


def test_a_timed_script_does_what_the_script_does() -> None:
    plain, timed = open_sale(units=2), open_sale(units=2)
    without = answers(plain)
    with watched() as watch:
        with_it = answers(timed)
    assert with_it == without
    assert len({reply.code for reply in without}) == 7
    assert 0 < watch.seconds[Stage.SCRIPT] < 0.1
    left = [gate.snapshot(bucket=shop.bucket, entries_max=9) for shop in (plain, timed)]
    assert [(list(s.left.values()), list(s.queued.values()), s.queue_length) for s in left] == [([0], [2], 2)] * 2
