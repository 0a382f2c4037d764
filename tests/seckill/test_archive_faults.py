"""The archive under faults: killed, overtaken, or without Redis at any step, with orders that close meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.utils import timezone
from pytest_django import Settings

from benchmarks.servers import PrivateServers
from orders.models import Order
from orders.services import cancel_order, expire_orders
from seckill import archive as archive_module
from seckill import archive_buyers, archive_rows, archive_steps
from seckill.archive import advance, finish_sale
from seckill.archive_begin import Accepted, begin
from seckill.archive_tables import ArchiveRun, BuyerArchive
from seckill.conf import Limits
from seckill.errors import GateUnavailable, SaleNotReady
from seckill.gate import archiving
from seckill.gate.archiving import Chunk
from seckill.gate.connection import raw_client
from seckill.incidents import Severity, open_incident
from seckill.models import Incident, ItemBucket, Reservation, Ticket
from seckill.polling import purchase_status
from seckill.rebuild import rebuild_bucket
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from tests.support.aliases import NOWHERE, point
from tests.support.archive import archive, assert_archived, copied, end
from tests.support.die import run_and_die
from tests.support.shop import Shop, buy, make_tickets, open_sale
from tests.support.threads import run_together
from tests.support.unsafe import everybody
from tests.support.unsafe_archive import archive_without_a_seal, clear_without_a_lock

TICKS_MAX = 8


def sell(shop: Shop, number: int) -> list[str]:
    """Sell one unit each to so many buyers and settle."""
    sold = [buy(ticket) for ticket in make_tickets(shop, number)]
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    return sold


def cancel(order_no: str) -> None:
    order = Order.objects.get(number=order_no)
    cancel_order(number=order_no, buyer_id=order.buyer_id, now=timezone.now())


def give_back() -> int:
    return return_closed_orders(clock=timezone.now)


def walk(shop: Shop, steps: int, *, ahead: timedelta = timedelta()) -> str:
    """Begin the archive and take so many steps; return the stage it has come to."""
    begin(sale_id=shop.sale.pk, accepted=Accepted(), now=timezone.now() + ahead)
    left = iter(range(steps))
    run = ArchiveRun.objects.get(pool=shop.pool)
    advance(run=run, clock=timezone.now, has_time=lambda: next(left, None) is not None)
    return ArchiveRun.objects.get(pool=shop.pool).stage


def finish(shop: Shop) -> ArchiveRun:
    """Go on until the archive is done."""
    for _ in range(TICKS_MAX):
        run = ArchiveRun.objects.get(pool=shop.pool)
        advance(run=run, clock=timezone.now, has_time=lambda: True)
        if ArchiveRun.objects.get(pk=run.pk).stage == "DONE":
            break
    finish_sale(sale_id=shop.sale.pk)
    return ArchiveRun.objects.get(pool=shop.pool)


STOPS = range(9)


@pytest.mark.slow
@pytest.mark.parametrize("steps", STOPS)
def test_orders_that_close_at_any_step_lose_no_unit(steps: int) -> None:
    """One cancelled and taken back there, one cancelled there and taken back at the end, one expired there."""
    shop = open_sale(units=10)
    first, second, third, *_ = sell(shop, 5)
    end(shop)
    walk(shop, steps)
    cancel(first)
    assert give_back() == 1
    cancel(second)
    Order.objects.filter(number=third).update(pay_by_at=timezone.now() - timedelta(seconds=1))
    assert expire_orders(now=timezone.now(), batch_size=10) == 1
    run = finish(shop)
    assert give_back() == 2
    assert_archived(shop, sold=2)
    assert (run.manifest["buyers"]["differing"], run.manifest["receipts"]["differing"]) == (0, 0)
    assert not Incident.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize("steps", STOPS)
def test_redis_wiped_at_any_step(steps: int, servers: PrivateServers) -> None:
    """MySQL has what is needed; what had not been settled is lost, and the manifest says how much at most."""
    shop = open_sale(units=10)
    sell(shop, 3)
    queued = [buy(ticket) for ticket in make_tickets(shop, 2)]
    end(shop)
    stage = walk(shop, steps)
    raw_client().flushall()
    run = finish(shop)
    lost = 2 if stage == "CLAIMED" else 0
    assert_archived(shop, sold=5 - lost)
    assert len(copied(shop)) == 5 - lost
    if stage in {"CHECKED", "CLEARED"}:
        assert not run.is_redis_lost  # Nothing was wanted of it any more.
    else:
        assert run.is_redis_lost
        assert run.manifest["redis_lost"]["at_stage"] == stage
        assert run.manifest["redis_lost"]["reservations_lost_at_most"] == lost
    assert Reservation.objects.filter(order_no__in=queued).count() == 2 - lost


@pytest.mark.slow
@pytest.mark.parametrize("steps", STOPS)
def test_redis_restarted_at_any_step_gives_up_nothing_that_is_queued(steps: int) -> None:
    """Another run id: what survives in the queue is brought into MySQL, what Redis was owed is left over."""
    shop = open_sale(units=10)
    (first, *_) = sell(shop, 3)
    [buy(ticket) for ticket in make_tickets(shop, 2)]
    cancel(first)
    end(shop)
    raw_client().hset(shop.bucket.keys[1], "run_id", "another")
    give_back()  # It is owed to Redis now.
    raw_client().hset(shop.bucket.keys[1], "run_id", raw_client().info("server")["run_id"])
    walk(shop, steps)
    raw_client().hset(shop.bucket.keys[1], "run_id", "another")
    finish(shop)
    assert_archived(shop, sold=4)
    assert raw_client().dbsize() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "moment"),
    [
        ("seckill.archive_begin._begin", "after"),
        ("seckill.archive_steps.pay_debts", "before"),
        ("seckill.gate.archiving.seal", "after"),
        ("seckill.archive_steps._weigh", "after"),
        ("seckill.archive_buyers._insert_new", "after"),
        ("seckill.archive_buyers.reach", "after"),
        ("seckill.archive_buyers._conclude", "after"),
        ("seckill.archive_receipts._compare", "after"),
        ("seckill.archive_receipts._conclude", "after"),
        ("seckill.archive_steps._put_away", "before"),
        ("seckill.archive_steps._put_away", "after"),
        ("seckill.archive_steps._differing", "before"),
        ("seckill.gate.archiving.unlink", "before"),
        ("seckill.gate.archiving.unlink", "after"),
        ("seckill.archive.finish_sale", "before"),
        ("seckill.archive.finish_sale", "after"),
    ],
)
def test_killed_at_any_step(function: str, moment: str) -> None:
    shop = open_sale(units=10)
    first, *_ = sell(shop, 3)
    buy(make_tickets(shop, 1)[0])
    end(shop)
    assert run_and_die(job="archive", pool_id=shop.pool.pk, function=function, moment=moment) == -9
    cancel(first)
    archive_module.archive_due(clock=lambda: timezone.now() + timedelta(hours=1), seconds=30)
    assert give_back() == 1
    assert_archived(shop, sold=3)
    assert len(copied(shop)) == 4
    assert not Incident.objects.exists()


def test_two_archives_at_once_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """CASES 28: also without the thinning, each chunk is copied once and each unit given back once."""
    monkeypatch.setattr(archive_module, "only_one", everybody)
    monkeypatch.setattr(archive_buyers, "LIMITS", Limits(chunk_size=2))
    monkeypatch.setattr(archive_rows, "LIMITS", Limits(chunk_size=2))
    shop = open_sale(units=20)
    sell(shop, 9)
    end(shop)
    begin(sale_id=shop.sale.pk, accepted=Accepted(), now=timezone.now())
    run_together(lambda _: finish(shop), range(4))
    assert_archived(shop, sold=9)
    assert len(copied(shop)) == 9
    assert ArchiveRun.objects.get().manifest["receipts"]["in_mysql"] == 9
    assert not Incident.objects.exists()


def test_numbers_with_gaps_and_several_epochs_are_gone_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks lie between two numbers, so some are empty; a rebuild leaves a gap and a new epoch."""
    monkeypatch.setattr(archive_buyers, "LIMITS", Limits(chunk_size=2))
    monkeypatch.setattr(archive_rows, "LIMITS", Limits(chunk_size=2))
    shop = open_sale(units=20)
    for _ in range(3):
        sell(shop, 3)
        rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    Reservation.objects.filter(epoch=2).order_by("seq")[1].delete()  # One row less than receipts.
    end(shop)
    run = archive(shop)
    checked = run.manifest["receipts"]
    assert (run.manifest["buyers"]["count"], checked["in_redis"], checked["in_mysql"]) == (9, 9, 8)
    assert run.manifest["buyers"]["differing"] == 1


