"""Rebuilds that fail or die are counted and seen; a queue that MySQL cannot take is put aside on request."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection
from django.utils import timezone

from seckill import rebuild, recovery
from seckill.errors import GateUnavailable
from seckill.gate import staging
from seckill.gate.connection import raw_client
from seckill.incidents import Severity, open_incident
from seckill.models import Bucket, DeadLetter, Incident, RebuildRun, Reservation
from seckill.polling import purchase_status
from seckill.rebuild import rebuild_bucket
from seckill.replay import Verdict, decide_letter
from seckill.settlement import settle_bucket
from seckill.sweep import look_over
from seckill.tasks import rebuild_one
from seckill.tickets import read_ticket
from tests.support.die import run_and_die
from tests.support.shop import Shop, buy, make_tickets, open_sale
from tests.support.state import assert_settled_state, numbers


def open_incidents() -> list[str]:
    return sorted(Incident.objects.filter(resolved_at=None).values_list("kind", flat=True))


def outcomes() -> list[tuple[str, bool]]:
    return list(RebuildRun.objects.order_by("pk").values_list("outcome", "is_automatic"))


def fail_to_fill(**_: object) -> None:
    raise GateUnavailable("it went away")


def test_a_rebuild_is_written_with_its_claim_and_finished_later() -> None:
    shop = open_sale(units=3)
    buy(make_tickets(shop, 1)[0])
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    run = RebuildRun.objects.get()
    assert (run.outcome, run.epoch, run.drained, run.refused, run.parked, run.error) == ("DONE", 2, 1, 0, 0, "")
    assert run.finished_at is not None


def test_three_that_failed_are_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis takes no staging: three tries, then the bucket stays shut, and the record says why."""
    shop = open_sale()
    raw_client().delete(shop.bucket.keys[2])
    with monkeypatch.context() as patch:
        patch.setattr(rebuild, "_fill_staging", fail_to_fill)
        for _ in range(3):
            with pytest.raises(GateUnavailable):
                rebuild_one(shop.bucket.pool_id, 0)
    assert outcomes() == [("FAILED", True)] * 3
    assert set(RebuildRun.objects.values_list("error", flat=True)) == {"GateUnavailable: it went away"}
    look_over(now=timezone.now())
    rebuild_one(shop.bucket.pool_id, 0)
    assert RebuildRun.objects.count() == 3
    assert open_incidents() == ["keeps_breaking", "redis_lost"]
    assert raw_client().hget(shop.bucket.keys[1], "frozen") == b"keeps_breaking"
    call_command("rebuild", shop.pool.pk, stdout=StringIO())
    assert open_incidents() == []
    assert outcomes()[3] == ("DONE", False)
    assert_settled_state(shop, sold=0)


@pytest.mark.slow
def test_one_that_died_is_seen_and_counted() -> None:
    shop = open_sale()
    died = run_and_die(job="rebuild", pool_id=shop.pool.pk, function="seckill.rebuild._swap", moment="before")
    assert died == -9
    assert outcomes() == [("RUNNING", False)]
    Bucket.objects.update(claim_until=timezone.now() - timedelta(seconds=1))
    rebuild_one(shop.bucket.pool_id, 0)
    assert outcomes() == [("DIED", False), ("DONE", True)]


