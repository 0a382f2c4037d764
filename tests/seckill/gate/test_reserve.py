"""Every reply of reserve.lua, and that a refusal changes nothing: the five keys are compared byte for byte."""

from datetime import timedelta
from typing import Any

import pytest

from seckill.errors import GateUnavailable
from seckill.gate import gate
from seckill.gate.codes import ReserveCode
from seckill.gate.connection import raw_client
from seckill.gate.gate import ReserveReply
from tests.support.nodes import key_count, server_of
from tests.support.shop import Shop, open_sale
from tests.support.state import dump, numbers

FAR = 4_102_444_800_000  # the year 2100, in milliseconds


def reserve(shop: Shop, **wish: Any) -> ReserveReply:
    """Reserve one unit of the first item for buyer 7; ``wish`` says what shall be otherwise."""
    usual: dict[str, Any] = {
        "bucket": shop.bucket,
        "order_no": "1-0-aaaaaaaaaaaaaaaa",
        "item_id": shop.item.pk,
        "buyer_id": 7,
        "limit_key": "7",
        "quantity": 1,
        "price": "1499.00",
        "ticket_expires_ms": FAR,
    }
    return gate.reserve(**usual | wish)


def assert_refused(shop: Shop, code: ReserveCode, number: int | None = None, **wish: Any) -> None:
    before = dump(shop.bucket)
    reply = reserve(shop, **wish)
    assert reply.code is code
    assert not reply.is_wake_up_wanted
    if number is not None:
        assert reply.number == number
    assert dump(shop.bucket) == before


def test_reserved_writes_everything_once() -> None:
    shop = open_sale(units=5, limit=3)
    reply = reserve(shop, quantity=2)
    assert reply == ReserveReply(code=ReserveCode.RESERVED, number=0, is_wake_up_wanted=True)
    snapshot = gate.snapshot(bucket=shop.bucket, entries_max=10)
    item = shop.item.pk
    assert (snapshot.left, snapshot.queued, snapshot.queue_length) == ({item: 3}, {item: 2}, 1)
    (entry,) = snapshot.entries
    assert {name: getattr(entry, name) for name in ("order_no", "item_id", "buyer_id", "limit_key", "quantity")} == {
        "order_no": "1-0-aaaaaaaaaaaaaaaa",
        "item_id": item,
        "buyer_id": 7,
        "limit_key": "7",
        "quantity": 2,
    }
    client = raw_client()
    assert client.hget(shop.bucket.keys[2], "7") == b"2"
    assert client.hget(shop.bucket.keys[3], "1-0-aaaaaaaaaaaaaaaa") == f"queued|{item}|2|7".encode()


def test_a_repeat_is_already_yours() -> None:
    shop = open_sale()
    reserve(shop)
    assert_refused(shop, ReserveCode.ALREADY_YOURS)


@pytest.mark.parametrize("change", [{"quantity": 2}, {"buyer_id": 8}])
def test_a_repeat_with_other_facts_is_a_conflict(change: dict[str, int]) -> None:
    shop = open_sale(limit=3)
    reserve(shop)
    assert_refused(shop, ReserveCode.CONFLICT, **change)


def test_a_repeat_for_another_item_is_a_conflict() -> None:
    shop = open_sale(limit=3, items=2)
    reserve(shop)
    assert_refused(shop, ReserveCode.CONFLICT, item_id=shop.items[1].pk)


def test_sold_out_tells_what_is_left() -> None:
    shop = open_sale(units=2, limit=5)
    assert_refused(shop, ReserveCode.SOLD_OUT, number=2, quantity=3)
    reserve(shop, quantity=2)
    assert_refused(shop, ReserveCode.SOLD_OUT, number=0, order_no="1-0-bbbbbbbbbbbbbbbb", limit_key="8")


def test_limit_reached_tells_what_is_held() -> None:
    shop = open_sale(limit=2)
    reserve(shop, quantity=2)
    assert_refused(shop, ReserveCode.LIMIT_REACHED, number=2, order_no="1-0-bbbbbbbbbbbbbbbb")


