"""MySQL down, full, read-only or wrong: nothing is released on a guess, nobody is refused, and it drains by itself."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction
from django.utils import timezone
from pytest_django import Settings

from benchmarks.servers import PrivateServers
from orders.models import Order
from seckill import lock_watch
from seckill.gate.connection import raw_client
from seckill.lock_watch import watch_locks
from seckill.models import DeadLetter, Incident, Reservation, Ticket
from seckill.opening import preheat_due_sales
from seckill.outcomes import lock_bucket
from seckill.settlement import settle_bucket
from seckill.sweep import look_over
from seckill.tasks import rebuild_one
from seckill.tasks import settle as settle_task
from seckill.transient import ROW_ERRORS, TRANSIENT_ERRORS
from tests.support.aliases import NOWHERE, point
from tests.support.shop import Shop, buy, make_ticket, make_tickets, open_sale
from tests.support.state import assert_settled_state, numbers
from tests.support.threads import run_together

# Disk full, table full, read-only (twice), no such column, no such table, not allowed, no default value.
STOPPING = [1021, 1114, 1290, 1836, 1054, 1146, 1142, 1364]


def settle(shop: Shop) -> int:
    return settle_bucket(bucket=shop.bucket, clock=timezone.now).entries


def open_incidents() -> list[str]:
    return sorted(Incident.objects.filter(resolved_at=None).values_list("kind", flat=True))


@contextmanager
def mysql_says(code: int, *, of: str = "") -> Iterator[None]:
    """Let MySQL itself answer with an error, for every new order, or for one of a number."""
    condition = f"NEW.number = '{of}'" if of else "TRUE"
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TRIGGER says BEFORE INSERT ON orders_order FOR EACH ROW"
            f" IF {condition} THEN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {code}, MESSAGE_TEXT = 'as told'; END IF"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER says")


@pytest.mark.parametrize("code", STOPPING)
def test_what_is_about_no_row_stops_the_bucket_and_refuses_nobody(code: int) -> None:
    """A full disk or a missing column must not cancel a sale: an incident, the queue as it was, and it drains after."""
    shop = open_sale(units=3)
    for ticket in make_tickets(shop, 3):
        buy(ticket)
    with mysql_says(code):
        with pytest.raises(DatabaseError):
            settle(shop)
        assert open_incidents() == ["settlement_stopped"]
    assert not Reservation.objects.exists()
    assert numbers(shop).queue_length == 3
    assert settle(shop) == 3
    assert open_incidents() == []
    assert_settled_state(shop, sold=3)


@pytest.mark.parametrize("code", sorted(ROW_ERRORS))
def test_what_is_about_one_row_refuses_that_row_alone(code: int) -> None:
    """CASES 32, 33: the closed list, each code of it as MySQL says it."""
    shop = open_sale(units=3)
    orders = [buy(ticket) for ticket in make_tickets(shop, 3)]
    with mysql_says(code, of=orders[1]):
        settle(shop)
    refused = Reservation.objects.get(state="REFUSED")
    assert (refused.order_no, refused.reason, refused.units_owed) == (orders[1], "invalid", 1)
    assert_settled_state(shop, sold=2)


@pytest.mark.slow
@pytest.mark.parametrize("code", sorted(code for code in TRANSIENT_ERRORS if not 2000 <= code < 3000))
def test_what_passes_is_tried_again_without_an_incident(code: int) -> None:
    """CASES 35: lock wait, deadlock, a server that goes; the client's own codes need one that is gone (below)."""
    shop = open_sale(units=3)
    buy(make_ticket(shop))
    with mysql_says(code):
        assert settle(shop) == 0
    assert not Incident.objects.exists()
    assert settle(shop) == 1
    assert_settled_state(shop, sold=1)


def test_the_lists_do_not_overlap() -> None:
    assert not ROW_ERRORS & TRANSIENT_ERRORS
    assert not set(STOPPING) & (ROW_ERRORS | TRANSIENT_ERRORS)
    assert frozenset({1048, 1264, 1366, 1406, 1452, 1690, 3819, 4025}) == ROW_ERRORS


@pytest.mark.slow
def test_mysql_down_the_queue_fills_the_gate_is_busy_and_it_drains_by_itself(servers: PrivateServers) -> None:
    """CASES 31: nothing is released; buyers hear "busy", never "sold out"; no unit and nobody is lost."""
    shop = open_sale(units=9, max_queue=4)
    tickets = make_tickets(shop, 6)
    servers.database.stop()
    try:
        answers = [buy(ticket) for ticket in tickets]
        for _ in range(2):
            with pytest.raises(DatabaseError):
                settle_task(shop.bucket.pool_id, 0)
        assert answers[4:] == ["Busy", "Busy"]
        assert raw_client().xlen(shop.bucket.keys[4]) == 4
        assert raw_client().hget(shop.bucket.keys[0], f"{shop.item.pk}:left") == b"5"
    finally:
        servers.database.start()
        connection.close()
    assert look_over(now=timezone.now()).to_settle == [shop.bucket]
    settle_task(shop.bucket.pool_id, 0)
    assert [buy(ticket) for ticket in tickets[4:]] == [str(Ticket.objects.all()[n].order_no) for n in (4, 5)]
    settle_task(shop.bucket.pool_id, 0)
    assert_settled_state(shop, sold=6)
    assert not DeadLetter.objects.exists()
    assert open_incidents() == []