def test_whoever_opened_it_and_died_before_saying_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep closes what an open gate has ended, whatever the incident was."""
    shop = open_sale()
    raw_client().hset(shop.bucket.keys[1], "frozen", "queue_forked")
    for kind in recovery.ENDED_BY_AN_OPEN_GATE:
        open_incident(kind=kind, severity=Severity.CRITICAL, bucket=shop.bucket, detail="x", now=timezone.now())
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert len(open_incidents()) == 4
    look_over(now=timezone.now())
    assert open_incidents() == []


def test_each_bucket_of_a_pool_may_be_rebuilt_three_times() -> None:
    """A restart loses all buckets of a pool at once; that is one break, not as many as there are buckets."""
    shop = open_sale()
    Bucket.objects.create(pool=shop.pool, number=1)
    for _ in range(5):
        raw_client().delete(shop.bucket.keys[2])
        rebuild_one(shop.bucket.pool_id, 0)
    assert outcomes() == [("DONE", True)] * 5


def test_an_orphaned_token_is_swept_up() -> None:
    """Frozen by a rebuild that died before it had written anything else, or by nobody who is known."""
    shop = open_sale(units=3)
    staging.freeze(bucket=shop.bucket, token="nobody")
    assert look_over(now=timezone.now()).to_rebuild == [shop.bucket]
    rebuild_one(shop.bucket.pool_id, 0)
    assert not numbers(shop).is_frozen
    assert "frozen and no rebuild is at it" in Incident.objects.get().detail
    assert open_incidents() == []


def queue_that_mysql_cannot_take(shop: Shop) -> list[str]:
    """Three reservations in the queue, and a table that is not as the code wants it."""
    orders = [buy(ticket) for ticket in make_tickets(shop, 3)]
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE orders_order RENAME COLUMN pay_by_at TO gone")
    return orders


def mend() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE orders_order RENAME COLUMN gone TO pay_by_at")


def test_a_queue_that_cannot_be_drained_is_put_aside_on_request() -> None:
    """The sale goes on; each reservation is decided later; the buyers may use their tickets again meanwhile."""
    shop = open_sale(units=9)
    orders = queue_that_mysql_cannot_take(shop)
    try:
        raw_client().delete(shop.bucket.keys[2])
        with pytest.raises(DatabaseError):
            call_command("rebuild", shop.pool.pk)
        out = StringIO()
        call_command("rebuild", shop.pool.pk, put_queue_aside=True, stdout=out, no_color=True)
        assert "3 entries are dead letters now: manage.py decide_deadletter" in out.getvalue()
        assert numbers(shop).left == {shop.item.pk: 9}
        assert open_incidents() == ["dead_letter"]
        assert not Reservation.objects.exists()
    finally:
        mend()
    assert sorted(DeadLetter.objects.values_list("fields__order", flat=True)) == sorted(orders)
    for letter in DeadLetter.objects.order_by("pk"):
        verdict = Verdict(letter_id=letter.pk, decision=DeadLetter.Decision.REPLAY, actor_id=None, reason="mended")
        decide_letter(verdict=verdict, clock=timezone.now)
    assert settle_bucket(bucket=shop.bucket, clock=timezone.now).entries == 3
    assert open_incidents() == []
    assert_settled_state(shop, sold=3)


def test_what_mysql_has_already_is_not_put_aside() -> None:
    """Settled, but not yet confirmed when the queue is put aside: the order stands, and nothing is parked."""
    shop = open_sale(units=9)
    (ticket,) = make_tickets(shop, 1)
    order_no = buy(ticket)
    ((_, fields),) = raw_client().xrange(shop.bucket.keys[4])
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    raw_client().xadd(shop.bucket.keys[4], fields)
    call_command("rebuild", shop.pool.pk, put_queue_aside=True, stdout=StringIO())
    assert not DeadLetter.objects.exists()
    status = purchase_status(order_no=order_no, buyer_id=read_ticket(ticket).buyer_id)
    assert status.state.value == "confirmed"
    assert_settled_state(shop, sold=1)


def test_commits_that_are_lost_are_looked_for_without_a_rebuild_each_second() -> None:
    """One record, however long it lasts; and when MySQL has them again, the sale opens by itself."""
    shop = open_sale(units=5)
    buy(make_tickets(shop, 1)[0])
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    kept = Reservation.objects.get()
    Reservation.objects.all().delete()
    buy(make_tickets(shop, 1)[0])
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    for _ in range(5):
        look_over(now=timezone.now())
        rebuild_one(shop.bucket.pool_id, 0)
    assert outcomes() == []
    assert open_incidents() == ["commits_lost", "redis_lost"]
    kept.save(force_insert=True)
    rebuild_one(shop.bucket.pool_id, 0)
    assert not numbers(shop).is_frozen
    assert open_incidents() == []


def test_the_command_says_what_is_in_the_way() -> None:
    shop = open_sale()
    Bucket.objects.update(claim="token", claim_until=timezone.now() + timedelta(seconds=30))
    with pytest.raises(CommandError, match="is being rebuilt"):
        call_command("rebuild", shop.pool.pk)