def test_not_started_tells_how_long() -> None:
    shop = open_sale(opens_in=timedelta(seconds=30))
    before = dump(shop.bucket)
    reply = reserve(shop)
    assert reply.code is ReserveCode.NOT_STARTED
    assert 0 < reply.number <= 30_000
    assert dump(shop.bucket) == before


def test_the_window_is_half_open() -> None:
    """CASES 11: a call at exactly the opening passes, one at exactly the end does not."""
    shop = open_sale()
    client, (_, gate_key, *_) = server_of(shop.bucket), shop.bucket.keys
    seconds, microseconds = client.time()
    now = seconds * 1000 + microseconds // 1000
    client.hset(gate_key, mapping={"opens_ms": now - 60_000, "closes_ms": now})
    assert_refused(shop, ReserveCode.ENDED)
    client.hset(gate_key, mapping={"opens_ms": now, "closes_ms": now + 60_000})
    assert reserve(shop).code is ReserveCode.RESERVED


def test_paused_refuses_and_resume_lets_in() -> None:
    shop = open_sale(items=2)
    gate.pause(bucket=shop.bucket, item_id=shop.item.pk)
    assert_refused(shop, ReserveCode.PAUSED)
    assert reserve(shop, item_id=shop.items[1].pk).code is ReserveCode.RESERVED
    gate.resume(bucket=shop.bucket, item_id=shop.item.pk)
    assert reserve(shop, order_no="1-0-bbbbbbbbbbbbbbbb", limit_key="8").code is ReserveCode.RESERVED


def test_busy_at_the_longest_queue() -> None:
    shop = open_sale(max_queue=1)
    reserve(shop)
    assert_refused(shop, ReserveCode.BUSY, order_no="1-0-bbbbbbbbbbbbbbbb", limit_key="8")


def test_nothing_there_is_not_preheated() -> None:
    shop = open_sale()
    raw_client().delete(*shop.bucket.keys)
    assert_refused(shop, ReserveCode.NOT_PREHEATED)
    assert key_count() == 0


def test_frozen_is_unavailable_but_a_repeat_keeps_its_answer() -> None:
    shop = open_sale()
    reserve(shop)
    raw_client().hset(shop.bucket.keys[1], "frozen", "somebody")
    assert_refused(shop, ReserveCode.UNAVAILABLE, order_no="1-0-bbbbbbbbbbbbbbbb", limit_key="8")
    assert_refused(shop, ReserveCode.ALREADY_YOURS)


def test_another_run_id_is_unavailable() -> None:
    shop = open_sale()
    raw_client().hset(shop.bucket.keys[1], "run_id", "0" * 40)
    assert_refused(shop, ReserveCode.UNAVAILABLE)


def test_an_expired_ticket_bars_a_new_reservation_only() -> None:
    shop = open_sale()
    assert_refused(shop, ReserveCode.TICKET_EXPIRED, ticket_expires_ms=1)
    reserve(shop)
    assert_refused(shop, ReserveCode.ALREADY_YOURS, ticket_expires_ms=1)


@pytest.mark.parametrize("price", ["1498.99", "1499.000", "1499", "", "0"])
def test_another_price_than_the_sale_has_is_refused(price: str) -> None:
    """A ticket of before a withdrawal, or a price changed past the services: nobody pays what was not announced."""
    shop = open_sale()
    assert_refused(shop, ReserveCode.PRICE_CHANGED, 0, price=price)
    assert reserve(shop).code is ReserveCode.RESERVED
    assert reserve(shop, price=price).code is ReserveCode.ALREADY_YOURS


def test_a_stock_without_prices_is_unavailable() -> None:
    shop = open_sale()
    raw_client().hdel(shop.bucket.keys[0], f"{shop.item.pk}:price")
    assert_refused(shop, ReserveCode.UNAVAILABLE)


@pytest.mark.parametrize("quantity", [-5, 0, -1, 10**18, 10**30])
def test_strange_quantities_are_refused(quantity: int) -> None:
    """CASES 38: -5 must not add stock; nothing huge may turn into a float."""
    assert_refused(open_sale(limit=1_000), ReserveCode.BAD_QUANTITY, quantity=quantity)


@pytest.mark.parametrize("quantity", ["1.5", "1e1", " 1", "1 ", "", "x", "+1", "0x1"])
def test_quantities_that_are_no_integers_are_refused(quantity: str) -> None:
    assert_refused(open_sale(limit=1_000), ReserveCode.BAD_QUANTITY, quantity=quantity)


