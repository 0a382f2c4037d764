"""Every way in which Redis can lose a bucket: the laws hold after it, it opens by itself, and the incident says why."""

import time
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from benchmarks.servers import PrivateServers
from seckill.errors import GateUnavailable
from seckill.gate.connection import raw_client
from seckill.models import Incident, ItemBucket, RebuildRun, Reservation
from seckill.pausing import pause_item
from seckill.purchase import purchase
from seckill.settlement import settle_bucket
from seckill.sweep import look_over
from seckill.tasks import rebuild_one
from tests.support.nodes import empty_stock
from tests.support.shop import Shop, buy, make_buyers, make_tickets, open_sale, ticket_of
from tests.support.state import dump, numbers

OPEN_AGAIN_SECONDS_MAX = 5
SETTLED, QUEUED = 12, 6


def settle(shop: Shop) -> int:
    return settle_bucket(bucket=shop.bucket, clock=timezone.now).entries


def put_back(shop: Shop, values: list[bytes | None]) -> None:
    for key, value in zip(shop.bucket.keys, values, strict=True):
        assert value is not None
        raw_client().restore(key, 0, value, replace=True)


def wipe(shop: Shop, _old: list[bytes | None], _servers: PrivateServers) -> None:
    empty_stock()


def restart(shop: Shop, _old: list[bytes | None], servers: PrivateServers) -> None:
    servers.stock_redis.restart()


def forget_the_last_second(shop: Shop, old: list[bytes | None], servers: PrivateServers) -> None:
    """The queued ones were in the second that the append-only file did not have."""
    servers.stock_redis.restart()
    put_back(shop, old)


def roll_back(shop: Shop, old: list[bytes | None], servers: PrivateServers) -> None:
    """An older dump: also what MySQL has settled since is missing in it."""
    settle(shop)
    servers.stock_redis.restart()
    put_back(shop, old)


def lose(part: int) -> Callable[[Shop, list[bytes | None], PrivateServers], None]:
    def lose_it(shop: Shop, _old: list[bytes | None], _servers: PrivateServers) -> None:
        raw_client().delete(shop.bucket.keys[part])

    return lose_it


def spoil(part: int) -> Callable[[Shop, list[bytes | None], PrivateServers], None]:
    def spoil_it(shop: Shop, _old: list[bytes | None], _servers: PrivateServers) -> None:
        raw_client().delete(shop.bucket.keys[part])
        raw_client().set(shop.bucket.keys[part], b"\x80\x04garbage")

    return spoil_it


# How it is lost, whether the queued reservations are lost with it, what the incident says.
LOSSES = {
    "wiped": (wipe, True, "the bucket is not in Redis"),
    "restarted": (restart, False, "the server was restarted"),
    "without its last second": (forget_the_last_second, True, "the server was restarted"),
    "rolled back": (roll_back, False, "the server was restarted"),
    "without stock": (lose(0), False, "frozen, damaged"),
    "without its gate": (lose(1), False, "frozen, damaged"),
    "without buyers, the stock there": (lose(2), False, "frozen, damaged"),
    "without receipts": (lose(3), False, "frozen, damaged"),
    "without its queue": (lose(4), True, "frozen, damaged"),
    "its stock garbage": (spoil(0), False, "frozen, damaged"),
    "its gate garbage": (spoil(1), False, "frozen, damaged"),
    "its buyers garbage": (spoil(2), False, "frozen, damaged"),
    "its receipts garbage": (spoil(3), False, "frozen, damaged"),
    "its queue garbage": (spoil(4), True, "frozen, damaged"),
}


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_each_ends_with_the_laws_true_and_the_sale_open(loss: str, servers: PrivateServers) -> None:
    """CASES 15, 17, 22: nothing is sold meanwhile, a pause stays a pause, and nobody is sold a second unit."""
    how, is_queue_lost, words = LOSSES[loss]
    shop = open_sale(units=SETTLED + QUEUED + 1, items=2)
    paused = shop.items[1]
    buyers = make_buyers(SETTLED + QUEUED)
    tickets = [ticket_of(shop, buyer) for buyer in buyers]
    orders = [buy(ticket) for ticket in tickets[:SETTLED]]
    settle(shop)
    pause_item(item_id=paused.pk)
    old = dump(shop.bucket)
    orders += [buy(ticket) for ticket in tickets[SETTLED:]]
    how(shop, old, servers)

    (late,) = make_tickets(shop, 1)
    with pytest.raises(GateUnavailable):
        purchase(ticket=late, quantity=1)
    started = time.monotonic()
    assert look_over(now=timezone.now()).to_rebuild == [shop.bucket]
    rebuild_one(shop.bucket.pool_id, 0)
    assert time.monotonic() - started < OPEN_AGAIN_SECONDS_MAX
    assert words in Incident.objects.get(kind="redis_lost").detail
    assert not Incident.objects.filter(resolved_at=None).exists()

    survivors = SETTLED if is_queue_lost else SETTLED + QUEUED
    assert numbers(shop).left[shop.item.pk] == shop.item.units - survivors
    assert buy(make_tickets(shop, 1, item=paused)[0]) == "Paused"
    assert [buy(ticket) for ticket in tickets] == orders
    assert {buy(ticket_of(shop, buyer)) for buyer in buyers} == {"LimitReached"}
    assert "-" in buy(late)
    assert buy(make_tickets(shop, 1)[0]) == "SoldOut"
    settle(shop)
    row = ItemBucket.objects.get(item_id=shop.item.pk)
    assert (row.sold, row.allocated) == (shop.item.units, shop.item.units)
    assert set(Reservation.objects.values_list("state", flat=True)) == {"SETTLED"}
    assert numbers(shop).queued[shop.item.pk] == 0
    assert look_over(now=timezone.now()).to_rebuild == []


@pytest.mark.slow
def test_ten_thousand_buyers_are_open_again_within_five_seconds() -> None:
    shop = open_sale(units=10_001)
    now = timezone.now()
    Reservation.objects.bulk_create(
        Reservation(
            order_no=f"{shop.pool.pk}-0-{seq:0>16}",
            pool=shop.pool,
            bucket_no=0,
            item=shop.item,
            buyer_id=seq,
            limit_key=str(seq),
            quantity=1,
            unit_price=shop.item.price,
            epoch=1,
            seq=seq,
            state="SETTLED",
            created_at=now,
        )
        for seq in range(1, 10_001)
    )
    ItemBucket.objects.update(sold=10_000)
    empty_stock()
    started = time.monotonic()
    assert look_over(now=timezone.now()).to_rebuild == [shop.bucket]
    rebuild_one(shop.bucket.pool_id, 0)
    seconds = time.monotonic() - started
    assert seconds < OPEN_AGAIN_SECONDS_MAX
    assert [raw_client().hlen(key) for key in shop.bucket.keys[2:4]] == [10_001, 10_001]
    assert numbers(shop).left == {shop.item.pk: 1}
    assert RebuildRun.objects.get().outcome == "DONE"
    assert not User.objects.exists()
