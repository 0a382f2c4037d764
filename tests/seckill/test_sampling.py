"""Samples: what the charts are drawn from, and what it costs to have them."""

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from seckill import history as histories
from seckill import tasks
from seckill.gate.connection import raw_client
from seckill.gate.tallies import read_tallies
from seckill.history import GAP_SECONDS, SLOT_SECONDS, history
from seckill.sample_tables import ItemSample
from seckill.sampling import KEPT_HOURS, QUIET_SECONDS
from seckill.settlement import settle_bucket
from seckill.tally import Tally, tally
from tests.support.aliases import NOWHERE, point
from tests.support.samples import sample
from tests.support.shop import Shop, buy, make_ticket, make_tickets, open_sale
from tests.support.threads import run_together

# A slot begins here, so that what happens in which of them does not depend on when the tests run.
START = datetime.fromtimestamp(1_781_000_000 // SLOT_SECONDS * SLOT_SECONDS, tz=timezone.now().tzinfo)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def samples(shop: Shop) -> list[tuple[int, int | None, int | None, int, int, int]]:
    rows = ItemSample.objects.filter(item_id=shop.item.pk).order_by("at")
    return [
        (int((row.at - START).total_seconds()), row.left, row.queued, row.sold, row.accepted, row.sold_out)
        for row in rows
    ]


def ask(tickets: Sequence[str]) -> list[str]:
    answers = [buy(ticket) for ticket in tickets]
    tally.flush()
    return answers


def test_a_sample_shows_both_stores_and_the_answers() -> None:
    shop = open_sale(units=3)
    tickets = make_tickets(shop, 5)
    assert sample(now=at(0.4)) == 1
    assert ask(tickets)[3:] == ["SoldOut", "SoldOut"]
    assert sample(now=at(1.2)) == 1
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    tally.flush()
    assert sample(now=at(2)) == 1
    assert samples(shop) == [(0, 3, 0, 0, 0, 0), (1, 0, 3, 0, 3, 2), (2, 0, 0, 3, 3, 2)]
    last = ItemSample.objects.latest("at")
    assert (last.settled, last.oldest_ms) == (3, 0)
    assert last.waited_ms >= 0


def test_a_quiet_item_has_a_row_each_half_minute_and_its_last_quiet_second() -> None:
    """A burst after a quiet while stands in its own second, not spread over the quiet before it."""
    shop = open_sale(units=3)
    for second in range(QUIET_SECONDS + 5):
        sample(now=at(second))
    assert [second for second, *_ in samples(shop)] == [0, QUIET_SECONDS]
    ask(make_tickets(shop, 2))
    assert sample(now=at(QUIET_SECONDS + 20)) == 2
    assert samples(shop)[2:] == [
        (QUIET_SECONDS + 19, 3, 0, 0, 0, 0),
        (QUIET_SECONDS + 20, 1, 2, 0, 2, 0),
    ]


def test_a_second_is_sampled_once_whoever_is_told_to() -> None:
    shop = open_sale()
    run_together(lambda _: sample(now=at(0.1)), range(4))
    sample(now=at(0.9))
    assert len(samples(shop)) == 1


def test_a_pool_of_several_items_counts_each_by_its_answers() -> None:
    shop = open_sale(units=2, items=2)
    one, other = shop.items
    ask([make_tickets(shop, 1, item=one)[0], *make_tickets(shop, 3, item=other)])
    sample(now=at(0))
    rows = {row.item_id: (row.accepted, row.sold_out, row.left) for row in ItemSample.objects.all()}
    assert rows == {one.pk: (1, 0, 1), other.pk: (2, 1, 0)}


def test_other_answers_are_counted_apart() -> None:
    shop = open_sale(units=5)
    ticket = make_ticket(shop)
    ask([ticket, ticket])
    sample(now=at(0))
    assert read_tallies(pool_ids=[shop.pool.pk]) == {shop.item.pk: {"reserved": 1, "already_yours": 1}}
    assert ItemSample.objects.get().refused == 1


def test_a_redis_that_is_away_leaves_a_gap_and_no_step(settings: Settings) -> None:
    """What was counted stays counted; units that nobody could see are unknown, not none."""
    shop = open_sale(units=3)
    ask(make_tickets(shop, 2))
    sample(now=at(0))
    where = settings.CACHES["stock"]["LOCATION"]
    point(settings, "stock", NOWHERE)
    sample(now=at(1))
    point(settings, "stock", where)
    sample(now=at(2))
    assert samples(shop) == [(0, 1, 2, 0, 2, 0), (1, None, None, 0, 2, 0), (2, 1, 2, 0, 2, 0)]


def test_a_damaged_bucket_is_unknown() -> None:
    shop = open_sale(units=3)
    raw_client().hset(shop.bucket.keys[0], f"{shop.item.pk}:left", "many")
    sample(now=at(0))
    assert samples(shop) == [(0, None, None, 0, 0, 0)]


def test_old_samples_are_thrown_away() -> None:
    shop = open_sale()
    sample(now=at(0))
    sample(now=at(KEPT_HOURS * 3600))
    sample(now=at(KEPT_HOURS * 3600 + 1))
    assert [second for second, *_ in samples(shop)] == [KEPT_HOURS * 3600]


def test_a_look_costs_the_same_however_many_items() -> None:
    open_sale(items=6)
    with CaptureQueriesContext(connection) as few:
        sample(now=at(0))
    open_sale(items=6)
    open_sale()
    with CaptureQueriesContext(connection) as many:
        sample(now=at(1))
    assert len(many) <= len(few) + 1


def test_the_task_samples() -> None:
    shop = open_sale()
    tasks.take_samples()
    assert ItemSample.objects.get().item_id == shop.item.pk


def test_a_tally_that_cannot_be_added_is_kept(settings: Settings) -> None:
    shop = open_sale(units=3)
    where = settings.CACHES["default"]["LOCATION"]
    point(settings, "default", NOWHERE)
    ask(make_tickets(shop, 2))
    tally.flush()
    point(settings, "default", where)
    tally.flush()
    assert read_tallies(pool_ids=[shop.pool.pk]) == {shop.item.pk: {"reserved": 2}}


def test_nothing_is_counted_twice_or_lost_between_threads() -> None:
    shop = open_sale()
    mine = Tally()

    def count(_: int) -> None:
        from seckill.gate.codes import ReserveCode

        for _n in range(200):
            mine.count(pool_id=shop.pool.pk, item_id=shop.item.pk, code=ReserveCode.SOLD_OUT)
            if _n % 50 == 0:
                mine.flush()

    run_together(count, range(4))
    mine.flush()
    assert read_tallies(pool_ids=[shop.pool.pk]) == {shop.item.pk: {"sold_out": 800}}
    assert sum(thread.name == "tally" for thread in threading.enumerate()) <= 2


def write(shop: Shop, seconds: float, **values: int | None) -> None:
    ItemSample.objects.create(item_id=shop.item.pk, at=at(seconds), **values)


@pytest.fixture
def _coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots of an hour's width also in a short history."""
    monkeypatch.setattr(histories, "FINE_SLOT_SECONDS", SLOT_SECONDS)


@pytest.mark.usefixtures("_coarse")
def test_an_hour_is_drawn_in_rates_and_levels() -> None:
    shop = open_sale()
    write(shop, 0, left=100, queued=0, accepted=0, sold_out=0, settled=0, waited_ms=0)
    write(shop, 6, left=60, queued=30, accepted=40, sold_out=0, settled=10, waited_ms=1_000)
    write(shop, 8, left=0, queued=10, accepted=100, sold_out=25, settled=90, waited_ms=41_000)
    write(shop, 11, left=0, queued=0, accepted=100, sold_out=50, settled=100, waited_ms=42_000)
    lines = history(item_ids=[shop.item.pk], until=at(14), lasts=timedelta(seconds=20))
    assert lines.begins_at == at(-5)
    assert lines.accepted == [None, 0, 12.5, 0]
    assert lines.sold_out == [None, 0, 3.12, 8.33]
    assert lines.left == [None, 100, 0, 0]
    assert lines.queued == [None, 0, 30, 0]
    assert lines.settle_ms == [None, None, 455.6, 100]


@pytest.mark.usefixtures("_coarse")
def test_what_nobody_saw_is_a_gap_and_a_quiet_item_is_none() -> None:
    shop = open_sale()
    write(shop, 0, left=5)
    write(shop, QUIET_SECONDS, left=5)
    lines = history(item_ids=[shop.item.pk], until=at(QUIET_SECONDS + GAP_SECONDS + 30), lasts=timedelta(seconds=125))
    known = [number for number, left in enumerate(lines.left) if left == 5]
    assert len(known) == (QUIET_SECONDS + GAP_SECONDS) // SLOT_SECONDS + 1
    assert set(lines.accepted) == {None, 0}
    assert lines.left[-1] is None


@pytest.mark.usefixtures("_coarse")
def test_a_tally_that_began_again_is_no_burst() -> None:
    shop = open_sale()
    write(shop, 0, sold_out=1_000_000)
    write(shop, 5, sold_out=10)
    lines = history(item_ids=[shop.item.pk], until=at(5), lasts=timedelta(seconds=10))
    assert lines.sold_out == [0, 2]


@pytest.mark.usefixtures("_coarse")
@pytest.mark.parametrize("items", [[], [123]])
def test_items_without_samples_have_empty_lines(items: list[int]) -> None:
    lines = history(item_ids=items, until=at(0), lasts=timedelta(seconds=10))
    assert lines.left == [None, None]


def test_the_last_minutes_are_drawn_finer() -> None:
    shop = open_sale()
    write(shop, 0, accepted=0)
    write(shop, 1, accepted=5)
    write(shop, 2, accepted=9)
    write(shop, 4, accepted=9)
    lines = history(item_ids=[shop.item.pk], until=at(5), lasts=timedelta(seconds=10))
    assert lines.slot_seconds == 2
    assert lines.accepted == [None, None, 0, 4, 0]


@pytest.mark.usefixtures("_coarse")
def test_a_rate_is_of_the_seconds_between_two_looks() -> None:
    """Looks come when the workers have time: ten a second is ten a second, whenever it was seen."""
    shop = open_sale()
    for second in (0.0, 4.9, 8.1, 11.4, 19.9):
        write(shop, second, accepted=round(10 * second))
    lines = history(item_ids=[shop.item.pk], until=at(21), lasts=timedelta(seconds=25))
    assert lines.accepted[1:4] == [10, 10, 10]
