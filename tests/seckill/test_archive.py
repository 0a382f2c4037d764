"""The archive: what has ended leaves Redis for MySQL, which alone answers from then on."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from config.celery import app
from inventory.models import Stock
from orders.models import Order
from orders.services import cancel_order
from seckill import archive as archive_module
from seckill import archive_begin, replay, tasks
from seckill.archive import Pace, archive_due
from seckill.archive_begin import Accepted, begin
from seckill.archive_run import EMPTY_DIGEST
from seckill.archive_tables import ArchiveRun, ArchiveStage, BuyerArchive
from seckill.errors import ArchiveBlocked, ArchiveWaits, BucketUnsound, Ended, RebuildRefused, SaleNotReady
from seckill.gate import archiving, changing, gate, parked
from seckill.gate.connection import raw_client
from seckill.gate.gate import Restock
from seckill.models import Bucket, DeadLetter, FlashSale, Incident, ItemBucket, Reservation
from seckill.pausing import pause_item
from seckill.polling import purchase_status
from seckill.rebuild import rebuild_bucket
from seckill.reconciliation import Verdict, reconcile_bucket
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from seckill.tickets import HeldReservation, Wish, ticket_for
from tests.seckill.test_adjusting import apply as adjust
from tests.seckill.test_adjusting import ask as ask_units
from tests.seckill.test_adjusting import stocked_sale, stop_before_the_end
from tests.seckill.test_replay import park_one
from tests.seckill.test_windows import apply as move_window
from tests.seckill.test_windows import ask as ask_window
from tests.seckill.test_windows import redis_away
from tests.support.archive import archive, assert_archived, copied, end
from tests.support.nodes import server_of
from tests.support.shop import Shop, buy, make_buyers, make_tickets, open_sale, ticket_of
from tests.support.state import dump, numbers


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


def later(minutes: int) -> None:
    """The beat's tick, so many minutes from now."""
    archive_due(clock=lambda: timezone.now() + timedelta(minutes=minutes), seconds=30)


def seal(shop: Shop) -> None:
    end(shop)
    assert archiving.seal(bucket=shop.bucket, epoch=1)


def test_everything_has_its_place_afterwards() -> None:
    """Queued ones are settled, buyers copied with their units, the rest is in the warehouse, Redis is free."""
    shop = open_sale(units=10, limit=3)
    buyers = make_buyers(3)
    for quantity, buyer in enumerate(buyers, start=1):
        buy(ticket_of(shop, buyer), quantity)
    end(shop)
    run = archive(shop)
    assert (run.stage, run.waits_for, run.is_redis_lost) == ("DONE", "", False)
    assert copied(shop) == {str(buyer.pk): n for n, buyer in enumerate(buyers, start=1)}
    assert_archived(shop, sold=6)
    assert raw_client().dbsize() == 0
    assert run.manifest["leftovers"] == {str(shop.item.pk): 4}
    assert run.manifest["items"][str(shop.item.pk)] == {"allocated": 10, "sold": 6, "left": 4, "drift": 0}
    found, receipts = run.manifest["buyers"], run.manifest["receipts"]
    assert (found["count"], found["units"], found["differing"], found["source"]) == (3, 6, 0, "redis")
    assert (receipts["in_redis"], receipts["in_mysql"], receipts["differing"]) == (3, 3, 0)
    assert receipts["redis_digest"] == receipts["mysql_digest"] != EMPTY_DIGEST
    reached = run.manifest["reached"]
    assert sorted(reached, key=reached.__getitem__) == ArchiveStage.values
    assert not Incident.objects.exists()


def test_a_return_between_the_beginning_and_the_seal_is_no_difference() -> None:
    """Redis is told of no return from the beginning on; whoever reconciles before the seal must not wonder."""
    shop = open_sale(units=5)
    (order_no,) = sell(shop, 1)
    end(shop)
    begin(sale_id=shop.sale.pk, accepted=Accepted(), now=timezone.now())
    cancel(order_no)
    assert give_back() == 1
    report = reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    assert (report.verdict, report.members) == (Verdict.UNAVAILABLE, None)
    assert not Incident.objects.exists()
    later(16)
    assert_archived(shop, sold=0)


