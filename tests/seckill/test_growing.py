"""A pool that is on sale gets more buckets: marks stay where they are, units come by themselves, nobody is lied to."""

import threading
from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command
from django.db import connections, transaction
from django.utils import timezone

from seckill import growing, tickets
from seckill.elsewhere import memory
from seckill.errors import GateUnavailable, NotPreheated, SaleNotReady
from seckill.gate import changing
from seckill.gate.connection import raw_client
from seckill.gate.keys import BucketRef
from seckill.gathering import buckets_to_fill, gather
from seckill.growing import grow_pool
from seckill.models import Bucket, SalePool, Ticket
from seckill.order_numbers import bucket_of
from seckill.placing import bucket_for, place_of
from seckill.rebuild import rebuild_bucket
from seckill.sweep import look_over
from seckill.tickets import new_ticket, sign_ticket
from tests.support.buckets import allocated_in, assert_spread_state, left_in, settle_all
from tests.support.shop import Shop, buy, make_buyers, make_sale, open_sale, ticket_of


def grow(shop: Shop, buckets: int) -> None:
    grow_pool(pool_id=shop.pool.pk, buckets=buckets, clock=timezone.now)
    shop.pool.refresh_from_db()


def fill(shop: Shop) -> None:
    for want in buckets_to_fill(now=timezone.now()):
        gather(want=want, clock=timezone.now)


def key_of_new(shop: Shop, number: int) -> str:
    """A key that nobody has a ticket for, and that is new keys' bucket so-and-so."""
    return next(
        key
        for key in (f"new-{n}" for n in range(1_000))
        if bucket_for(pool_id=shop.pool.pk, key=key, buckets=shop.pool.bucket_count).number == number
    )


def issue(shop: Shop, key: str) -> str:
    (buyer,) = make_buyers(1)
    item = type(shop.item).objects.select_related("pool__sale").get(pk=shop.item.pk)
    ticket = new_ticket(item=item, buyer_id=buyer.pk, key=key, open_key=None, now=timezone.now())
    return sign_ticket(order_no=ticket.order_no, item=item, buyer_id=buyer.pk, key=key)


def test_old_tickets_work_the_limit_holds_and_units_come_to_the_new_buckets() -> None:
    shop = open_sale(units=12, limit=2)
    one, two = make_buyers(2)
    used, unused = ticket_of(shop, one), ticket_of(shop, two)
    number = buy(used)
    grow(shop, 3)
    assert (allocated_in(shop), left_in(shop)) == ([12, 0, 0], [11, 0, 0])
    fill(shop)
    assert left_in(shop) == [3, 4, 4]
    assert buy(used) == number
    assert "-0-" in buy(unused)
    # A further ticket of an old key is for the bucket that has its mark; so two and not three are his.
    assert place_of(pool_id=shop.pool.pk, key=str(one.pk)) == shop.buckets[0]
    assert "-0-" in buy(ticket_of(shop, one))
    assert buy(ticket_of(shop, one)) == "LimitReached"
    # New keys are spread over all three.
    assert [bucket_of(buy(issue(shop, key_of_new(shop, n)))).number for n in range(3)] == [0, 1, 2]
    settle_all(shop)
    assert_spread_state(shop, sold=6)


@pytest.mark.slow
def test_an_old_gate_never_says_sold_out_for_units_in_a_new_bucket() -> None:
    shop = open_sale(units=3, limit=3)
    ticket = ticket_of(shop, make_buyers(1)[0])
    grow(shop, 2)
    fill(shop)
    assert left_in(shop) == [1, 2]
    assert buy(ticket, 3) == "Busy"
    memory.forget()
    assert raw_client().hget(shop.bucket.keys[1], "buckets") == b"2"


@pytest.mark.slow
@pytest.mark.parametrize("buckets", [0, 1, 2, 65])
def test_it_only_grows_and_not_without_end(buckets: int) -> None:
    shop = open_sale(units=4, buckets=2)
    with pytest.raises(SaleNotReady, match="3 to 64"):
        grow(shop, buckets)
    assert Bucket.objects.count() == 2


@pytest.mark.slow
def test_only_a_pool_on_sale_grows() -> None:
    shop = make_sale()
    with pytest.raises(SaleNotReady, match="on sale"):
        grow(shop, 2)
    with pytest.raises(CommandError, match="on sale"):
        call_command("grow_pool", str(shop.pool.pk), "2", "--reason", "a crowd comes")