@pytest.mark.slow
def test_mysql_killed_in_the_middle_of_a_batch(servers: PrivateServers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is lost before the commit: the batch is repeated whole, and each order is there once."""
    shop = open_sale(units=9)
    for ticket in make_tickets(shop, 5):
        buy(ticket)
    place = "seckill.outcomes.place_orders"

    def kill_first(**_: object) -> None:
        servers.database.kill()
        Order.objects.count()

    with monkeypatch.context() as patch:
        patch.setattr(place, kill_first)
        with pytest.raises(DatabaseError):
            settle_twice_without_mysql(shop)
    servers.database.start()
    connection.close()
    assert not Reservation.objects.exists()
    assert settle(shop) == 5
    assert_settled_state(shop, sold=5)


def settle_twice_without_mysql(shop: Shop) -> None:
    settle(shop)
    settle(shop)


@pytest.mark.slow
def test_a_lock_that_is_busy_is_an_incident_that_names_the_blocker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody keeps the bucket's row; whoever waits is named by MySQL itself, and so is who is in the way."""
    monkeypatch.setattr(lock_watch, "BUSY_SECONDS", 1)
    monkeypatch.setattr(lock_watch, "_may_look", True)
    shop = open_sale(units=3)
    buy(make_ticket(shop))
    with connection.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        (own,) = cursor.fetchone()

    def wait_for_it(_: int) -> int:
        return settle(shop)

    def look(_: int) -> int:
        deadline = time.monotonic() + 10
        while not watch_locks(now=timezone.now()):
            assert time.monotonic() < deadline
            time.sleep(0.3)  # the server looks anew only for whoever has not asked for 0.1 s
        return -1

    with transaction.atomic():
        lock_bucket(shop.bucket)
        assert run_together(lambda job: job(0), [wait_for_it, look]) == [0, -1]
    incident = Incident.objects.get()
    assert (incident.kind, incident.severity) == ("lock_busy", "CRITICAL")
    monkeypatch.setattr(lock_watch, "BUSY_SECONDS", 30)
    assert f"session {own} has kept it in a transaction of" in incident.detail
    assert watch_locks(now=timezone.now()) == []
    assert open_incidents() == ["lock_busy"]
    assert settle(shop) == 1
    watch_locks(now=timezone.now() + timedelta(seconds=16))
    assert open_incidents() == []


def test_without_the_right_to_see_who_it_is_an_incident_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settlement's own waits are added up; it closes once a batch goes well."""
    monkeypatch.setattr(lock_watch, "_may_look", False)
    shop = open_sale(units=3)
    buy(make_ticket(shop))
    now = timezone.now()
    with mysql_says(1205):
        for seconds in (0, 29):
            settle_bucket(bucket=shop.bucket, clock=lambda at=now + timedelta(seconds=seconds): at)  # type: ignore[misc]
        assert not Incident.objects.exists()
        settle_bucket(bucket=shop.bucket, clock=lambda: now + timedelta(seconds=30))
    assert f"could not be had since {now:%H:%M:%S} UTC" in Incident.objects.get().detail
    watch_locks(now=now + timedelta(minutes=5))
    assert open_incidents() == ["lock_busy"]
    assert settle(shop) == 1
    watch_locks(now=now + timedelta(minutes=5))
    assert open_incidents() == []


@pytest.mark.parametrize(("code", "may_look_again"), [(2006, "yes"), (1205, "yes"), (1227, "no"), (1142, "no")])
def test_only_a_missing_right_ends_the_looking(
    code: int,
    may_look_again: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A connection that is lost once must not make the watch blind for as long as its process lives."""
    monkeypatch.setattr(lock_watch, "_may_look", True)

    def broken() -> None:
        raise OperationalError(code, "as told")

    with monkeypatch.context() as patch:
        patch.setattr(connection, "cursor", broken)
        assert lock_watch._waits() == []
    assert lock_watch._may_look is (may_look_again == "yes")


def test_nobody_waits_and_nobody_is_named() -> None:
    open_sale()
    assert watch_locks(now=timezone.now()) == []
    assert not Incident.objects.exists()


def test_preheated_in_mysql_but_not_in_redis_is_an_incident_ten_minutes_before(settings: Settings) -> None:
    """Whose sale opens in nine minutes with Redis away hears of it; and hears when it is there."""
    shop = open_sale(opens_in=timedelta(minutes=9))
    later = open_sale(opens_in=timedelta(minutes=11))
    preheat_due_sales(clock=timezone.now)
    assert not Incident.objects.exists()
    point(settings, "stock", NOWHERE)
    preheat_due_sales(clock=timezone.now)
    incident = Incident.objects.get()
    assert (incident.kind, incident.pool_id) == ("not_preheated", shop.pool.pk)
    assert "is not in Redis" in incident.detail
    assert later.pool.pk != incident.pool_id


def test_the_incident_closes_when_redis_has_the_sale() -> None:
    shop = open_sale(opens_in=timedelta(minutes=9))
    raw_client().delete(*shop.bucket.keys)
    preheat_due_sales(clock=timezone.now)
    assert open_incidents() == ["not_preheated"]
    look_over(now=timezone.now())
    rebuild_one(shop.bucket.pool_id, 0)
    preheat_due_sales(clock=timezone.now)
    assert open_incidents() == []
