"""Transfers between the buckets of an item: once, whole, whoever dies, and nobody is told that nothing is left."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from inventory.changes import ChangeState
from inventory.models import StockMovement
from seckill import adjusting, elsewhere, gathering, transfers, wakeups
from seckill.adjusting import apply_item_adjustment
from seckill.archive_begin import Accepted, begin
from seckill.availability import availability_of, units_on_sale
from seckill.change_tables import ItemAdjustment
from seckill.errors import ArchiveWaits, GateUnavailable, SaleNotReady
from seckill.followup import follow_up
from seckill.gate import changing
from seckill.gate.connection import raw_client
from seckill.gate.keys import BucketRef
from seckill.gathering import Want, buckets_to_fill, gather
from seckill.incidents import open_buckets
from seckill.item_audit import transfers_of
from seckill.models import Bucket, SaleItem
from seckill.numbering import is_free
from seckill.rebuild import claim, rebuild_bucket
from seckill.reconciliation import compare_now
from seckill.repair import reconcile_and_repair
from seckill.tasks import gather_units, sweep_buckets
from seckill.transfer_tables import Transfer
from seckill.transfers import finish_transfer, open_transfers, transfer
from seckill.withdrawing import withdraw_sale
from tests.support.archive import end
from tests.support.buckets import allocated_in, assert_spread_state, key_in, left_in, settle_all
from tests.support.die import run_and_die
from tests.support.people import person
from tests.support.shop import Shop, buy, make_buyers, open_sale, ticket_of


def ticket_in(shop: Shop, number: int, *, after: int = 0) -> str:
    return ticket_of(shop, make_buyers(1)[0], key=key_in(shop, number, after=after))


def move(shop: Shop, *, units: int, donor: int = 0, receiver: int = 1) -> int:
    return transfer(
        item_id=shop.item.pk,
        donor=shop.buckets[donor],
        receiver=shop.buckets[receiver],
        units=units,
        clock=timezone.now,
    )


def want(shop: Shop, number: int, units: int = 1) -> Want:
    return Want(bucket=shop.buckets[number], item_id=shop.item.pk, units=units)


def only_in(number: int, *, units: int, buckets: int = 4, limit: int = 1) -> Shop:
    """A sale whose units have all come together in one bucket."""
    shop = open_sale(units=units, buckets=buckets, limit=limit)
    for other in range(buckets):
        if other != number:
            move(shop, units=units, donor=other, receiver=number)
    Transfer.objects.update(finished_at=timezone.now() - timedelta(minutes=1))
    assert left_in(shop) == [units if n == number else 0 for n in range(buckets)]
    return shop


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Want]:
    """What purchases have asked for, in place of wake-up calls."""
    notes: list[Want] = []

    def note(*, bucket: BucketRef, item_id: int, units: int) -> None:
        notes.append(Want(bucket=bucket, item_id=item_id, units=units))

    monkeypatch.setattr(wakeups, "request_units", note)
    return notes


def test_units_move_once_in_both_stores_and_in_the_ledger() -> None:
    shop = open_sale(units=10, buckets=2)
    assert move(shop, units=3) == 3
    assert (allocated_in(shop), left_in(shop)) == ([2, 8], [2, 8])
    row = Transfer.objects.get()
    assert (row.state, row.units_moved, row.donor_key, row.receiver_key) == ("DONE", 3, None, None)
    movements = StockMovement.objects.filter(reference__startswith=f"transfer:{row.pk}:").order_by("units")
    assert [(m.account, m.units) for m in movements] == [(f"item:{shop.item.pk}:0", -3), (f"item:{shop.item.pk}:1", 3)]
    assert str(row) == f"{shop.item.pk}: 0 → 1, 3/3"
    assert finish_transfer(transfer_id=row.pk, clock=timezone.now) == 3
    assert_spread_state(shop, sold=0)


def test_no_more_than_is_there_moves_and_nothing_uses_the_number() -> None:
    shop = open_sale(units=4, buckets=2)
    assert move(shop, units=9) == 2
    assert move(shop, units=9) == 0
    assert Transfer.objects.latest("pk").state == "NOTHING"
    assert list(Bucket.objects.order_by("number").values_list("adj_no", flat=True)) == [2, 1]
    assert move(shop, units=1, donor=1, receiver=0) == 1
    assert (left_in(shop), allocated_in(shop)) == ([1, 3], [1, 3])
    assert_spread_state(shop, sold=0)


STEPS = [
    (f"seckill.transfers.{name}", moment)
    for name in ("_open", "_take", "_move", "_give", "_close")
    for moment in ("before", "after")
]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "moment"), STEPS)
def test_killed_at_any_step_the_sweep_finishes_it(function: str, moment: str) -> None:
    """SIGKILL between any two steps: law 7 holds in each bucket, and afterwards all is as if nobody had died."""
    shop = only_in(3, units=4)
    assert run_and_die(job="gather", pool_id=shop.pool.pk, function=function, moment=moment) == -9
    for bucket in shop.buckets:
        assert [item.drift for item in compare_now(bucket=bucket).items] == [0]
        assert reconcile_and_repair(bucket=bucket, clock=timezone.now).is_balanced
    later = timezone.now() + timedelta(seconds=2)
    for transfer_id in open_transfers(before=later):
        finish_transfer(transfer_id=transfer_id, clock=timezone.now)
    gather(want=want(shop, 0, 2), clock=timezone.now)
    assert left_in(shop)[0] >= 2
    assert open_transfers(before=later) == []
    assert_spread_state(shop, sold=0)
    assert "-" in buy(ticket_in(shop, 0))
    settle_all(shop)
    assert_spread_state(shop, sold=1)


@pytest.mark.slow
@pytest.mark.parametrize("rebuilt", [0, 1], ids=["donor", "receiver"])
@pytest.mark.parametrize("step", ["_take", "_move", "_give", "_close"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_rebuild_at_any_step_honours_it(
    monkeypatch: pytest.MonkeyPatch, step: str, moment: str, rebuilt: int
) -> None:
    shop = open_sale(units=6, buckets=2)
    stop_at(monkeypatch, step, moment)
    with pytest.raises(GateUnavailable, match="killed"):
        move(shop, units=2)
    monkeypatch.undo()
    raw_client().delete(*shop.buckets[rebuilt].keys)
    rebuild_bucket(bucket=shop.buckets[rebuilt], clock=timezone.now)
    for bucket in shop.buckets:
        assert [item.drift for item in compare_now(bucket=bucket).items] == [0]
    for transfer_id in open_transfers(before=timezone.now() + timedelta(seconds=1)):
        finish_transfer(transfer_id=transfer_id, clock=timezone.now)
    assert (left_in(shop), allocated_in(shop)) == ([1, 5], [1, 5])
    assert_spread_state(shop, sold=0)


def stop_at(monkeypatch: pytest.MonkeyPatch, step: str, moment: str) -> None:
    """Let a process end at a step of a transfer, as far as the stores can tell."""
    function: Callable[..., object] = getattr(transfers, step)

    def die(*args: object, **arguments: object) -> None:
        if moment == "after":
            function(*args, **arguments)
        raise GateUnavailable("killed")

    monkeypatch.setattr(transfers, step, die)


def test_a_late_take_of_a_finished_transfer_takes_nothing() -> None:
    """A process that slept through everything comes with a number that others have used since."""
    shop = open_sale(units=6, buckets=2)
    row = transfers._open(
        item_id=shop.item.pk, donor=shop.buckets[0], receiver=shop.buckets[1], units=1, now=timezone.now()
    )
    assert row is not None
    finish_transfer(transfer_id=row.pk, clock=timezone.now)
    move(shop, units=1)
    assert transfers._take(row) == 0
    assert transfers._move(row=row, taken=1, now=timezone.now()).state == "DONE"
    transfers._give(Transfer.objects.get(pk=row.pk))
    assert left_in(shop) == [1, 5]
    assert_spread_state(shop, sold=0)


def test_a_bucket_has_one_number_under_way() -> None:
    shop = open_sale(units=6, buckets=3)
    transfers._open(item_id=shop.item.pk, donor=shop.buckets[0], receiver=shop.buckets[1], units=1, now=timezone.now())
    assert [is_free(bucket) for bucket in shop.buckets] == [False, False, True]
    assert move(shop, units=1, donor=2, receiver=0) == 0
    assert move(shop, units=1, donor=1, receiver=2) == 0
    change = adjustment(shop, delta=1)
    assert apply_item_adjustment(adjustment_id=change.pk, clock=timezone.now) in {
        ChangeState.APPROVED,
        ChangeState.APPLIED,
    }
    (pk,) = open_transfers(before=timezone.now() + timedelta(seconds=1))
    finish_transfer(transfer_id=pk, clock=timezone.now)
    follow_up(clock=timezone.now)
    change.refresh_from_db()
    assert change.state == ChangeState.APPLIED
    assert_spread_state(shop, sold=0, units=7)


def test_the_audit_of_an_item_lists_its_transfers(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(units=6, buckets=2)
    move(shop, units=2)
    stop_at(monkeypatch, "_give", "before")
    with pytest.raises(GateUnavailable):
        move(shop, units=1)
    assert [(row.state, row.units_moved) for row in transfers_of(item_id=shop.item.pk)] == [("GIVING", 1), ("DONE", 2)]
    client = Client()
    client.force_login(person("view_flashsale", "view_stockmovement"))
    html = client.get(reverse("desk_audit_item", args=[shop.item.pk])).content.decode()
    assert "Latest transfers between its buckets" in html
    assert "being given" in html


def adjustment(shop: Shop, *, delta: int) -> ItemAdjustment:
    clerk, manager = make_buyers(2)
    return ItemAdjustment.objects.create(
        item=shop.item,
        delta=delta,
        counterpart="OUTSIDE",
        reason="counted again",
        state=ChangeState.APPROVED,
        requested_by=clerk,
        requested_at=timezone.now(),
        decided_by=manager,
        decided_at=timezone.now(),
    )


def adjusted(shop: Shop, delta: int) -> ItemAdjustment:
    change = adjustment(shop, delta=delta)
    apply_item_adjustment(adjustment_id=change.pk, clock=timezone.now)
    change.refresh_from_db()
    return change


def test_more_units_go_to_the_poorest_bucket() -> None:
    shop = open_sale(units=6, buckets=3)
    assert "-" in buy(ticket_in(shop, 1))
    assert (adjusted(shop, 2).bucket_no, left_in(shop)) == (1, [2, 3, 2])
    settle_all(shop)
    assert_spread_state(shop, sold=1, units=8)


def test_fewer_units_come_from_the_richest_and_are_gathered_where_one_has_too_few() -> None:
    shop = open_sale(units=10, buckets=4)
    change = adjusted(shop, -8)
    assert (change.state, sum(left_in(shop)), change.outcome) == (ChangeState.APPLIED, 2, f"number {change.adj_no}")
    assert_spread_state(shop, sold=0, units=2)


def test_more_than_all_buckets_have_is_refused_with_what_they_have() -> None:
    shop = open_sale(units=10, buckets=4)
    change = adjusted(shop, -11)
    assert (change.state, change.units_possible, left_in(shop)) == (ChangeState.REFUSED, -10, [3, 3, 2, 2])
    assert not Transfer.objects.exists()
    assert_spread_state(shop, sold=0)


def test_an_adjustment_under_way_keeps_its_bucket() -> None:
    shop = open_sale(units=6, buckets=3)
    change = adjustment(shop, delta=1)
    ItemAdjustment.objects.filter(pk=change.pk).update(adj_no=1, epoch=1, bucket_no=2, open_key=str(shop.buckets[2]))
    adjusting._choose_bucket(adjustment_id=change.pk, clock=timezone.now)
    change.refresh_from_db()
    assert change.bucket_no == 2


@pytest.mark.slow
def test_nothing_begins_while_a_rebuild_has_a_bucket_or_off_sale() -> None:
    shop = open_sale(units=6, buckets=2)
    row = Bucket.objects.get(number=1)
    claim(row=row, now=timezone.now())
    assert move(shop, units=1) == 0
    Bucket.objects.update(claim_until=None)
    shop.sale.state = "ARCHIVING"
    shop.sale.save()
    assert move(shop, units=1) == 0
    assert not Transfer.objects.exists()


@pytest.mark.slow
def test_archive_and_withdrawal_wait_for_units_on_their_way(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(units=6, buckets=2)
    stop_at(monkeypatch, "_give", "before")
    with pytest.raises(GateUnavailable):
        move(shop, units=2)
    monkeypatch.undo()
    with pytest.raises(SaleNotReady, match="on their way"):
        withdraw_sale(sale_id=shop.sale.pk, clock=timezone.now)
    end(shop)
    with pytest.raises(ArchiveWaits, match="on their way"):
        begin(sale_id=shop.sale.pk, accepted=Accepted(), now=timezone.now())
    Transfer.objects.update(created_at=timezone.now() - timedelta(minutes=2))
    follow_up(clock=timezone.now)
    assert open_buckets(kind="change_stuck") == set(shop.buckets)
    (pk,) = open_transfers(before=timezone.now())
    finish_transfer(transfer_id=pk, clock=timezone.now)
    follow_up(clock=timezone.now)
    assert open_buckets(kind="change_stuck") == set()
    begin(sale_id=shop.sale.pk, accepted=Accepted(), now=timezone.now())


def test_who_is_refused_by_an_empty_bucket_has_the_unit_within_a_second(asked: list[Want]) -> None:
    shop = only_in(3, units=1)
    ticket = ticket_in(shop, 0)
    assert buy(ticket) == "Busy"
    assert asked == [want(shop, 0)]
    for note in asked:
        gather_units(note.bucket.pool_id, note.bucket.number, note.item_id, note.units)
    assert left_in(shop) == [1, 0, 0, 0]
    assert "-" in buy(ticket)
    elsewhere.memory.forget()
    assert buy(ticket_in(shop, 3)) == "SoldOut"
    settle_all(shop)
    assert_spread_state(shop, sold=1)


def test_two_units_in_two_buckets_are_gathered_for_one_buyer(asked: list[Want]) -> None:
    shop = open_sale(units=3, buckets=3, limit=2)
    assert "-" in buy(ticket_in(shop, 2))
    ticket = ticket_in(shop, 0)
    assert buy(ticket, 2) == "Busy"
    assert asked == [want(shop, 0, 2)]
    gather(want=asked[0], clock=timezone.now)
    assert left_in(shop) == [2, 0, 0]
    assert "-" in buy(ticket, 2)
    settle_all(shop)
    assert_spread_state(shop, sold=3)


@pytest.mark.slow
def test_fewer_than_asked_for_are_counted_over_all_buckets(asked: list[Want]) -> None:
    shop = open_sale(units=3, buckets=3, limit=4)
    assert buy(ticket_in(shop, 0), 4) == "NotEnoughLeft"
    assert elsewhere.units_of_item(pool_id=shop.pool.pk, item_id=shop.item.pk).units == 3
    assert asked == []


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["frozen", "missing", "on its way"])
def test_sold_out_is_never_said_of_what_cannot_be_seen(
    asked: list[Want], monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """Neither by the script's answer nor, half a second later, by what the process remembers."""
    shop = only_in(3, units=1)
    if trouble == "frozen":
        raw_client().hset(shop.buckets[3].keys[1], "frozen", "somebody")
    elif trouble == "missing":
        raw_client().delete(*shop.buckets[3].keys)
    else:
        stop_at(monkeypatch, "_give", "before")
        with pytest.raises(GateUnavailable):
            move(shop, units=1, donor=3, receiver=0)
    ticket = ticket_in(shop, 1)
    assert [buy(ticket), buy(ticket), buy(ticket_in(shop, 1, after=1))] == ["Busy"] * 3
    assert asked == []