@pytest.mark.slow
def test_the_command_grows(capsys: pytest.CaptureFixture[str]) -> None:
    shop = open_sale(units=4)
    call_command("grow_pool", str(shop.pool.pk), "4", "--reason", "a crowd comes")
    assert capsys.readouterr().out == f"pool {shop.pool.pk} has 4 buckets\n"
    assert Bucket.objects.count() == 4


@pytest.mark.slow
def test_a_gate_that_cannot_be_told_keeps_everything_as_it_was() -> None:
    shop = open_sale(units=4, buckets=2)
    raw_client().delete(*shop.buckets[1].keys)
    with pytest.raises(GateUnavailable):
        grow(shop, 3)
    assert (Bucket.objects.count(), SalePool.objects.get().bucket_count) == (2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["_tell", "rebuild_in_turn"])
def test_killed_after_mysql_the_sweep_goes_on(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Nothing of the new buckets is there, or an old gate has been rebuilt and says the old number."""
    shop = open_sale(units=4)
    function: Callable[..., object] = getattr(growing, step)

    def die(**arguments: object) -> object:
        if Bucket.objects.count() > 1:
            raise RuntimeError("killed")
        return function(**arguments)

    monkeypatch.setattr(growing, step, die)
    with pytest.raises(RuntimeError):
        grow(shop, 2)
    raw_client().hset(shop.bucket.keys[1], "buckets", "1")
    shop.pool.refresh_from_db()
    Bucket.objects.update(claim_until=None)
    assert look_over(now=timezone.now()).to_rebuild == [shop.buckets[1]]
    assert raw_client().hget(shop.bucket.keys[1], "buckets") == b"2"
    rebuild_bucket(bucket=shop.buckets[1], clock=timezone.now)
    assert look_over(now=timezone.now()).to_rebuild == []
    fill(shop)
    assert left_in(shop) == [2, 2]
    assert_spread_state(shop, sold=0)


def test_a_late_widening_makes_no_pool_smaller() -> None:
    shop = open_sale(units=4, buckets=4)
    changing.widen(bucket=shop.bucket, buckets=2)
    assert raw_client().hget(shop.bucket.keys[1], "buckets") == b"4"
    raw_client().delete(*shop.bucket.keys)
    with pytest.raises(NotPreheated):
        changing.widen(bucket=shop.bucket, buckets=5)


def test_a_ticket_is_placed_anew_when_the_pool_has_grown_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(units=4)
    key = "3"
    placed: list[BucketRef] = []

    def grow_then(*, pool_id: int, key: str) -> BucketRef:
        place = place_of(pool_id=pool_id, key=key)
        if not placed:
            thread = threading.Thread(target=in_a_session_of_its_own(lambda: grow(shop, 4)))
            thread.start()
            thread.join()
        placed.append(place)
        return place

    monkeypatch.setattr(tickets, "place_of", grow_then)
    issue(shop, key)
    wanted = bucket_for(pool_id=shop.pool.pk, key=key, buckets=4)
    assert (placed, wanted.number) == ([shop.bucket, wanted], 3)
    assert bucket_of(Ticket.objects.get().order_no) == wanted


def test_a_pool_grows_only_when_the_tickets_being_written_are_there() -> None:
    shop = open_sale(units=4)
    grown = threading.Event()

    def work() -> None:
        grow(shop, 4)
        grown.set()

    thread = threading.Thread(target=in_a_session_of_its_own(work))
    with transaction.atomic():
        issue(shop, "3")
        thread.start()
        assert not grown.wait(timeout=0.7)
    thread.join(timeout=10)
    assert grown.is_set()
    assert place_of(pool_id=shop.pool.pk, key="3") == shop.bucket


@pytest.mark.slow
def test_control_without_the_second_look_a_key_is_counted_in_two_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the two above: a ticket of the old number beside one of the new, and twice the limit."""
    shop = open_sale(units=4, limit=1)
    monkeypatch.setattr(tickets, "bucket_count", lambda _pool_id: 0)
    before = place_of(pool_id=shop.pool.pk, key="3")
    grow(shop, 4)
    fill(shop)
    new = issue(shop, "3")
    monkeypatch.setattr(tickets, "place_of", lambda **_: before)
    old = issue(shop, "3")
    assert "-3-" in buy(new)
    assert "-0-" in buy(old)


def in_a_session_of_its_own(work: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    return run