def test_two_that_begin_at_once_make_one_run() -> None:
    shop = open_sale(units=5)
    end(shop)

    def try_to_begin(_: int) -> bool:
        try:
            begin(sale_id=shop.sale.pk, accepted=Accepted(), now=timezone.now())
        except SaleNotReady:
            return False
        return True

    assert sorted(run_together(try_to_begin, range(4))) == [False, False, False, True]
    finish(shop)
    assert_archived(shop, sold=0)


@pytest.mark.slow
def test_a_rush_of_cancels_while_it_is_archived() -> None:
    """Law 7 to the end: forty orders closed and taken back by four threads while a fifth archives."""
    shop = open_sale(units=60)
    sold = sell(shop, 50)
    end(shop)
    begin(sale_id=shop.sale.pk, accepted=Accepted(), now=timezone.now())

    def close(numbers: list[str]) -> None:
        for number in numbers:
            cancel(number)
            give_back()

    jobs: list[Callable[[], object]] = [lambda: finish(shop)]
    jobs += [lambda numbers=sold[n * 10 : n * 10 + 10]: close(numbers) for n in range(4)]  # type: ignore[misc]
    run_together(lambda job: job(), jobs)
    give_back()
    run = finish(shop)
    assert_archived(shop, sold=10)
    assert (run.manifest["buyers"]["differing"], run.manifest["receipts"]["differing"]) == (0, 0)


