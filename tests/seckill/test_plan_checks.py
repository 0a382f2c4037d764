"""Mistakes in a sale's plan are found before it is written, each with what would be right."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inventory.models import Product, Sku
from inventory.services import receive
from seckill.models import FlashSale, SalePool
from seckill.plan_checks import Finding, Weight, check_plan, is_sound
from seckill.sale_plan import PlannedItem, PlannedPool, SalePlan, plan_of
from tests.support.shop import make_sale

HOUR = timedelta(hours=1)


def sku(code: str, *, product: Product | None = None, list_price: str = "100.00", on_hand: int = 50) -> Sku:
    made = Sku.objects.create(
        product=product or Product.objects.create(name="鞋"), code=code, name="42", list_price=Decimal(list_price)
    )
    receive(sku_id=made.pk, units=on_hand, reference=f"receipt:{code}", now=timezone.now())
    return made


def item(of: Sku, *, price: str = "80.00", units: int = 5, again: str | None = None) -> PlannedItem:
    price_again = None if again is None else Decimal(again)
    return PlannedItem(sku_id=of.pk, price=Decimal(price), units=units, price_again=price_again)


def plan(*items: PlannedItem, limit: int = 1, opens_in: timedelta = HOUR, closes_in: timedelta = 2 * HOUR) -> SalePlan:
    now = timezone.now()
    pool = PlannedPool(name="", limit_per_buyer=limit, items=items)
    return SalePlan(name="sale", opens_at=now + opens_in, closes_at=now + closes_in, pools=(pool,))


def found(planned: SalePlan) -> list[Finding]:
    return check_plan(plan=planned, now=timezone.now())


def codes(planned: SalePlan) -> list[str]:
    return [finding.code for finding in found(planned)]


def test_a_good_plan_has_no_findings() -> None:
    assert found(plan(item(sku("A")))) == []


def test_more_units_than_the_warehouse_has() -> None:
    (finding,) = found(plan(item(sku("A", on_hand=4), units=5)))
    assert (finding.code, finding.field, finding.pool, finding.item) == ("not_on_hand", "units", 0, 0)
    assert finding.words == "5 units of A are planned, the warehouse has 4. Plan 4 or fewer."


def test_all_pools_take_from_the_same_shelf() -> None:
    """A members' pool beside a public pool is legitimate, and its units count."""
    shared = sku("A", on_hand=10)
    base = plan(item(shared, units=6))
    two = SalePlan(name="s", opens_at=base.opens_at, closes_at=base.closes_at, pools=base.pools * 2)
    assert codes(two) == ["not_on_hand"]
    receive(sku_id=shared.pk, units=2, reference="more", now=timezone.now())
    assert codes(two) == []


@pytest.mark.parametrize(
    ("opens_in", "closes_in", "expected"),
    [
        (2 * HOUR, HOUR, ["closes_first"]),
        (HOUR, HOUR, ["closes_first"]),
        (-2 * HOUR, -HOUR, ["window_over"]),
        (-HOUR, HOUR, ["opens_at_once"]),
    ],
)
def test_windows(opens_in: timedelta, closes_in: timedelta, expected: list[str]) -> None:
    assert codes(plan(item(sku("A")), opens_in=opens_in, closes_in=closes_in)) == expected


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (0, ["limit_too_small"]),
        (1_000, ["limit_takes_all"]),
        (1_001, ["limit_too_big"]),
        (4, []),
        (5, ["limit_takes_all"]),
    ],
)
def test_limits(limit: int, expected: list[str]) -> None:
    assert codes(plan(item(sku("A")), limit=limit)) == expected


