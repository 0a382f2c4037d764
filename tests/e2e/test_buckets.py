"""An item in several buckets on the running shop: through HTTP, with the real broker and worker in between."""

import time

import pytest

from benchmarks.shop import Shop as ShopProcesses
from orders.models import Order
from seckill.transfer_tables import Transfer
from tests.support.buckets import assert_spread_state, key_in, left_in
from tests.support.shop import make_buyers, open_sale, ticket_of
from tests.support.threads import run_together
from tests.support.web import Browser, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("all_running")]

BUCKETS = 4
UNITS = 40
BUYERS = 96
BROWSERS = 8
# The promise is a second; the rest is for a test machine that has other things to do.
GATHERED_SECONDS_MAX = 2.0


def test_units_in_two_buckets_are_one_purchase_within_a_second(running: ShopProcesses) -> None:
    shop = open_sale(units=2, limit=2, buckets=2)
    ticket = ticket_of(shop, make_buyers(1)[0], key=key_in(shop, 0))
    browser = Browser(port=running.web.port)
    assert browser.purchase(ticket, quantity=2)[0] == 503
    began = time.monotonic()
    assert "-0-" in browser.buy(ticket, quantity=2)
    assert time.monotonic() - began < GATHERED_SECONDS_MAX
    browser.close()
    wait_until(lambda: Order.objects.count() == 1, seconds=10)
    assert left_in(shop) == [0, 0]
    assert_spread_state(shop, sold=2)


def test_a_rush_over_four_buckets_ends_in_orders_for_all_units(running: ShopProcesses) -> None:
    """All buyers come to one bucket: three quarters of the units have to be brought to them."""
    shop = open_sale(units=UNITS, buckets=BUCKETS)
    keyed = [ticket_of(shop, b, key=key_in(shop, 2, after=b.pk)) for b in make_buyers(BUYERS)]

    def buy_all(share: list[str]) -> list[str]:
        browser = Browser(port=running.web.port)
        answers = [browser.buy(ticket) for ticket in share]
        browser.close()
        return answers

    answers = [a for of_one in run_together(buy_all, [keyed[n::BROWSERS] for n in range(BROWSERS)]) for a in of_one]
    assert sum("-2-" in answer for answer in answers) == UNITS
    assert {answer for answer in answers if "-" not in answer} == {"sold_out"}
    wait_until(lambda: Order.objects.count() == UNITS, seconds=10)
    wait_until(lambda: not Transfer.objects.filter(finished_at__isnull=True).exists(), seconds=10)
    assert left_in(shop) == [0] * BUCKETS
    assert_spread_state(shop, sold=UNITS)
