"""Numbers in Redis that no column of MySQL can hold, a hand's work: each ends with the sale open and the laws true."""

import pytest
from django.utils import timezone

from seckill.gate.connection import raw_client
from seckill.models import DeadLetter, Incident, ReconciliationRun, Reservation
from seckill.rebuild import rebuild_bucket
from seckill.repair import reconcile_and_repair
from seckill.settlement import settle_bucket
from seckill.sweep import look_over
from tests.support.archive import archive, assert_archived, end
from tests.support.shop import Shop, buy, make_ticket, make_tickets, open_sale
from tests.support.state import assert_settled_state, numbers

HUGE = "99999999999990"


def settle(shop: Shop) -> None:
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


def heal(shop: Shop) -> None:
    """What the sweep and its task do."""
    for bucket in look_over(now=timezone.now()).to_rebuild:
        rebuild_bucket(bucket=bucket, clock=timezone.now)


@pytest.mark.parametrize(
    "field", ["epoch", "seq", "settled_seq", "adj_no", "repair_no", "limit", "max_queue", "woken_ms"]
)
def test_a_number_of_the_gate(field: str) -> None:
    shop = open_sale(units=10)
    first, second, third = make_tickets(shop, 3)
    buy(first)
    settle(shop)
    buy(second)
    raw_client().hset(shop.bucket.keys[1], field, HUGE)

    heal(shop)

    assert buy(third) not in {"GateUnavailable", "SoldOut"}
    settle(shop)
    heal(shop)
    assert reconcile_and_repair(bucket=shop.bucket, clock=timezone.now).is_balanced
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert look_over(now=timezone.now()).to_rebuild == []
    assert_settled_state(shop, sold=3)


@pytest.mark.parametrize(
    ("field", "value"),
    [("limit", "5"), ("opens_ms", "99"), ("closes_ms", "1"), ("window_no", "3"), ("price", "0.01")],
)
def test_a_promise_in_the_gate_that_is_not_mysql_s(field: str, value: str) -> None:
    """Limit, window and price are fixed from preheat on, or change by approval: another one is a hand's work."""
    shop = open_sale(units=5)
    key, name = (0, f"{shop.item.pk}:price") if field == "price" else (1, field)
    before = raw_client().hget(shop.bucket.keys[key], name)
    raw_client().hset(shop.bucket.keys[key], name, value)

    heal(shop)

    assert raw_client().hget(shop.bucket.keys[key], name) == before
    assert look_over(now=timezone.now()).to_rebuild == []
    buy(make_ticket(shop))
    settle(shop)
    assert_settled_state(shop, sold=1)


@pytest.mark.parametrize("name", ["left", "queued"])
def test_a_number_of_the_stock(name: str) -> None:
    shop = open_sale(units=2)
    first, second, third = make_tickets(shop, 3)
    buy(first)
    raw_client().hset(shop.bucket.keys[0], f"{shop.item.pk}:{name}", HUGE)

    heal(shop)
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)

    assert numbers(shop).left == {shop.item.pk: 1}
    assert numbers(shop).queued == {shop.item.pk: 0}
    buy(second)
    assert buy(third) == "SoldOut"
    settle(shop)
    assert_settled_state(shop, sold=2)
    assert ReconciliationRun.objects.exists()


@pytest.mark.parametrize("price", ["99999999999999999999", "1e30", "0.123", "-1"])
def test_a_price_in_the_queue(price: str) -> None:
    """It concerns its own entry, and neither holds up the others nor shuts the sale."""
    shop = open_sale(units=10)
    for ticket in make_tickets(shop, 2):
        buy(ticket)
    queue = shop.bucket.keys[4]
    (spoiled_id, fields), _ = raw_client().xrange(queue)
    raw_client().xdel(queue, spoiled_id)
    raw_client().xadd(queue, fields | {b"price": price})

    settle(shop)

    assert raw_client().xlen(queue) == 0
    assert Reservation.objects.count() + DeadLetter.objects.count() == 2
    assert Reservation.objects.filter(state="SETTLED").count() >= 1
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)


@pytest.mark.parametrize(("name", "settled"), [("quantity", 1), ("item", 1), ("buyer", 1), ("seq", 1), ("epoch", 2)])
def test_a_number_in_the_queue(name: str, settled: int) -> None:
    shop = open_sale(units=10)
    for ticket in make_tickets(shop, 2):
        buy(ticket)
    queue = shop.bucket.keys[4]
    (spoiled_id, fields), _ = raw_client().xrange(queue)
    raw_client().xdel(queue, spoiled_id)
    raw_client().xadd(queue, fields | {name.encode(): "9" * 30})

    settle(shop)
    heal(shop)
    settle(shop)

    assert raw_client().xlen(queue) == 0
    assert Reservation.objects.filter(state="SETTLED").count() == settled
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    buy(make_ticket(shop))
    settle(shop)
    assert Reservation.objects.filter(state="SETTLED").count() == settled + 1
    assert not Incident.objects.filter(kind="settlement_stopped", open_key__isnull=False).exists()


@pytest.mark.timeout(60)
def test_a_gap_of_billions_between_two_numbers() -> None:
    """Whoever goes through the rows chunk by chunk does not go through the gap."""
    shop = open_sale(units=10)
    first, second = make_tickets(shop, 2)
    buy(first)
    settle(shop)
    raw_client().hset(shop.bucket.keys[1], "seq", "500000000000")
    buy(second)
    settle(shop)
    assert sorted(Reservation.objects.values_list("seq", flat=True))[1] == 500_000_000_001

    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert_settled_state(shop, sold=2)
    end(shop)
    archive(shop)
    assert_archived(shop, sold=2)