@pytest.mark.parametrize(
    ("price", "again", "expected"),
    [
        ("100.01", None, ["price_above_list"]),
        ("100.00", None, []),
        ("50.00", None, []),
        ("49.99", None, ["price_suspicious"]),
        ("49.99", "94.99", ["price_again_differs"]),
        ("49.99", "49.99", ["price_confirmed"]),
        ("0", "0", ["price_confirmed"]),
        ("-1", None, ["price_malformed"]),
        ("80.001", None, ["price_malformed"]),
        ("NaN", None, ["price_malformed"]),
    ],
)
def test_prices(price: str, again: str | None, expected: list[str]) -> None:
    assert codes(plan(item(sku("A"), price=price, again=again))) == expected


def test_a_price_far_from_its_siblings_is_typed_twice() -> None:
    """Twice what the other sizes cost for their list price is still usual; more is not."""
    shoe = Product.objects.create(name="鞋")
    sizes = [item(sku(f"S{n}", product=shoe), price="50.00") for n in range(3)]
    high = sku("S9", product=shoe, list_price="1000.00")
    assert codes(plan(*sizes, item(high, price="1000.00"))) == []
    for n, size in enumerate(sizes):
        sizes[n] = PlannedItem(sku_id=size.sku_id, price=Decimal("20.00"), units=5, price_again=Decimal("20.00"))
    findings = found(plan(*sizes, item(high, price="900.00")))
    assert [finding.code for finding in findings] == ["price_suspicious", *["price_confirmed"] * 3]
    assert (findings[0].item, findings[0].field) == (3, "price_again")
    assert (
        "900.00 is 90 % of the list price of S9; the other variants of the product stand at 20 %" in findings[0].words
    )


def test_the_same_sku_twice_in_a_pool_and_an_unknown_one() -> None:
    twice = sku("A")
    assert codes(plan(item(twice), item(twice))) == ["sku_twice"]
    unknown = PlannedItem(sku_id=999_999, price=Decimal(1), units=1)
    assert codes(plan(unknown)) == ["sku_unknown"]


def test_units_out_of_range_and_no_items() -> None:
    assert codes(plan(item(sku("A"), units=0))) == ["units_out_of_range"]
    assert codes(plan()) == ["no_items"]


def test_an_overlapping_sale_is_named_and_stops_nothing() -> None:
    shop = make_sale(units=3, opens_in=HOUR, closes_in=3 * HOUR)
    receive(sku_id=shop.item.sku_id, units=3, reference="more", now=timezone.now())
    planned = plan(PlannedItem(sku_id=shop.item.sku_id, price=Decimal("1500.00"), units=3))
    (finding,) = found(planned)
    assert finding.weight is Weight.WARNING
    assert is_sound([finding])
    assert finding.words == (
        f"{shop.item.sku.code} is also in the sale “秒杀 sale” (number {shop.sale.pk}), "
        "whose window overlaps with this one."
    )


def test_a_sale_that_follows_does_not_overlap() -> None:
    shop = make_sale(units=3, opens_in=3 * HOUR, closes_in=4 * HOUR)
    receive(sku_id=shop.item.sku_id, units=3, reference="more", now=timezone.now())
    assert codes(plan(PlannedItem(sku_id=shop.item.sku_id, price=Decimal("1500.00"), units=3))) == []


def test_units_that_another_sale_plans_too_are_a_warning() -> None:
    shop = make_sale(units=3, opens_in=3 * HOUR, closes_in=4 * HOUR)
    planned = plan(PlannedItem(sku_id=shop.item.sku_id, price=Decimal("1500.00"), units=2))
    assert codes(planned) == ["planned_elsewhere"]


def test_a_stored_sale_does_not_collide_with_itself() -> None:
    shop = make_sale(units=3, items=3, opens_in=HOUR, closes_in=2 * HOUR)
    SalePool.objects.create(sale=shop.sale, name="members")
    planned = plan_of(sale=FlashSale.objects.get())
    assert [len(pool.items) for pool in planned.pools] == [3, 0]
    assert codes(planned) == ["price_confirmed"] * 3


def test_a_check_takes_three_queries_however_many_items() -> None:
    planned = plan(*(item(sku(f"N{n}")) for n in range(12)))
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert found(planned) == []
    assert len(queries) == 3
