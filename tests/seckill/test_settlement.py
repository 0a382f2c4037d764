"""Settlement: exact batches, twice, at once, killed, with bad rows, and with whatever MySQL may say."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from orders.models import Order
from seckill import settlement
from seckill.conf import Limits
from seckill.errors import BucketUnsound, SettlementError
from seckill.gate.connection import raw_client
from seckill.models import DeadLetter, Incident, ItemBucket, Reservation
from seckill.outcomes import lock_bucket
from seckill.reconciliation import Verdict, reconcile_bucket
from seckill.settlement import settle_bucket
from seckill.sweep import look_over
from seckill.tasks import rebuild_one
from seckill.tasks import settle as settle_task
from tests.support.broker import broker
from tests.support.die import run_and_die
from tests.support.shop import Shop, buy, make_buyers, make_ticket, make_tickets, open_sale, ticket_of
from tests.support.state import assert_settled_state, numbers, sold_units
from tests.support.threads import kill_connection, run_together
from tests.support.unsafe import everybody


def settle(shop: Shop) -> int:
    return settle_bucket(bucket=shop.bucket, clock=timezone.now).entries


def open_incidents() -> list[str]:
    return sorted(Incident.objects.filter(resolved_at=None).values_list("kind", flat=True))


def test_an_order_has_the_price_of_the_reservation() -> None:
    """CASES 11: whatever the catalogue says when the worker comes to it."""
    shop = open_sale()
    order_no = buy(make_ticket(shop))
    type(shop.item).objects.filter(pk=shop.item.pk).update(price="1.00")
    settle(shop)
    order = Order.objects.get(number=order_no)
    assert (str(order.unit_price), order.quantity, order.state) == ("1499.00", 1, "PENDING_PAYMENT")
    assert order.pay_by_at - order.created_at == timedelta(minutes=15)


def test_settle_twice_changes_nothing_more() -> None:
    shop = open_sale(units=20)
    for ticket in make_tickets(shop, 20):
        buy(ticket)
    assert [settle(shop), settle(shop)] == [20, 0]
    assert_settled_state(shop, sold=20)


def test_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(units=25, limit=2)
    for ticket in make_tickets(shop, 12):
        buy(ticket, 2)
    monkeypatch.setattr(settlement, "LIMITS", Limits(batch_size=5))
    assert settle(shop) == 12
    assert_settled_state(shop, sold=24)


def test_four_workers_at_once() -> None:
    shop = open_sale(units=200)
    for ticket in make_tickets(shop, 200):
        buy(ticket)
    assert sum(run_together(lambda _: settle(shop), range(4))) == 200
    assert_settled_state(shop, sold=200)


@pytest.mark.slow
def test_four_workers_without_the_thinning(monkeypatch: pytest.MonkeyPatch) -> None:
    """GET_LOCK only thins out; the bucket's row lock and the order numbers do the work."""
    shop = open_sale(units=200)
    for ticket in make_tickets(shop, 200):
        buy(ticket)
    monkeypatch.setattr(settlement, "only_one", everybody)
    run_together(lambda _: settle(shop), range(4))
    settle(shop)
    assert_settled_state(shop, sold=200)


@pytest.mark.parametrize(
    ("function", "moment"),
    [
        ("seckill.intake.decide_entries", "after"),
        ("seckill.outcomes.place_orders", "after"),
        ("seckill.intake.write_decisions", "after"),
        ("seckill.settlement._tell_redis", "before"),
        ("seckill.gate.gate.confirm", "after"),
    ],
)
@pytest.mark.slow
def test_killed_at_any_step(function: str, moment: str) -> None:
    """CASES 26: SIGKILL before the commit, after it, and after Redis was told; then the next worker comes."""
    shop = open_sale(units=30)
    for ticket in make_tickets(shop, 30):
        buy(ticket)
    assert run_and_die(job="settle", pool_id=shop.pool.pk, function=function, moment=moment) == -9
    settle(shop)
    assert_settled_state(shop, sold=30)


