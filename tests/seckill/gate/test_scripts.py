"""The other scripts: idempotent, fenced, none brings a missing key to life; and how scripts are called."""

from collections.abc import Callable

import pytest
from django.core.cache import caches
from django.utils import timezone
from redis.crc import key_slot

from seckill.errors import GateUnavailable, NotPreheated
from seckill.gate import gate, staging
from seckill.gate.connection import raw_client
from seckill.gate.entries import BadEntry, QueueEntry
from seckill.gate.gate import Confirmation, Release
from seckill.gate.keys import BucketRef
from seckill.gate.receipts import Receipt, ReceiptState, parse_receipt
from seckill.settlement import settle_bucket
from tests.support.nodes import flush_scripts, key_count
from tests.support.shop import Shop, buy, make_ticket, make_tickets, open_sale
from tests.support.state import assert_settled_state, dump, numbers


def head(shop: Shop) -> QueueEntry:
    entry = gate.snapshot(bucket=shop.bucket, entries_max=1).entries[0]
    assert isinstance(entry, QueueEntry)
    return entry


def confirm(shop: Shop, entry: QueueEntry, epoch: int = 1) -> int:
    done = [Confirmation(entry=entry)]
    return gate.confirm(bucket=shop.bucket, epoch=epoch, settled_seq=entry.seq, confirmations=done)


def release(shop: Shop, entry: QueueEntry, *, owed: int = 1, epoch: int = 1) -> int:
    done = [Release(entry=entry, units_owed=owed, reason="limit_reached")]
    return gate.release(bucket=shop.bucket, epoch=epoch, settled_seq=entry.seq, releases=done)


def test_confirm_counts_once() -> None:
    shop = open_sale()
    buy(make_ticket(shop))
    entry = head(shop)
    assert [confirm(shop, entry), confirm(shop, entry)] == [1, 0]
    snapshot = numbers(shop)
    assert (snapshot.left, snapshot.queued) == ({shop.item.pk: 9}, {shop.item.pk: 0})
    assert snapshot.settled_seq == entry.seq
    receipt = gate.look_up(bucket=shop.bucket, order_no=entry.order_no)
    assert receipt is not None
    assert receipt.state is ReceiptState.CONFIRMED


def test_release_gives_back_once() -> None:
    shop = open_sale()
    buy(make_ticket(shop))
    entry = head(shop)
    assert [release(shop, entry), release(shop, entry), confirm(shop, entry)] == [1, 0, 0]
    snapshot = numbers(shop)
    assert (snapshot.left, snapshot.queued) == ({shop.item.pk: 10}, {shop.item.pk: 0})
    assert raw_client().hget(shop.bucket.keys[2], entry.limit_key) is None
    receipt = gate.look_up(bucket=shop.bucket, order_no=entry.order_no)
    assert receipt == Receipt(
        state=ReceiptState.REFUSED,
        item_id=shop.item.pk,
        quantity=1,
        buyer_id=entry.buyer_id,
        reason="limit_reached",
    )


def test_release_of_a_phantom_gives_no_unit_back() -> None:
    shop = open_sale()
    buy(make_ticket(shop))
    assert release(shop, head(shop), owed=0) == 1
    assert numbers(shop).left == {shop.item.pk: 9}


def test_another_epoch_changes_nothing() -> None:
    shop = open_sale()
    buy(make_ticket(shop))
    entry, before = head(shop), dump(shop.bucket)
    for call in (confirm, release):
        with pytest.raises(GateUnavailable):
            call(shop, entry, epoch=2)
    with pytest.raises(GateUnavailable):
        gate.drop(bucket=shop.bucket, epoch=2, stream_ids=[entry.stream_id])
    assert dump(shop.bucket) == before


