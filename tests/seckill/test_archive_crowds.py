"""The archive of many: nothing is read or removed in one piece, and buyers of another item are served meanwhile."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from django.db import connections

from benchmarks.crowd import fill
from inventory.models import Stock
from seckill.archive_tables import BuyerArchive
from seckill.conf import LIMITS
from seckill.gate import archiving
from seckill.gate.connection import raw_client
from seckill.models import FlashSale, ItemBucket
from tests.support.archive import archive, end
from tests.support.shop import Shop, buy, make_tickets, open_sale

# What a script of ours may cost Redis at the very most here, where other tests take the CPU away from it.
MICROSECONDS_MAX = 60_000
# What no call may take on a quiet machine.
BLOCKING_MICROSECONDS = 5_000
PURCHASES = 200
WORST_SECONDS = 1.0


def crowd(buyers: int, *, units: int) -> Shop:
    """A sale that has ended with so many buyers."""
    shop = open_sale(units=units)
    for _ in fill(bucket=shop.bucket, item_id=shop.item.pk, buyers=buyers):
        pass
    end(shop)
    return shop


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_100_000_buyers() -> None:
    shop, other = crowd(100_000, units=100_003), open_sale(units=PURCHASES)
    with buying(other) as waits:
        run = archive(shop)
    assert len(waits) == PURCHASES
    assert max(waits) < WORST_SECONDS
    found, receipts = run.manifest["buyers"], run.manifest["receipts"]
    assert (run.stage, found["count"], found["units"], found["differing"]) == ("DONE", 100_000, 100_000, 0)
    assert (receipts["in_redis"], receipts["in_mysql"], receipts["differing"]) == (100_000, 100_000, 0)
    assert BuyerArchive.objects.count() == 100_000
    unit = ItemBucket.objects.get(item_id=shop.item.pk)
    assert (unit.allocated, unit.sold, Stock.objects.get(sku=shop.item.sku).on_hand) == (100_000, 100_000, 3)
    assert FlashSale.objects.get(pk=shop.sale.pk).state == "ARCHIVED"
    assert raw_client().exists(*shop.bucket.keys) == 0


@pytest.mark.slow
def test_300_000_marks_leave_redis_in_small_pieces() -> None:
    """CASES 20: read in pieces of a bounded size and unlinked. The control is the next test."""
    shop = marked(300_000)
    assert archiving.seal(bucket=shop.bucket, epoch=1)
    assert archiving.close(bucket=shop.bucket, epoch=1)
    found, sizes, cursor = set[bytes](), list[int](), archiving.FIRST_CURSOR
    while not sizes or cursor != archiving.FIRST_CURSOR:
        chunk = archiving.scan_buyers(bucket=shop.bucket, epoch=1, cursor=cursor, count=LIMITS.chunk_size)
        found.update(chunk.buyers)
        cursor = chunk.cursor
        sizes.append(len(chunk.buyers))
    archiving.unlink(bucket=shop.bucket, token="none")
    assert (len(found), max(sizes) < 2 * LIMITS.chunk_size) == (300_000, True)
    assert long_calls() == []


@pytest.mark.slow
def test_control_one_read_and_one_del_block_redis() -> None:
    """The control: what a shop does that reads the set in one piece, and deletes it by DEL as most servers take it."""
    shop = marked(300_000)
    raw_client().config_set("lazyfree-lazy-user-del", "no")  # Valkey turns it into UNLINK unless told not to.
    raw_client().config_set("slowlog-log-slower-than", BLOCKING_MICROSECONDS)
    raw_client().slowlog_reset()
    raw_client().hgetall(shop.bucket.keys[2])
    raw_client().delete(shop.bucket.keys[2])
    assert {name.split()[0] for name in long_calls()} == {"HGETALL", "DEL"}


def marked(buyers: int) -> Shop:
    """A sale that has ended with so many marks in Redis, and none of their reservations."""
    shop = open_sale()
    for start in range(0, buyers, 10_000):
        raw_client().hset(shop.bucket.keys[2], mapping={str(10**9 + start + n): 1 for n in range(10_000)})
    end(shop)
    raw_client().config_set("slowlog-log-slower-than", MICROSECONDS_MAX)
    raw_client().slowlog_reset()
    return shop


def long_calls() -> list[str]:
    return [entry["command"].decode(errors="replace")[:200] for entry in raw_client().slowlog_get(100)]


@contextmanager
def buying(shop: Shop) -> Iterator[list[float]]:
    """Buy one unit after the other in a thread for the length of the block and until all are bought."""
    tickets, waits = make_tickets(shop, PURCHASES), list[float]()

    def buy_all() -> None:
        try:
            for ticket in tickets:
                started = time.perf_counter()
                assert "-" in buy(ticket)
                waits.append(time.perf_counter() - started)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(max_workers=1) as pool:
        done = pool.submit(buy_all)
        yield waits
        done.result()
