"""The scripts of changes by hand: fenced, idempotent, checks before writes, and none brings a missing key to life."""

from collections.abc import Callable

import pytest

from seckill.errors import GateUnavailable, NotPreheated
from seckill.gate import archiving, changing, staging
from seckill.gate.changing import Adjusted
from seckill.gate.connection import raw_client
from seckill.gate.keys import BucketRef
from tests.support.nodes import empty_stock, flush_scripts
from tests.support.shop import Shop, open_sale
from tests.support.state import dump, numbers


def adjust(shop: Shop, *, number: int = 1, delta: int = 2, epoch: int = 1) -> Adjusted:
    return changing.adjust(bucket=shop.bucket, epoch=epoch, number=number, item_id=shop.item.pk, delta=delta)


def set_window(shop: Shop) -> None:
    changing.set_window(bucket=shop.bucket, number=1, opens_ms=1, closes_ms=2)


def withdraw(shop: Shop) -> bool:
    return changing.withdraw(bucket=shop.bucket, epoch=1)


SCRIPTS = [adjust, set_window, withdraw]


def frozen(shop: Shop) -> None:
    staging.freeze(bucket=shop.bucket, token="a rebuild's")


def sealed(shop: Shop) -> None:
    raw_client().hset(shop.bucket.keys[1], "closes_ms", "1")
    assert archiving.seal(bucket=shop.bucket, epoch=1)


def restarted(shop: Shop) -> None:
    raw_client().hset(shop.bucket.keys[1], "run_id", "the run before")


def without_queue(shop: Shop) -> None:
    raw_client().delete(shop.bucket.keys[4])


def of_another_epoch(shop: Shop) -> None:
    raw_client().hset(shop.bucket.keys[0], "#epoch", "7")


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("trouble", [frozen, sealed, restarted, without_queue, of_another_epoch])
def test_nothing_is_changed_where_nothing_may_be(
    script: Callable[[Shop], object], trouble: Callable[[Shop], None]
) -> None:
    shop = open_sale()
    trouble(shop)
    before = dump(shop.bucket)
    with pytest.raises(GateUnavailable):
        script(shop)
    assert dump(shop.bucket) == before


def test_nothing_comes_to_life() -> None:
    shop = open_sale()
    empty_stock()
    for script in (adjust, set_window):
        with pytest.raises(NotPreheated):
            script(shop)
    assert withdraw(shop)
    assert dump(shop.bucket) == [None] * 5


def test_adjusted_once_per_number() -> None:
    shop = open_sale(units=10)
    assert [adjust(shop) for _ in range(3)] == [Adjusted(units_changed=2, units_left=12)] * 3
    assert adjust(shop, number=2, delta=-12) == Adjusted(units_changed=-12, units_left=0)
    assert adjust(shop, number=3, delta=-1) == Adjusted(units_changed=0, units_left=0)
    assert adjust(shop, number=4, delta=1) == Adjusted(units_changed=1, units_left=1)
    assert adjust(shop, number=3, delta=-1) == Adjusted(units_changed=0, units_left=1)
    snapshot = numbers(shop)
    assert (snapshot.adj_no, snapshot.adj_applied, snapshot.left) == (4, 1, {shop.item.pk: 1})


@pytest.mark.parametrize("left", ["abc", "", "-1", "1.5", "1e3"])
def test_a_damaged_stock_is_not_adjusted(left: str) -> None:
    shop = open_sale()
    raw_client().hset(shop.bucket.keys[0], f"{shop.item.pk}:left", left)
    before = dump(shop.bucket)
    with pytest.raises(GateUnavailable):
        adjust(shop)
    assert dump(shop.bucket) == before


def test_an_item_the_bucket_does_not_have_is_not_made() -> None:
    shop = open_sale()
    before = dump(shop.bucket)
    with pytest.raises(GateUnavailable):
        changing.adjust(bucket=shop.bucket, epoch=1, number=1, item_id=10**9, delta=1)
    assert dump(shop.bucket) == before


def test_a_script_flush_in_between() -> None:
    """CASES 12: loaded again by itself, and made once."""
    shop = open_sale(units=10)
    for number in (1, 2, 3):
        flush_scripts()
        adjust(shop, number=number, delta=1)
    assert numbers(shop).left == {shop.item.pk: 13}


def test_a_bucket_of_another_epoch_is_not_withdrawn() -> None:
    shop = open_sale()
    before = dump(shop.bucket)
    with pytest.raises(GateUnavailable):
        changing.withdraw(bucket=BucketRef(pool_id=shop.pool.pk, number=0), epoch=2)
    assert dump(shop.bucket) == before