def test_control_leftovers_without_the_lock_lose_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the races above: numbers read before a return, written after it."""
    shop = open_sale(units=10)
    first, *_ = sell(shop, 3)
    end(shop)

    def return_meanwhile() -> None:
        cancel(first)
        assert give_back() == 1

    clear_without_a_lock(monkeypatch, meanwhile=return_meanwhile)
    archive(shop)
    unit = ItemBucket.objects.get()
    with pytest.raises(AssertionError):
        assert_archived(shop, sold=2)
    assert (unit.allocated, unit.sold) == (3, 2)


def test_a_member_that_comes_twice_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """CASES 20: HSCAN may give a member in more than one chunk."""
    shop = open_sale(units=10)
    sell(shop, 5)
    end(shop)
    scan, seen = archiving.scan_buyers, []

    def scan_twice(**arguments: object) -> Chunk:
        chunk = scan(**arguments)  # type: ignore[arg-type]
        seen.append(chunk)
        return Chunk(cursor="1", buyers=chunk.buyers) if len(seen) == 1 else chunk

    monkeypatch.setattr(archiving, "scan_buyers", scan_twice)
    run = archive(shop)
    assert len(seen) == 2
    assert run.manifest["buyers"]["count"] == 5
    assert_archived(shop, sold=5)


def test_nobody_is_let_in_once_the_bucket_is_sealed() -> None:
    """CASES 20: a member cannot be added between the scans. The control is the next test."""
    shop = open_sale(units=10)
    sell(shop, 3)
    end(shop)
    walk(shop, 1)
    raw_client().hset(shop.bucket.keys[1], "woken_ms", 0)
    assert buy(make_tickets(shop, 1)[0]) == "Ended"
    run = finish(shop)
    assert run.manifest["buyers"]["count"] == 3
    assert_archived(shop, sold=3)


def test_control_without_the_seal_an_accepted_purchase_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis's clock is behind: a buyer is accepted while the bucket is copied, and nobody knows him later."""
    shop = open_sale(units=10)
    sell(shop, 3)
    archive_without_a_seal(monkeypatch)
    walk(shop, 3, ahead=timedelta(hours=2))
    ticket = make_tickets(shop, 1)[0]
    order_no = buy(ticket)
    assert "-" in order_no
    finish(shop)
    assert not Reservation.objects.filter(order_no=order_no).exists()
    assert buy(ticket) == "Ended"