def test_a_second_archive_is_harmless() -> None:
    """CASES 20: refused in words, and the beat finds nothing to do."""
    shop = open_sale(units=5)
    sell(shop, 2)
    end(shop)
    archive(shop)
    before = (list(ArchiveRun.objects.values()), list(BuyerArchive.objects.values()))
    with pytest.raises(SaleNotReady, match="archived"):
        archive(shop)
    later(60)
    assert (list(ArchiveRun.objects.values()), list(BuyerArchive.objects.values())) == before
    assert_archived(shop, sold=2)


def test_the_beat_waits_for_the_delay() -> None:
    """CASES 29: a quarter of an hour after the end, by the end that stands in the database."""
    shop = open_sale(units=5)
    sell(shop, 1)
    later(14)
    end(shop)
    later(14)
    assert FlashSale.objects.get().state == "PREHEATED"
    later(16)
    assert_archived(shop, sold=1)


def test_the_task_does_what_the_beat_wants() -> None:
    shop = open_sale(units=5)
    end(shop, ago=timedelta(hours=1))
    tasks.archive_due()
    assert_archived(shop, sold=0)


def test_a_worker_that_rests_in_an_archive_delays_nothing_else() -> None:
    """A queue of its own: on one with the rebuilds, a sale might stay shut for as long as a slice of an archive."""
    queues = {name: route["queue"] for name, route in app.conf.task_routes.items()}
    assert [name for name, queue in queues.items() if queue == "archive"] == ["seckill.archive_due"]
    assert "archive" in {queue.name for queue in app.conf.task_queues}


def test_a_run_rests_longer_than_it_worked_and_stops_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve seconds of time, steps of one second: two steps and two rests, the longest there are."""
    now, rests = [100.0], list[float]()

    def sleep(seconds: float) -> None:
        rests.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(archive_module, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    has_time, steps = Pace(12), 0
    while has_time():
        now[0] += 1
        steps += 1
    assert (steps, rests) == (2, [5.0, 5.0])
    rests.clear()
    has_time = Pace(20)
    for _ in range(3):
        assert has_time()
        now[0] += 0.08
    assert has_time()
    assert [round(rest, 2) for rest in rests] == [0.72]


def test_a_run_that_fails_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """MySQL is gone for the first of two: the second is archived by the same tick."""
    broken, other = open_sale(units=5), open_sale(units=5)
    end(broken)
    end(other)
    go_on = archive_module.advance

    def fail_for_the_first(**arguments: Any) -> None:
        if arguments["run"].pool_id == broken.pool.pk:
            raise OperationalError(2006, "gone away")
        go_on(**arguments)

    with monkeypatch.context() as patch:
        patch.setattr(archive_module, "advance", fail_for_the_first)
        later(60)
    assert_archived(other, sold=0)
    later(60)
    assert_archived(broken, sold=0)


def test_it_proceeds_in_slices() -> None:
    """A tick without time begins and stops; the next ones go on."""
    shop = open_sale(units=5)
    sell(shop, 1)
    end(shop)
    archive_due(clock=lambda: timezone.now() + timedelta(hours=1), seconds=0)
    assert ArchiveRun.objects.get().stage == "CLAIMED"
    later(60)
    assert_archived(shop, sold=1)


def test_an_open_or_unknown_sale_is_refused_in_words() -> None:
    shop = open_sale(units=5)
    with pytest.raises(SaleNotReady, match="open until"):
        archive(shop)
    FlashSale.objects.update(state="SCHEDULED")
    with pytest.raises(SaleNotReady, match="scheduled"):
        archive(shop)
    assert not ArchiveRun.objects.exists()


def test_redis_has_the_last_word_about_its_clock() -> None:
    """A worker's clock is ahead: nobody is cut off before the end that Redis keeps."""
    shop = open_sale(units=5)
    run = archive(shop, ahead=timedelta(hours=2))
    assert (run.stage, run.waits_for) == ("CLAIMED", "the end of the sale by the clock of Redis")
    assert "-" in buy(make_tickets(shop, 1)[0])
    end(shop)
    archive(shop)
    assert_archived(shop, sold=1)


