"""A whole sale paused, resumed, ended; and preheated as it was seen."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from benchmarks.servers import PrivateServers
from inventory.changes import ChangeState
from inventory.services import receive
from seckill import preheat_preview
from seckill.change_tables import WindowChange
from seckill.errors import GateUnavailable, SaleNotReady
from seckill.followup import follow_up
from seckill.gate import changing, gate
from seckill.gate.keys import BucketRef
from seckill.models import FlashSale, SaleItem, SalePool
from seckill.preheat_preview import preheat_as_seen
from seckill.rebuild import rebuild_bucket
from seckill.states import SaleState
from seckill.whole_sale import end_sale, pause_sale, resume_sale
from tests.support.people import person
from tests.support.shop import Shop, buy, make_buyers, make_sale, make_ticket, open_sale, ticket_of
from tests.support.state import dump

HOUR = timedelta(hours=1)


def end(shop: Shop) -> ChangeState:
    return end_sale(sale_id=shop.sale.pk, actor_id=person().pk, reason="wrong price", clock=timezone.now)


def preview(shop: Shop) -> preheat_preview.PreheatPreview:
    return preheat_preview.preheat_preview(sale_id=shop.sale.pk, now=timezone.now())


def test_every_item_of_a_sale_is_paused_and_resumed() -> None:
    shop = open_sale(items=2)
    tickets = [ticket_of(shop, buyer, item=item) for item, buyer in zip(shop.items, make_buyers(2), strict=True)]
    assert pause_sale(sale_id=shop.sale.pk) == 2
    assert [buy(ticket) for ticket in tickets] == ["Paused", "Paused"]
    assert SaleItem.objects.filter(is_paused=True).count() == 2
    assert resume_sale(sale_id=shop.sale.pk) == 2
    assert all("-" in buy(ticket) for ticket in tickets)
    assert not SaleItem.objects.filter(is_paused=True).exists()


def test_another_sale_goes_on() -> None:
    shop, other = open_sale(), open_sale()
    pause_sale(sale_id=shop.sale.pk)
    assert "-" in buy(make_ticket(other))


def test_one_bucket_that_cannot_be_told_does_not_keep_the_others_selling(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(items=2)
    tell = gate.pause
    told = []

    def pause(*, bucket: BucketRef, item_id: int) -> bool:
        told.append(item_id)
        if item_id == shop.item.pk:
            raise GateUnavailable("away")
        return tell(bucket=bucket, item_id=item_id)

    monkeypatch.setattr(gate, "pause", pause)
    with pytest.raises(GateUnavailable):
        pause_sale(sale_id=shop.sale.pk)
    assert told == [item.pk for item in shop.items]
    assert SaleItem.objects.filter(is_paused=True).count() == 2


@pytest.mark.parametrize("state", [state for state in SaleState if state is not SaleState.PREHEATED])
def test_only_a_preheated_sale_is_paused_or_ended(state: SaleState) -> None:
    shop = make_sale()
    FlashSale.objects.update(state=state)
    for wish in (pause_sale, resume_sale):
        with pytest.raises(SaleNotReady, match="not preheated"):
            wish(sale_id=shop.sale.pk)
    with pytest.raises(SaleNotReady, match="only one that is live"):
        end(shop)
    assert not WindowChange.objects.exists()


def test_an_unknown_sale_is_explained() -> None:
    for wish in (pause_sale, resume_sale):
        with pytest.raises(SaleNotReady, match="there is no sale 999"):
            wish(sale_id=999)
    with pytest.raises(SaleNotReady, match="there is no sale 999"):
        preheat_preview.preheat_preview(sale_id=999, now=timezone.now())


def test_a_live_sale_is_ended_and_what_is_reserved_stays() -> None:
    shop = open_sale()
    bought, late = make_ticket(shop), make_ticket(shop)
    order_no = buy(bought)
    assert end(shop) is ChangeState.APPLIED
    assert buy(late) == "Ended"
    assert buy(bought) == order_no
    change, sale = WindowChange.objects.get(), FlashSale.objects.get()
    assert (change.is_by_one_person, change.window_no, sale.window_no) == (True, 1, 1)
    assert (change.closes_at, change.closed_at_before) == (sale.closes_at, shop.sale.closes_at)
    with pytest.raises(SaleNotReady, match="ended"):
        end(shop)


def test_a_rebuild_keeps_the_end() -> None:
    shop = open_sale()
    end(shop)
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert buy(make_ticket(shop)) == "Ended"


def test_an_end_that_redis_did_not_hear_is_told_later(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale()

    def away(**_: object) -> None:
        raise GateUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(changing, "set_window", away)
        assert end(shop) is ChangeState.APPROVED
    follow_up(clock=timezone.now)
    assert WindowChange.objects.get().state == ChangeState.APPLIED
    assert buy(make_ticket(shop)) == "Ended"


def test_a_sale_that_has_not_opened_is_not_ended_but_withdrawn() -> None:
    shop = open_sale(opens_in=HOUR, closes_in=2 * HOUR)
    with pytest.raises(SaleNotReady, match="preheated; only one that is live"):
        end(shop)


def test_an_end_wants_a_reason() -> None:
    shop = open_sale()
    with pytest.raises(SaleNotReady, match="say why"):
        end_sale(sale_id=shop.sale.pk, actor_id=person().pk, reason="  ", clock=timezone.now)
    assert "-" in buy(make_ticket(shop))


@pytest.mark.slow
def test_a_sale_paused_while_redis_is_away_comes_back_paused(servers: PrivateServers) -> None:
    shop = open_sale()
    servers.stock_redis.stop()
    try:
        with pytest.raises(GateUnavailable):
            pause_sale(sale_id=shop.sale.pk)
    finally:
        servers.stock_redis.start()
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert buy(make_ticket(shop)) == "Paused"


def test_a_preview_says_what_is_taken_and_changes_nothing() -> None:
    shop = make_sale(units=7, items=2, limit=2)
    receive(sku_id=shop.item.sku_id, units=3, reference="more", now=timezone.now())
    with CaptureQueriesContext(connection) as queries:
        seen = preview(shop)
    assert len(queries) <= 15
    assert [(taken.units, taken.on_hand, taken.on_hand_after) for taken in seen.taken] == [(7, 10, 3), (7, 7, 0)]
    (pool,) = seen.pools
    assert (pool.items, pool.units, pool.limit_per_buyer, pool.keys) == (2, 14, 2, shop.bucket.keys)
    assert (seen.units, seen.is_possible) == (14, True)
    assert FlashSale.objects.get().state == SaleState.DRAFT
    assert dump(shop.bucket) == [None] * 5


def test_a_preview_of_too_many_units_says_no() -> None:
    shop = make_sale(units=7)
    SaleItem.objects.update(units=8)
    seen = preview(shop)
    assert not seen.is_possible
    assert "not_on_hand" in {finding.code for finding in seen.findings}


def test_a_sale_is_preheated_as_it_was_seen_and_once() -> None:
    shop = make_sale()
    mark = preview(shop).mark
    preheat_as_seen(sale_id=shop.sale.pk, mark=mark, clock=timezone.now)
    assert "-" in buy(make_ticket(shop))
    assert not preview(shop).is_possible
    with pytest.raises(SaleNotReady):
        preheat_as_seen(sale_id=shop.sale.pk, mark=mark, clock=timezone.now)


def test_a_sale_that_changed_since_is_not_preheated() -> None:
    """Whatever buyers or the warehouse would feel: a price, units, the limit, the window, an item more or less."""
    shop = make_sale(units=5, items=2)
    first, sale = SaleItem.objects.filter(pk=shop.item.pk), FlashSale.objects.filter(pk=shop.sale.pk)
    changes: list[Callable[[], object]] = [
        lambda: first.update(price=1),
        lambda: first.update(units=4),
        lambda: SalePool.objects.update(limit_per_buyer=2),
        lambda: sale.update(closes_at=timezone.now() + 3 * HOUR),
        first.delete,
    ]
    for change in changes:
        mark = preview(shop).mark
        change()
        with pytest.raises(SaleNotReady, match="changed since you looked"):
            preheat_as_seen(sale_id=shop.sale.pk, mark=mark, clock=timezone.now)
    assert sale.get().state == SaleState.DRAFT
