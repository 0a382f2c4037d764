"""Point 3 of the promise, on the running shop: a unit is buyable again within ten seconds of its order's closing."""

import pytest

from benchmarks.returns.measure import all_at_once, one_by_one
from benchmarks.returns.till import Till
from benchmarks.shop import Shop as ShopProcesses
from orders.models import Order
from orders.states import OrderState
from tests.support.shop import make_buyers, open_sale
from tests.support.state import numbers
from tests.support.web import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("all_running")]

ALLOWED_SECONDS = 10


def test_units_of_cancelled_orders_are_bought_again_in_time(running: ShopProcesses) -> None:
    shop = open_sale(units=5)
    till = Till.of(shop.item.pk)
    ids = [buyer.pk for buyer in make_buyers(10)]
    sold = till.sell(ids[:5])
    seconds = one_by_one(till=till, orders=list(zip(sold, ids[:5], strict=True)), next_buyers=ids[5:])
    assert max(seconds) <= ALLOWED_SECONDS
    wait_until(lambda: Order.objects.count() == 10, seconds=10)
    assert numbers(shop).left == {shop.item.pk: 0}


def test_a_thousand_that_expire_at_once_hold_up_no_cancel(running: ShopProcesses) -> None:
    shop = open_sale(units=1_010)
    till = Till.of(shop.item.pk)
    ids = [buyer.pk for buyer in make_buyers(1_010)]
    sold = till.sell(ids)
    wave = all_at_once(till=till, to_cancel=list(zip(sold, ids, strict=True))[:10])
    assert (len(wave.expired), len(wave.cancelled)) == (1_000, 10)
    assert max(wave.expired) <= ALLOWED_SECONDS
    assert max(wave.cancelled) <= ALLOWED_SECONDS
    assert set(Order.objects.values_list("state", flat=True)) == {OrderState.CANCELLED, OrderState.EXPIRED}
    assert numbers(shop).left == {shop.item.pk: 1_010}
