"""An item that is spread over several buckets: every reader and every writer knows all of them."""

from datetime import timedelta
from itertools import count

import pytest
from django.utils import timezone

from inventory.models import Stock
from orders.models import Order
from orders.services import cancel_order
from seckill.archive import archive_sale
from seckill.archive_begin import Accepted
from seckill.availability import availability_of, units_on_sale
from seckill.conf import LIMITS
from seckill.errors import LimitReached, SaleNotReady
from seckill.gate import gate
from seckill.gate.connection import raw_client
from seckill.item_audit import audit_of_item, summed
from seckill.models import Bucket, FlashSale, ItemBucket, SaleItem, SalePool, Ticket
from seckill.monitor import picture_of
from seckill.order_numbers import bucket_of
from seckill.pausing import pause_item, resume_item
from seckill.placing import bucket_for, place_of
from seckill.preheat import preheat_sale
from seckill.preheat_preview import mark_of, preheat_preview
from seckill.purchase import purchase
from seckill.rebuild import rebuild_bucket
from seckill.repair import reconcile_and_repair
from seckill.returns import return_closed_orders
from seckill.spreading import proposed_buckets, shares
from seckill.states import SaleState
from seckill.sweep import look_over
from seckill.tickets import IssuedTicket, Wish, read_ticket, ticket_for
from seckill.withdrawing import withdraw_sale
from tests.support.archive import end
from tests.support.buckets import allocated_in, assert_spread_state, key_in, left_in, settle_all
from tests.support.shop import Shop, buy, make_buyers, make_sale, make_ticket, make_tickets, open_sale, ticket_of

# What each look at the clock costs: a bucket's own rebuild stays within its claim.
CLOCK_STEP_SECONDS = 6


def ticket_in(shop: Shop, number: int, *, after: int = 0) -> str:
    return ticket_of(shop, make_buyers(1)[0], key=key_in(shop, number, after=after))


@pytest.mark.parametrize(
    ("units", "buckets", "expected"),
    [(10, 1, [10]), (10, 4, [3, 3, 2, 2]), (3, 4, [1, 1, 1, 0]), (8, 4, [2, 2, 2, 2])],
)
def test_units_are_spread_evenly(units: int, buckets: int, expected: list[int]) -> None:
    assert shares(units=units, buckets=buckets) == expected


@pytest.mark.parametrize(("units", "buckets"), [(1, 1), (19_999, 1), (20_000, 2), (159_999, 15), (10_000_000, 16)])
def test_a_number_of_buckets_is_proposed_from_the_units(units: int, buckets: int) -> None:
    assert proposed_buckets(units=units) == buckets


def test_a_bucket_that_waits_for_many_others_keeps_its_claim() -> None:
    """All claims are taken at once and last for half a minute; here the four buckets together take far longer."""
    shop, ticks = make_sale(units=8, buckets=4), count()
    preheat_sale(
        sale_id=shop.sale.pk, clock=lambda: timezone.now() + timedelta(seconds=CLOCK_STEP_SECONDS * next(ticks))
    )
    assert next(ticks) * CLOCK_STEP_SECONDS > 2 * LIMITS.claim_seconds
    opened = [gate.snapshot(bucket=bucket, entries_max=0) for bucket in shop.buckets]
    assert [(list(snapshot.left.values()), snapshot.is_frozen) for snapshot in opened] == [([2], False)] * 4


def test_preheat_spreads_the_units_and_the_ledger_says_where() -> None:
    shop = open_sale(units=10, buckets=4)
    assert allocated_in(shop) == left_in(shop) == [3, 3, 2, 2]
    assert Stock.objects.get(sku_id=shop.item.sku_id).on_hand == 0
    assert [raw_client().hget(bucket.keys[1], "buckets") for bucket in shop.buckets] == [b"4"] * 4
    assert_spread_state(shop, sold=0)


@pytest.mark.slow
def test_a_warehouse_with_too_few_units_is_named_as_with_one_bucket() -> None:
    shop = make_sale(units=10, buckets=4)
    Stock.objects.update(on_hand=7)
    with pytest.raises(SaleNotReady, match="needs 10 units, the warehouse has 7"):
        preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)
    assert ItemBucket.objects.count() == 0


def test_a_limit_key_has_its_bucket_by_a_stable_hash_and_keeps_it() -> None:
    shop = open_sale(units=8, limit=2, buckets=4)
    (buyer,) = make_buyers(1)
    issued = ticket_for(buyer=buyer, item_id=shop.item.pk, wish=Wish.FIRST, now=timezone.now())
    assert isinstance(issued, IssuedTicket)
    place = bucket_for(pool_id=shop.pool.pk, key=str(buyer.pk), buckets=4)
    assert bucket_of(issued.order_no) == place
    SalePool.objects.update(bucket_count=3)
    assert place_of(pool_id=shop.pool.pk, key=str(buyer.pk)) == place
    # By the checksum that every process computes alike, whatever its seed: these do not change with a release.
    assert [bucket_for(pool_id=1, key=key, buckets=4).number for key in ("1", "2", "3", "18014398509481985")] == [
        3,
        1,
        3,
        0,
    ]


def test_the_limit_holds_over_all_tickets_of_a_key() -> None:
    shop = open_sale(units=8, limit=2, buckets=4)
    (buyer,) = make_buyers(1)
    assert [buy(ticket_of(shop, buyer)) for _ in range(3)][2] == "LimitReached"
    settle_all(shop)
    with pytest.raises(LimitReached):
        purchase(ticket=ticket_of(shop, buyer), quantity=1)
    assert_spread_state(shop, sold=2)