def test_stock_raised_by_hand_is_a_phantom() -> None:
    """Law 1 by MySQL alone: what Redis sold too much is refused and gives no unit back."""
    shop = open_sale(units=3)
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", 2)
    for ticket in make_tickets(shop, 5):
        assert "-" in buy(ticket)
    settle(shop)
    assert sold_units(shop) == 3
    assert sorted(Reservation.objects.values_list("state", "reason", "units_owed")) == [
        ("REFUSED", "phantom", 0),
        ("REFUSED", "phantom", 0),
        ("SETTLED", "", 0),
        ("SETTLED", "", 0),
        ("SETTLED", "", 0),
    ]
    assert numbers(shop).left == {shop.item.pk: 0}
    assert Order.objects.count() == 3
    assert open_incidents() == ["phantom"]


def test_control_without_the_guard_mysql_oversells(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard's control: with no room counted, the constraint is the last thing that holds (law 1, twice)."""
    shop = open_sale(units=3)
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", 2)
    for ticket in make_tickets(shop, 5):
        buy(ticket)
    monkeypatch.setattr("seckill.outcomes.units_unsold", lambda **_: {shop.item.pk: 1_000})
    with pytest.raises(SettlementError):
        settle(shop)
    assert sold_units(shop) == 0
    assert open_incidents() == ["settlement_stopped"]
    with pytest.raises(DatabaseError, match="item_bucket_never_oversold"):
        ItemBucket.objects.filter(item_id=shop.item.pk).update(sold=4)


def test_buyers_deleted_by_hand_are_refused_and_their_unit_is_owed() -> None:
    """Law 2 by MySQL alone: the sum over the limit key, earlier entries of the batch counted."""
    shop = open_sale(units=5)
    (buyer,) = make_buyers(1)
    for _ in range(3):
        assert "-" in buy(ticket_of(shop, buyer))
        raw_client().hdel(shop.bucket.keys[2], str(buyer.pk))
    settle(shop)
    assert sorted(Reservation.objects.values_list("state", "reason", "units_owed")) == [
        ("REFUSED", "limit_reached", 1),
        ("REFUSED", "limit_reached", 1),
        ("SETTLED", "", 0),
    ]
    assert sold_units(shop) == 1
    assert numbers(shop).left == {shop.item.pk: 4}


def test_control_without_the_limit_sum_mysql_sells_three(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(units=5)
    (buyer,) = make_buyers(1)
    for _ in range(3):
        buy(ticket_of(shop, buyer))
        raw_client().hdel(shop.bucket.keys[2], str(buyer.pk))
        monkeypatch.setattr("seckill.outcomes.units_held", lambda **_: {str(buyer.pk): -100})
        settle(shop)
    assert sold_units(shop) == 3


@pytest.mark.slow
def test_500_entries_with_one_bad_row() -> None:
    """CASES 32: the row that MySQL cannot write is refused alone, with its unit; 499 orders stand."""
    shop = open_sale(units=500)
    tickets = make_tickets(shop, 500)
    numbers_of_orders = [buy(ticket) for ticket in tickets]
    bad = User.objects.order_by("pk")[300]
    connection.cursor().execute("DELETE FROM seckill_ticket WHERE buyer_id = %s", [bad.pk])
    User.objects.filter(pk=bad.pk).delete()
    settle(shop)
    refused = Reservation.objects.get(state="REFUSED")
    assert (refused.order_no, refused.reason, refused.units_owed) == (numbers_of_orders[300], "invalid", 1)
    assert_settled_state(shop, sold=499)
    assert open_incidents() == ["row_refused"]


def test_unreadable_entries_are_parked_and_the_rest_goes_on() -> None:
    shop = open_sale(units=3)
    queue = shop.bucket.keys[4]
    buy(make_ticket(shop))
    raw_client().xadd(queue, {"order": "x"})
    raw_client().xadd(queue, {**_fields(shop), "item": "999999"})
    buy(make_ticket(shop))
    settle(shop)
    assert_settled_state(shop, sold=2)
    assert DeadLetter.objects.count() == 2
    assert open_incidents() == ["dead_letter"]


def test_an_entry_too_long_for_any_row_is_parked() -> None:
    shop = open_sale(units=3)
    raw_client().xadd(shop.bucket.keys[4], {**_fields(shop), "order": "9" * 60})
    buy(make_ticket(shop))
    settle(shop)
    assert_settled_state(shop, sold=1)
    assert DeadLetter.objects.count() == 1


def test_a_missing_column_refuses_nobody() -> None:
    """Whatever is not about a row stops the bucket with an incident, and the queue stays as it is."""
    shop = open_sale(units=3)
    for ticket in make_tickets(shop, 3):
        buy(ticket)
    cursor = connection.cursor()
    cursor.execute("ALTER TABLE orders_order RENAME COLUMN pay_by_at TO gone")
    try:
        with pytest.raises(DatabaseError):
            settle(shop)
    finally:
        cursor.execute("ALTER TABLE orders_order RENAME COLUMN gone TO pay_by_at")
    assert Reservation.objects.count() == 0
    assert numbers(shop).queue_length == 3
    assert open_incidents() == ["settlement_stopped"]
    settle(shop)
    assert_settled_state(shop, sold=3)
    assert open_incidents() == []


def test_a_foreign_epoch_closes_the_gate() -> None:
    shop = open_sale(units=3)
    raw_client().xadd(shop.bucket.keys[4], {**_fields(shop), "epoch": "7"})
    assert settle(shop) == 0
    assert numbers(shop).is_frozen
    assert open_incidents() == ["queue_forked"]
    assert look_over(now=timezone.now()).to_rebuild == [shop.bucket]


def test_a_sequence_number_used_twice_is_a_fork() -> None:
    """Redis that was rolled back numbers other orders with numbers MySQL has already seen."""
    shop = open_sale(units=3)
    first, second = make_tickets(shop, 2)
    buy(first)
    settle(shop)
    raw_client().hincrby(shop.bucket.keys[1], "seq", -1)
    buy(second)
    assert settle(shop) == 0
    assert Reservation.objects.count() == 1
    assert open_incidents() == ["queue_forked"]


def test_one_number_for_two_orders_in_one_batch_is_a_fork() -> None:
    shop = open_sale(units=3)
    buy(make_ticket(shop))
    raw_client().hincrby(shop.bucket.keys[1], "seq", -1)
    buy(make_ticket(shop))
    assert settle(shop) == 0
    assert numbers(shop).is_frozen
    assert open_incidents() == ["queue_forked"]
    rebuild_one(shop.bucket.pool_id, 0)
    assert_settled_state(shop, sold=2)


def test_the_unique_key_alone_finds_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two guards: without the look beforehand, MySQL itself refuses the number."""
    shop = open_sale(units=3)
    buy(make_ticket(shop))
    settle(shop)
    raw_client().hincrby(shop.bucket.keys[1], "seq", -1)
    buy(make_ticket(shop))
    monkeypatch.setattr("seckill.outcomes._require_unused_numbers", lambda **_: None)
    assert settle(shop) == 0
    assert Reservation.objects.count() == 1
    assert open_incidents() == ["queue_forked"]


def test_redis_and_mysql_differing_about_an_order_is_an_incident(monkeypatch: pytest.MonkeyPatch) -> None:
    """MySQL's row stands, the entry is confirmed, and somebody is told."""
    shop = open_sale(units=3)
    buy(make_ticket(shop))
    with monkeypatch.context() as patch:
        patch.setattr(settlement, "_tell_redis", lambda **_: 0)
        settle(shop)
    Reservation.objects.update(buyer_id=10**9)
    assert settle(shop) == 1
    assert open_incidents() == ["order_differs"]


@pytest.mark.slow
def test_a_lock_that_is_held_too_long_interrupts_and_refuses_nobody() -> None:
    """CASES 35: 1205 is passing; no incident, and the next run does the work."""
    shop = open_sale(units=3)
    buy(make_ticket(shop))

    def settle_impatiently(_: int) -> int:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        return settle(shop)

    with transaction.atomic():
        lock_bucket(shop.bucket)
        assert run_together(settle_impatiently, [0]) == [0]
    assert open_incidents() == []
    assert settle(shop) == 1
    assert_settled_state(shop, sold=1)


def test_one_entry_twice_is_one_order() -> None:
    """Whoever copies an entry by hand makes one counter wrong, which the sweep sees, and sells nothing twice."""
    shop = open_sale(units=3)
    buy(make_ticket(shop))
    ((_, fields),) = raw_client().xrange(shop.bucket.keys[4])
    raw_client().xadd(shop.bucket.keys[4], fields)
    with pytest.raises(BucketUnsound):
        settle(shop)
    assert Order.objects.count() == 1
    assert look_over(now=timezone.now()).to_rebuild == [shop.bucket]
    rebuild_one(shop.bucket.pool_id, 0)
    assert_settled_state(shop, sold=1)


@pytest.mark.parametrize("batches", [1, 2])
def test_a_repeat_after_a_lost_receipt_looks_like_no_lost_commit(batches: int) -> None:
    """The second entry of one order has a number that MySQL will never have; Redis must not hear that it has."""
    shop = open_sale(units=5, limit=2)
    ticket, other = make_tickets(shop, 2)
    order_no = buy(ticket)
    if batches == 2:
        settle(shop)
    raw_client().hdel(shop.bucket.keys[3], order_no)
    assert buy(ticket) == order_no
    settle(shop)
    row = Reservation.objects.get()
    assert (numbers(shop).settled_seq, sold_units(shop)) == (row.seq, 1)
    assert "-" in buy(other)
    assert settle(shop) == 1
    assert not numbers(shop).is_frozen
    assert sold_units(shop) == 2
    assert open_incidents() == []


def test_a_dead_letters_unit_is_a_leak_and_no_balance() -> None:
    """A real entry made unreadable by hand: its unit is held back, and reconciliation says so."""
    shop = open_sale(units=3)
    buy(make_ticket(shop))
    ((stream_id, fields),) = raw_client().xrange(shop.bucket.keys[4])
    raw_client().xdel(shop.bucket.keys[4], stream_id)
    raw_client().xadd(shop.bucket.keys[4], {**fields, b"quantity": b"one"})
    report = reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    assert (report.verdict, [item.drift for item in report.items]) == (Verdict.LEAK, [1])
    assert open_incidents() == ["dead_letter", "drift"]


@pytest.mark.slow
def test_phantoms_are_reported_though_the_worker_dies() -> None:
    """The incident is written in the transaction that refuses them."""
    shop = open_sale(units=1)
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", 1)
    for ticket in make_tickets(shop, 2):
        buy(ticket)
    died = run_and_die(job="settle", pool_id=shop.pool.pk, function="seckill.settlement._tell_redis", moment="before")
    assert died == -9
    assert open_incidents() == ["phantom"]


def test_phantoms_are_followed_by_a_reconciliation() -> None:
    shop = open_sale(units=1)
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", 1)
    for ticket in make_tickets(shop, 2):
        buy(ticket)
    settle_task(shop.bucket.pool_id, 0)
    with broker() as client:
        assert client.llen("slow") == 1


def test_a_killed_connection_is_no_failure() -> None:
    """CASES 31: the connection dies between two tasks; the next one works, nobody is refused."""
    shop = open_sale(units=3)
    for ticket in make_tickets(shop, 3):
        buy(ticket)
    with connection.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        (own,) = cursor.fetchone()
    run_together(kill_connection, [own])
    with pytest.raises(DatabaseError):
        settle(shop)
    connection.close()
    assert settle(shop) == 3
    assert_settled_state(shop, sold=3)


def _fields(shop: Shop) -> dict[str, str]:
    snapshot = numbers(shop)
    return {
        "order": "1-0-zzzzzzzzzzzzzzzz",
        "item": str(shop.item.pk),
        "buyer": "7",
        "key": "7",
        "quantity": "1",
        "price": "1.00",
        "epoch": str(snapshot.epoch),
        "seq": "99999",
    }