def test_nothing_but_settlement_changes_a_sealed_bucket() -> None:
    """Reserve, restock, repair, adjust, pause and all others are refused; what is queued is still settled."""
    shop = open_sale(units=5)
    (first,) = sell(shop, 1)
    queued, late = make_tickets(shop, 2)
    buy(queued)
    seal(shop)
    before = dump(shop.bucket)
    row = Reservation.objects.get(order_no=first)
    restock = Restock(order_no=first, item_id=row.item_id, quantity=1, limit_key=row.limit_key, units_back=1)
    with pytest.raises(BucketUnsound, match="damaged"):
        gate.restock(bucket=shop.bucket, epoch=1, restocks=[restock])
    with pytest.raises(BucketUnsound, match="damaged"):
        gate.repair(bucket=shop.bucket, epoch=1, seen_repair_no=0, deltas={shop.item.pk: 1})
    assert not gate.pause(bucket=shop.bucket, item_id=shop.item.pk)
    assert not gate.resume(bucket=shop.bucket, item_id=shop.item.pk)
    assert buy(late) == "Ended"
    with pytest.raises(BucketUnsound, match="damaged"):
        changing.adjust(bucket=shop.bucket, epoch=1, number=1, item_id=shop.item.pk, delta=1)
    with pytest.raises(BucketUnsound, match="damaged"):
        changing.set_window(bucket=shop.bucket, number=1, opens_ms=1, closes_ms=10**14 - 1)
    with pytest.raises(BucketUnsound, match="damaged"):
        changing.withdraw(bucket=shop.bucket, epoch=1)
    assert dump(shop.bucket) == before
    assert settle_bucket(bucket=shop.bucket, clock=timezone.now).entries == 1
    assert numbers(shop).queued == {shop.item.pk: 0}
    assert reconcile_bucket(bucket=shop.bucket, clock=timezone.now).verdict == Verdict.UNAVAILABLE


def test_a_seal_is_final_and_safe_to_repeat() -> None:
    shop = open_sale(units=5)
    assert not archiving.seal(bucket=shop.bucket, epoch=1)
    seal(shop)
    before = dump(shop.bucket)
    assert archiving.seal(bucket=shop.bucket, epoch=1)
    assert dump(shop.bucket) == before


def test_only_an_empty_queue_is_closed() -> None:
    shop = open_sale(units=5)
    with pytest.raises(BucketUnsound, match="damaged"):
        archiving.close(bucket=shop.bucket, epoch=1)
    buy(make_tickets(shop, 1)[0])
    seal(shop)
    before = dump(shop.bucket)
    assert not archiving.close(bucket=shop.bucket, epoch=1)
    assert dump(shop.bucket) == before
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert archiving.close(bucket=shop.bucket, epoch=1)
    before = dump(shop.bucket)
    assert archiving.close(bucket=shop.bucket, epoch=1)
    assert dump(shop.bucket) == before


def test_only_a_closed_bucket_is_read() -> None:
    """A cursor or a count would mean nothing while members come and go."""
    shop = open_sale(units=5)
    seal(shop)
    with pytest.raises(BucketUnsound, match="damaged"):
        archiving.scan_buyers(bucket=shop.bucket, epoch=1, cursor="0", count=10)
    with pytest.raises(BucketUnsound, match="damaged"):
        archiving.members(bucket=shop.bucket, epoch=1)
    archiving.close(bucket=shop.bucket, epoch=1)
    for epoch in (0, 2):
        with pytest.raises(BucketUnsound, match="damaged"):
            archiving.scan_buyers(bucket=shop.bucket, epoch=epoch, cursor="0", count=10)
    assert archiving.members(bucket=shop.bucket, epoch=1).buyers == 0


def test_no_rebuild_once_the_archive_has_begun() -> None:
    shop = open_sale(units=5)
    FlashSale.objects.update(state="ARCHIVING")
    before = dump(shop.bucket)
    with pytest.raises(RebuildRefused, match="not on"):
        rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert dump(shop.bucket) == before