def test_a_copy_that_is_not_what_stands_in_redis_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count and digest are compared before anything is removed."""
    shop = open_sale(units=10)
    sell(shop, 5)
    end(shop)
    assert walk(shop, 3) == "COPIED"
    BuyerArchive.objects.filter(pool=shop.pool).update(units=7)
    left = iter(range(2))
    advance(run=ArchiveRun.objects.get(), clock=timezone.now, has_time=lambda: next(left, None) is not None)
    assert ArchiveRun.objects.get().stage == "DRAINED"
    assert Incident.objects.get().kind == "archive_differs"
    assert raw_client().exists(*shop.bucket.keys) == 5
    BuyerArchive.objects.filter(pool=shop.pool)[0].delete()
    run = finish(shop)
    assert set(copied(shop).values()) == {1}
    assert (run.manifest["buyers"]["count"], run.manifest["buyers"]["differing"]) == (5, 0)
    assert_archived(shop, sold=5)
    assert not Incident.objects.filter(open_key__isnull=False).exists()


def test_marks_and_receipts_changed_by_hand_are_seen() -> None:
    """A mark deleted, one raised, one nobody's, two unreadable; a receipt deleted, one too many; a unit too few."""
    shop = open_sale(units=10)
    sold = sell(shop, 4)
    stock, _, buyers, receipts, _ = shop.bucket.keys
    keys = dict(Reservation.objects.values_list("order_no", "limit_key"))
    raw_client().hdel(buyers, keys[sold[0]])
    raw_client().hincrby(buyers, keys[sold[1]], 2)
    raw_client().hset(buyers, mapping={"nobody": 1, "wrong": "many", b"\xff": 1})
    raw_client().hdel(receipts, sold[2])
    raw_client().hset(receipts, "9-0-aaaaaaaaaaaaaaaa", f"confirmed|{shop.item.pk}|1|1")
    raw_client().hincrby(stock, f"{shop.item.pk}:left", -1)
    end(shop)
    run = archive(shop)
    found, checked = run.manifest["buyers"], run.manifest["receipts"]
    assert sorted((e["limit_key"], e["redis"], e["mysql"]) for e in found["examples"]) == sorted(
        [(keys[sold[1]], 3, 1), ("nobody", 1, 0)]
    )
    assert found["unreadable"] == {"wrong": "many", "\\xff~a72eeed9830cbf91": "1"}
    assert (checked["missing"], checked["marks_missing"]) == ([keys[sold[0]]], 1)
    assert checked["examples"] == [
        {"order_no": sold[2], "redis": "", "mysql": f"confirmed|{shop.item.pk}|1|{keys[sold[2]]}"}
    ]
    assert (checked["in_redis"], checked["in_mysql"]) == (4, 4)
    assert run.manifest["items"][str(shop.item.pk)]["drift"] == 1
    detail = Incident.objects.get(kind="archive_differs").detail
    assert "2 buyers' marks differ; 2 buyers' marks cannot be read; 1 buyers' marks are missing" in detail
    assert_archived(shop, sold=4)


def test_a_redis_that_is_away_is_waited_for(settings: Settings) -> None:
    shop = open_sale(units=10)
    sell(shop, 2)
    end(shop)
    walk(shop, 3)
    stores = settings.CACHES
    point(settings, "stock", NOWHERE)
    run = finish(shop)
    assert run.stage == "COPIED"
    assert run.waits_for != ""
    with pytest.raises(GateUnavailable):
        archiving.members(bucket=shop.bucket, epoch=1)
    settings.CACHES = stores
    finish(shop)
    assert_archived(shop, sold=2)