@pytest.mark.parametrize("call", [confirm, release])
def test_a_damaged_counter_is_noticed_before_the_first_write(call: Callable[[Shop, QueueEntry], int]) -> None:
    shop = open_sale()
    buy(make_ticket(shop))
    entry = head(shop)
    raw_client().hset(shop.bucket.keys[0], f"{shop.item.pk}:queued", "abc")
    before = dump(shop.bucket)
    with pytest.raises(GateUnavailable):
        call(shop, entry)
    assert dump(shop.bucket) == before


def test_nothing_comes_to_life() -> None:
    shop = open_sale()
    buy(make_ticket(shop))
    entry = head(shop)
    raw_client().delete(*shop.bucket.keys)
    for call in (confirm, release):
        with pytest.raises(GateUnavailable):
            call(shop, entry)
    assert not gate.pause(bucket=shop.bucket, item_id=shop.item.pk)
    assert not gate.resume(bucket=shop.bucket, item_id=shop.item.pk)
    staging.freeze(bucket=shop.bucket, token="token")
    with pytest.raises(NotPreheated):
        gate.snapshot(bucket=shop.bucket, entries_max=1)
    with pytest.raises(NotPreheated):
        gate.look_up(bucket=shop.bucket, order_no=entry.order_no)
    assert key_count() == 0


def test_resume_never_thaws() -> None:
    shop = open_sale()
    gate.pause(bucket=shop.bucket, item_id=shop.item.pk)
    staging.freeze(bucket=shop.bucket, token="token")
    gate.resume(bucket=shop.bucket, item_id=shop.item.pk)
    assert raw_client().hget(shop.bucket.keys[1], "frozen") == b"token"


def test_unreadable_entries_come_out_as_such() -> None:
    shop = open_sale()
    raw_client().xadd(shop.bucket.keys[4], {"order": "x", "item": "one"})
    raw_client().xadd(shop.bucket.keys[4], {b"\xff": b"\xfe"})
    entries = gate.snapshot(bucket=shop.bucket, entries_max=10).entries
    assert [type(entry) for entry in entries] == [BadEntry, BadEntry]


@pytest.mark.parametrize("text", ["", "queued", "queued|1|1", "sold|1|1|7", "queued|a|1|7", "queued|1|1|7|9"])
def test_damaged_receipts_answer_nothing(text: str) -> None:
    with pytest.raises(GateUnavailable):
        parse_receipt(text)


def test_script_flush_between_any_two_calls() -> None:
    """CASES 12: the script is loaded again by itself, and runs once."""
    shop = open_sale(units=20)
    for ticket in make_tickets(shop, 20):
        flush_scripts()
        assert "-" in buy(ticket)
    flush_scripts()
    assert settle_bucket(bucket=shop.bucket, clock=timezone.now).entries == 20
    flush_scripts()
    assert_settled_state(shop, sold=20)


@pytest.mark.parametrize("pool_id", [1, 2, 99, 10**9, 2**63 - 1])
@pytest.mark.parametrize("number", [0, 1, 255])
def test_all_keys_of_a_bucket_share_one_slot(pool_id: int, number: int) -> None:
    """CASES 13: also staging and trash, which a swap renames."""
    bucket = BucketRef(pool_id=pool_id, number=number)
    keys = (*bucket.keys, *bucket.staging_keys("a{b}c"), *bucket.trash_keys("}{"))
    assert len({key_slot(key.encode()) for key in keys}) == 1
    assert len(set(keys)) == 15


def test_a_cache_prefix_does_not_touch_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """CASES 16: one accessor for all keys; what the cache API adds in front never reaches them."""
    stock = caches["stock"]
    monkeypatch.setattr(stock, "key_prefix", "{p}p")
    monkeypatch.setattr(stock, "version", 2)
    shop = open_sale(units=1)
    assert {key.decode() for key in raw_client().scan_iter()} == set(shop.bucket.keys)
    assert "-" in buy(make_ticket(shop))


def test_live_keys_never_expire() -> None:
    """CASES 17: no TTL on anything the sale lives by."""
    shop = open_sale()
    buy(make_ticket(shop))
    assert [raw_client().ttl(key) for key in shop.bucket.keys] == [-1] * 5