def test_a_rebuild_under_way_holds_up_the_beginning() -> None:
    shop = open_sale(units=5)
    end(shop)
    Bucket.objects.update(claim="token", claim_until=timezone.now() + timedelta(seconds=30))
    with pytest.raises(ArchiveWaits, match="being rebuilt"):
        archive(shop)
    assert FlashSale.objects.get().state == "PREHEATED"
    Bucket.objects.update(claim_until=timezone.now() - timedelta(seconds=1))
    archive(shop)
    assert Bucket.objects.get().claim_until is None
    assert_archived(shop, sold=0)


def test_a_frozen_gate_is_rebuilt_first() -> None:
    shop = open_sale(units=5)
    end(shop)
    raw_client().hset(shop.bucket.keys[1], "frozen", "somebody")
    with pytest.raises(ArchiveWaits, match="to be rebuilt first: the gate is frozen"):
        archive(shop)
    later(60)
    assert FlashSale.objects.get().state == "PREHEATED"


def test_half_an_adjustment_holds_up_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its other half is made within seconds; then nothing is under way when law 7 is weighed."""
    shop = stocked_sale()
    change_id = ask_units(shop, -4)
    with monkeypatch.context() as patch:
        stop_before_the_end(patch)
        adjust(change_id)
    end(shop)
    with pytest.raises(ArchiveWaits, match="an approved change"):
        archive(shop)
    adjust(change_id)
    run = archive(shop)
    assert run.manifest["items"][str(shop.item.pk)] == {"allocated": 6, "sold": 0, "left": 6, "drift": 0}
    assert Stock.objects.get().on_hand == 20


def test_a_window_that_is_not_in_the_gate_yet_holds_up_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(units=5)
    change_id = ask_window(shop, closes_at=timezone.now() + timedelta(minutes=1))
    with monkeypatch.context() as patch:
        redis_away(patch)
        move_window(change_id)
    in_an_hour = timezone.now() + timedelta(hours=1)
    with pytest.raises(ArchiveWaits, match="an approved change"):
        begin(sale_id=shop.sale.pk, accepted=Accepted(), now=in_an_hour)
    move_window(change_id)
    begin(sale_id=shop.sale.pk, accepted=Accepted(), now=in_an_hour)


def test_dead_letters_want_a_person() -> None:
    """An incident that says what to do, closed when it is done; given up, the manifest counts them."""
    shop = open_sale(units=5)
    sell(shop, 1)
    raw_client().xadd(shop.bucket.keys[4], {"order": "x"})
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    end(shop)
    later(60)
    incident = Incident.objects.get(kind="archive_blocked")
    assert "1 dead letters" in incident.detail
    assert "--accept-dead-letters" in incident.detail
    with pytest.raises(ArchiveBlocked):
        archive(shop)
    run = archive(shop, Accepted(dead_letters=True))
    assert run.manifest["dead_letters"] == 1
    assert not Incident.objects.filter(open_key__isnull=False).exists()
    assert_archived(shop, sold=1)


def test_a_closed_bucket_takes_no_letter_back() -> None:
    """Nothing may come into the queue, and no mark go, once all is copied; sealed alone does not bar it."""
    shop = open_sale(units=5)
    letter = park_one(shop, make_buyers(1)[0])
    entry = replay._entry_of(letter)
    assert entry is not None
    seal(shop)
    archiving.close(bucket=shop.bucket, epoch=1)
    before = dump(shop.bucket)
    code = parked.requeue(bucket=shop.bucket, letter_id=letter.pk, parked_epoch=1, entry=entry)
    assert code is parked.RequeueCode.CLOSED
    names = {"order_no": entry.order_no, "limit_key": entry.limit_key, "stream_id": letter.stream_id}
    assert not parked.conclude(bucket=shop.bucket, parked_epoch=1, reason="invalid", **names)
    assert dump(shop.bucket) == before


def test_a_letter_parked_between_the_look_and_the_lock_wants_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(units=5)
    end(shop)
    begin_at_once = archive_begin._begin

    def park_and_begin(**arguments: Any) -> None:
        DeadLetter.objects.create(
            pool=shop.pool, bucket_no=0, epoch=1, stream_id="1-1", fields={}, error="?", created_at=timezone.now()
        )
        begin_at_once(**arguments)

    monkeypatch.setattr(archive_begin, "_begin", park_and_begin)
    with pytest.raises(ArchiveBlocked, match="1 dead letters"):
        archive(shop)
    assert FlashSale.objects.get().state == "PREHEATED"


def test_dead_letters_found_at_the_end_want_a_person() -> None:
    """Parked only after the archive had begun: the run waits, and goes on when somebody has decided."""
    shop = open_sale(units=5)
    raw_client().xadd(shop.bucket.keys[4], {"order": "x"})
    end(shop)
    run = archive(shop)
    assert (run.stage, Incident.objects.filter(kind="archive_blocked", open_key__isnull=False).count()) == ("SEALED", 1)
    DeadLetter.objects.all().delete()
    later(60)
    assert_archived(shop, sold=0)
    assert not Incident.objects.filter(kind="archive_blocked", open_key__isnull=False).exists()


def test_what_redis_is_owed_when_the_archive_begins_is_paid_before_the_seal() -> None:
    """A return that was counted, but whose restock had not come through."""
    shop = open_sale(units=5)
    first, _ = sell(shop, 2)
    cancel(first)
    raw_client().hset(shop.bucket.keys[1], "run_id", "another")
    give_back()
    raw_client().hset(shop.bucket.keys[1], "run_id", server_of(shop.bucket).info("server")["run_id"])
    assert Reservation.objects.filter(owed_at__isnull=False).count() == 1
    end(shop)
    run = archive(shop)
    assert_archived(shop, sold=1)
    assert run.manifest["buyers"]["count"] == 1
    assert (run.manifest["buyers"]["differing"], run.manifest["receipts"]["differing"]) == (0, 0)


def test_an_order_closed_before_the_archive_and_returned_after_it() -> None:
    """Its mark and its receipt still stand in Redis, and are no difference."""
    shop = open_sale(units=5)
    first, _ = sell(shop, 2)
    cancel(first)
    end(shop)
    run = archive(shop)
    assert give_back() == 1
    assert_archived(shop, sold=1)
    assert (run.manifest["buyers"]["count"], run.manifest["buyers"]["differing"]) == (2, 0)


def test_orders_closed_after_the_archive_go_to_the_warehouse() -> None:
    shop = open_sale(units=5)
    first, second = sell(shop, 2)
    end(shop)
    archive(shop)
    cancel(first)
    assert give_back() == 1
    assert_archived(shop, sold=1)
    assert Reservation.objects.get(order_no=first).units_returned_at is not None
    assert Order.objects.get(number=second).state == "PENDING_PAYMENT"


def test_late_questions_are_answered_from_mysql() -> None:
    """Poll, repeat, another try, ticket: an archived sale has an answer for each, and Redis is not needed."""
    shop = open_sale(units=5)
    buyer, stranger = make_buyers(2)
    bought, unused = ticket_of(shop, buyer), ticket_of(shop, stranger)
    order_no = buy(bought)
    end(shop)
    archive(shop)
    status = purchase_status(order_no=order_no, buyer_id=buyer.pk)
    assert (status.state, status.order and status.order.number) == ("confirmed", order_no)
    assert buy(bought) == order_no
    assert buy(bought, 2) == "Conflict"
    assert buy(unused) == "Ended"
    now = timezone.now()
    held = ticket_for(buyer=buyer, item_id=shop.item.pk, wish=Wish.FIRST, now=now)
    assert isinstance(held, HeldReservation)
    assert (held.status.order_no, held.may_buy_more) == (order_no, False)
    with pytest.raises(Ended):
        ticket_for(buyer=make_buyers(1)[0], item_id=shop.item.pk, wish=Wish.FIRST, now=now)


def test_a_pause_does_not_hinder_an_archive() -> None:
    shop = open_sale(units=5)
    pause_item(item_id=shop.item.pk)
    end(shop)
    archive(shop)
    assert_archived(shop, sold=0)
    assert ItemBucket.objects.get().allocated == 0