def test_sold_out_is_remembered_only_where_all_buckets_were_empty() -> None:
    shop = open_sale(units=2, buckets=2)
    assert ["-" in buy(ticket_in(shop, number)) for number in range(2)] == [True, True]
    elsewhere.memory.forget()
    with_look = buy(ticket_in(shop, 0, after=1))
    seen = elsewhere.units_of_item(pool_id=shop.pool.pk, item_id=shop.item.pk)
    assert (with_look, seen.units, seen.is_fresh) == ("SoldOut", 0, False)
    assert buy(ticket_in(shop, 1, after=2)) == "SoldOut"


@pytest.mark.slow
def test_what_has_just_been_brought_stays_for_whoever_asked_for_it() -> None:
    shop = only_in(3, units=1)
    assert gather(want=want(shop, 0), clock=timezone.now) == 1
    assert gather(want=want(shop, 1), clock=timezone.now) == 0
    assert gather(want=want(shop, 1), clock=lambda: timezone.now() + gathering.STAYS) == 1
    assert left_in(shop) == [0, 1, 0, 0]


@pytest.mark.slow
def test_a_big_rest_is_shared_among_the_empty_ones() -> None:
    shop = only_in(3, units=101)
    assert [(w.bucket.number, w.units) for w in buckets_to_fill(now=timezone.now())] == [(0, 0), (1, 0), (2, 0)]
    for note in buckets_to_fill(now=timezone.now()):
        gather(want=note, clock=timezone.now)
    assert left_in(shop) == [26, 25, 25, 25]
    assert buckets_to_fill(now=timezone.now()) == []
    assert_spread_state(shop, sold=0)