@pytest.mark.slow
def test_a_sale_over_four_buckets_from_ticket_to_archive() -> None:
    shop = open_sale(units=12, buckets=4)
    bought = [buy(ticket_in(shop, number, after=n)) for number in range(4) for n in range(2)]
    settle_all(shop)
    assert_spread_state(shop, sold=8)
    order = Order.objects.get(number=bought[0])
    cancel_order(number=order.number, buyer_id=order.buyer_id, now=timezone.now())
    assert return_closed_orders(clock=timezone.now) == 1
    assert_spread_state(shop, sold=7)
    assert sorted(left_in(shop)) == [1, 1, 1, 2]
    assert all(reconcile_and_repair(bucket=bucket, clock=timezone.now).is_balanced for bucket in shop.buckets)
    seen = picture_of(sale_id=shop.sale.pk, clock=timezone.now)
    assert (seen.items[0].seen.left, seen.items[0].seen.sold, len(seen.buckets)) == (5, 7, 4)
    sums = summed(audit_of_item(item_id=shop.item.pk))
    assert sums is not None
    assert (sums["allocated"], sums["sold"], sums["left"], sums["drift"]) == (12, 7, 5, 0)
    end(shop)
    runs = archive_sale(sale_id=shop.sale.pk, accepted=Accepted(), clock=timezone.now, has_time=lambda: True)
    assert [run.bucket_no for run in runs] == [0, 1, 2, 3]
    assert FlashSale.objects.get().state == SaleState.ARCHIVED
    assert Stock.objects.get(sku_id=shop.item.sku_id).on_hand == 5
    assert allocated_in(shop) == [row.sold for row in ItemBucket.objects.order_by("bucket__number")]
    assert [raw_client().exists(*bucket.keys) for bucket in shop.buckets] == [0] * 4


@pytest.mark.slow
def test_availability_is_told_over_all_buckets() -> None:
    shop = open_sale(units=8, buckets=4)
    items = list(SaleItem.objects.select_related("pool__sale"))
    told = availability_of(items=items, allocated=units_on_sale(items=items), now=timezone.now())
    assert told[shop.item.pk].level == "plenty"
    raw_client().delete(*shop.buckets[2].keys)
    told = availability_of(items=items, allocated=units_on_sale(items=items), now=timezone.now())
    assert told[shop.item.pk].level == "unknown"


@pytest.mark.slow
def test_one_bucket_is_rebuilt_while_the_others_sell() -> None:
    shop = open_sale(units=8, buckets=4)
    first = buy(ticket_in(shop, 2))
    raw_client().delete(*shop.buckets[2].keys)
    raw_client().delete(*shop.buckets[3].keys)
    found = look_over(now=timezone.now())
    assert found.to_rebuild == shop.buckets[2:]
    assert "-" in buy(ticket_in(shop, 0))
    for bucket in found.to_rebuild:
        rebuild_bucket(bucket=bucket, clock=timezone.now)
    settle_all(shop)
    # What stood in the lost queue alone is gone with it; its unit is for sale again.
    assert Order.objects.filter(number=first).count() == 0
    assert left_in(shop) == [1, 2, 2, 2]
    assert_spread_state(shop, sold=1)


@pytest.mark.slow
def test_pause_reaches_every_bucket() -> None:
    shop = open_sale(units=8, buckets=4)
    pause_item(item_id=shop.item.pk)
    assert [buy(ticket_in(shop, number)) for number in range(4)] == ["Paused"] * 4
    resume_item(item_id=shop.item.pk)
    assert all("-" in buy(ticket_in(shop, number, after=1)) for number in range(4))


@pytest.mark.slow
def test_a_withdrawn_sale_may_come_back_with_fewer_buckets_and_old_tickets_work() -> None:
    shop = open_sale(units=8, limit=1, buckets=4)
    ticket = ticket_in(shop, 3)
    withdraw_sale(sale_id=shop.sale.pk, clock=timezone.now)
    assert Stock.objects.get(sku_id=shop.item.sku_id).on_hand == 8
    SalePool.objects.update(bucket_count=2)
    shop.pool.refresh_from_db()
    preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)
    assert allocated_in(shop) == [4, 4, 0, 0]
    assert Bucket.objects.count() == 4
    key = read_ticket(ticket).limit_key
    assert place_of(pool_id=shop.pool.pk, key=key).number == 3
    assert gate.units_held(bucket=bucket_of(read_ticket(ticket).order_no), limit_key=key) == 0


def test_the_preview_shows_the_buckets_and_counts_them_into_its_mark() -> None:
    shop = make_sale(units=20_000, buckets=1)
    (pool,) = preheat_preview(sale_id=shop.sale.pk, now=timezone.now()).pools
    assert (len(pool.buckets), pool.proposed, pool.units_per_bucket) == (1, 2, 20_000)
    mark = mark_of(sale_id=shop.sale.pk)
    SalePool.objects.update(bucket_count=2)
    assert mark_of(sale_id=shop.sale.pk) != mark
    (pool,) = preheat_preview(sale_id=shop.sale.pk, now=timezone.now()).pools
    assert (len(pool.buckets), pool.units_per_bucket) == (2, 10_000)


def test_with_one_bucket_nobody_asks_where_a_key_belongs() -> None:
    shop = open_sale(units=2)
    make_ticket(shop)
    assert place_of(pool_id=shop.pool.pk, key="anybody") == shop.bucket
    assert len(make_tickets(shop, 2)) == 2
    assert {bucket_of(number) for number in Ticket.objects.values_list("order_no", flat=True)} == {shop.bucket}