def test_lost_commits_want_a_person() -> None:
    """MySQL was restored: it knows less than Redis was told. Nothing is removed until somebody accepts that."""
    shop = open_sale(units=10)
    sold = sell(shop, 3)
    end(shop)
    begin(sale_id=shop.sale.pk, accepted=Accepted(), now=timezone.now())
    Reservation.objects.filter(order_no=sold[2]).delete()
    Order.objects.filter(number=sold[2]).delete()
    ItemBucket.objects.update(sold=2)
    run = finish(shop)
    assert run.stage == "CLAIMED"
    assert "--accept-lost-commits" in Incident.objects.get(kind="archive_blocked").detail
    assert raw_client().exists(*shop.bucket.keys) == 5
    run = archive(shop, Accepted(lost_commits=True))
    assert (run.stage, run.is_redis_lost) == ("DONE", True)
    assert ItemBucket.objects.get().allocated == 2


def test_a_row_that_somebody_holds_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock wait is no incident; an error that does not pass by itself is one."""
    shop = open_sale(units=10)
    sell(shop, 2)
    end(shop)
    assert walk(shop, 7) == "CHECKED"
    for code, kinds in ((1205, []), (1146, ["archive_blocked"])):
        with broken(monkeypatch, DatabaseError(code, "no")):
            assert finish(shop).waits_for == f"({code}, 'no')"
        assert list(Incident.objects.filter(open_key__isnull=False).values_list("kind", flat=True)) == kinds
    finish(shop)
    assert_archived(shop, sold=2)
    assert not Incident.objects.filter(open_key__isnull=False).exists()


@contextmanager
def broken(monkeypatch: pytest.MonkeyPatch, error: Exception) -> Iterator[None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(archive_steps, "_put_away", fail)
        yield


def test_an_answer_for_who_was_lost_with_redis() -> None:
    """Law 6: never "sold out", never an order from nowhere; the same ticket finds that the sale is over."""
    shop = open_sale(units=10)
    ticket = make_tickets(shop, 1)[0]
    order_no = buy(ticket)
    end(shop)
    begin(sale_id=shop.sale.pk, accepted=Accepted(), now=timezone.now())
    raw_client().flushall()
    run = finish(shop)
    assert run.manifest["redis_lost"]["reservations_lost_at_most"] == 1
    buyer_id = Ticket.objects.get(order_no=order_no).buyer_id
    assert purchase_status(order_no=order_no, buyer_id=buyer_id).state == "not_reserved"
    assert buy(ticket) == "Ended"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_the_end_no_incident_stays_open_for_ever(moment: str) -> None:
    """Nobody looks at an archived bucket again, so what was open about it is closed with its last step."""
    shop = open_sale(units=10)
    sell(shop, 1)
    now = timezone.now()
    open_incident(kind="drift", severity=Severity.CRITICAL, bucket=shop.bucket, detail="?", now=now)
    end(shop)
    function = "seckill.archive._close_incidents"
    assert run_and_die(job="archive", pool_id=shop.pool.pk, function=function, moment=moment) == -9
    archive_module.archive_due(clock=lambda: timezone.now() + timedelta(hours=1), seconds=30)
    assert_archived(shop, sold=1)
    assert not Incident.objects.filter(open_key__isnull=False).exists()


def test_marks_that_look_alike_are_counted_each() -> None:
    """Two that no purchase can have made, alike in what the manifest shows, do not keep the archive for ever."""
    shop = open_sale(units=10)
    sell(shop, 1)
    raw_client().hset(shop.bucket.keys[2], mapping={"x" * 70 + "a": "1", "x" * 70 + "b": "1"})
    end(shop)
    run = archive(shop)
    assert_archived(shop, sold=1)
    assert run.manifest["buyers"]["count"] == 1
    assert len(run.manifest["buyers"]["unreadable"]) == 2