@pytest.mark.slow
def test_nothing_is_filled_when_the_sale_is_over() -> None:
    shop = only_in(1, units=5, buckets=2)
    end(shop)
    assert buckets_to_fill(now=timezone.now()) == []


@pytest.mark.slow
def test_the_shop_window_does_not_say_none_left_of_what_is_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = only_in(1, units=1, buckets=2)
    stop_at(monkeypatch, "_give", "before")
    with pytest.raises(GateUnavailable):
        move(shop, units=1, donor=1, receiver=0)
    items = list(SaleItem.objects.select_related("pool__sale"))
    told = availability_of(items=items, allocated=units_on_sale(items=items), now=timezone.now())
    assert (left_in(shop), told[shop.item.pk].level) == ([0, 0], "last")


@pytest.mark.slow
def test_the_sweep_finishes_and_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, tuple[int, ...]]] = []
    monkeypatch.setattr(
        "celery.app.task.Task.apply_async", lambda task, args=(), **_options: sent.append((task.name, tuple(args)))
    )
    shop = only_in(1, units=5, buckets=2)
    row = transfers._open(
        item_id=shop.item.pk, donor=shop.buckets[1], receiver=shop.buckets[0], units=1, now=timezone.now()
    )
    assert row is not None
    sweep_buckets()
    assert sent == [("seckill.gather", (shop.pool.pk, 0, shop.item.pk, 0))]
    Transfer.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(seconds=2))
    sweep_buckets()
    assert sent[1] == ("seckill.finish_transfer", (row.pk,))


def test_the_take_is_bounded_by_the_script_and_repeats_its_answer() -> None:
    shop = open_sale(units=3, buckets=2)
    arguments = {"bucket": shop.bucket, "epoch": 1, "number": 1, "item_id": shop.item.pk}
    assert [changing.take(**arguments, units=5), changing.take(**arguments, units=5)] == [2, 2]  # type: ignore[arg-type]
    assert changing.take(**{**arguments, "number": 2}, units=5) == 0  # type: ignore[arg-type]
    assert left_in(shop) == [0, 1]