@pytest.mark.parametrize("stock", ["10.5", "1e3", " 10", "10\n", "abc", "", '"10"', "\x80\x04K\n.", "-1", "9" * 30])
def test_garbage_in_the_stock_is_unavailable(stock: str) -> None:
    """CASES 15: corrupt stock is neither "not preheated" nor an error, and sells nothing."""
    shop = open_sale()
    raw_client().hset(shop.bucket.keys[0], f"{shop.item.pk}:left", stock)
    assert_refused(shop, ReserveCode.UNAVAILABLE)


@pytest.mark.parametrize("field", ["limit", "seq", "epoch", "opens_ms", "closes_ms", "max_queue"])
def test_garbage_in_the_gate_is_unavailable(field: str) -> None:
    shop = open_sale()
    raw_client().hset(shop.bucket.keys[1], field, "1e3")
    assert_refused(shop, ReserveCode.UNAVAILABLE)


@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("damage", ["deleted", "string", "other hash"])
def test_any_damaged_key_is_unavailable(part: int, damage: str) -> None:
    """CASES 14, 17: one key missing, of the wrong type or of no epoch, and nothing is sold or written."""
    shop, client = open_sale(), raw_client()
    key = shop.bucket.keys[part]
    client.delete(key)
    if damage == "string":
        client.set(key, "10")
    elif damage == "other hash":
        client.hset(key, "field", "10")
    assert_refused(shop, ReserveCode.UNAVAILABLE)


def test_two_neighbouring_18_digit_ids_stay_two() -> None:
    """CASES 21: ids are strings in the script."""
    shop = open_sale(units=2)
    first, second = 201605131024011014, 201605131024011015
    for n, buyer in enumerate((first, second)):
        number = f"1-0-aaaaaaaaaaaaaaa{n + 2}"
        assert reserve(shop, order_no=number, buyer_id=buyer, limit_key=str(buyer)).code is ReserveCode.RESERVED
    buyers = raw_client().hgetall(shop.bucket.keys[2])
    assert buyers[str(first).encode()] == buyers[str(second).encode()] == b"1"


def test_one_wake_up_per_second() -> None:
    """A wake-up is wanted when the queue was empty, and again when the last is over a second old."""
    shop, client = open_sale(), raw_client()
    keys = iter("abcdefghij")

    def is_wanted() -> bool:
        key = next(keys)
        return reserve(shop, order_no=f"1-0-aaaaaaaaaaaaaaa{key}", limit_key=key).is_wake_up_wanted

    assert [is_wanted(), is_wanted(), is_wanted()] == [True, False, False]
    client.hincrby(shop.bucket.keys[1], "woken_ms", -1_001)
    assert [is_wanted(), is_wanted()] == [True, False]


def test_an_answer_that_is_none_of_the_codes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """CASES 19: what is not one of the script's own codes is never taken for a verdict."""
    shop = open_sale()
    monkeypatch.setattr(gate, "_reserve", lambda *_: [17, 0, 0])
    with pytest.raises(GateUnavailable):
        reserve(shop)


def test_out_of_memory_changes_nothing() -> None:
    """CASES 18: at the memory limit the script fails before its first write, and passes again afterwards."""
    shop = open_sale()
    before, client = dump(shop.bucket), server_of(shop.bucket)
    client.config_set("maxmemory", 1)
    try:
        with pytest.raises(GateUnavailable):
            reserve(shop)
    finally:
        client.config_set("maxmemory", 0)
    assert dump(shop.bucket) == before
    assert reserve(shop).code is ReserveCode.RESERVED


@pytest.mark.one_server
def test_a_read_only_replica_changes_nothing() -> None:
    """CASES 18: READONLY is an outage, and the same connection pool works again after it."""
    shop, client = open_sale(), raw_client()
    client.replicaof("127.0.0.1", 1)
    try:
        with pytest.raises(GateUnavailable):
            reserve(shop)
    finally:
        client.replicaof("NO", "ONE")
    assert numbers(shop).left == {shop.item.pk: 10}
    assert reserve(shop).code is ReserveCode.RESERVED
