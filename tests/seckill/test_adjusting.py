"""Law 10 on sale: a delta reaches both stores once, whatever dies, is rebuilt or comes late in between."""

import json
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from inventory.changes import ChangeState, approve, submit
from inventory.errors import UnknownChange
from inventory.models import Stock, StockMovement
from inventory.selectors import balance
from inventory.services import WAREHOUSE
from rest.memory import forget_everything
from seckill import adjusting, followup, reconciliation
from seckill.adjusting import apply_item_adjustment, pending_item_adjustments
from seckill.change_tables import ItemAdjustment
from seckill.errors import ArchiveWaits, GateUnavailable
from seckill.followup import follow_up
from seckill.gate import changing
from seckill.gate.changing import Adjusted
from seckill.gate.connection import raw_client
from seckill.models import Bucket, FlashSale, Incident, ItemBucket, ReconciliationRun
from seckill.rebuild import rebuild_bucket
from seckill.reconciliation import Verdict, reconcile_bucket
from seckill.repair import reconcile_and_repair
from seckill.settlement import settle_bucket
from seckill.tasks import follow_up_changes, reconcile_one
from tests.support.aliases import NOWHERE, point
from tests.support.archive import archive, end
from tests.support.broker import broker
from tests.support.die import run_and_die
from tests.support.people import person
from tests.support.shop import Shop, buy, make_tickets, open_sale
from tests.support.state import dump, numbers, sold_units
from tests.support.threads import run_together
from tests.support.unsafe_changes import MYSQL_FIRST, REDIS_FIRST, adjust_unnumbered

Kind = ReconciliationRun.Verdict


def ask(shop: Shop, delta: int, *, counterpart: str = "WAREHOUSE") -> int:
    """Make an approved adjustment of the first item; return its primary key."""
    change = ItemAdjustment(item=shop.item, delta=delta, counterpart=counterpart, reason="a pallet was found")
    submit(change=change, by=person("add_itemadjustment"), now=timezone.now())
    decider = person("approve_itemadjustment")
    approve(table=ItemAdjustment, change_id=change.pk, by=decider, reason="seen", now=timezone.now())
    return change.pk


def apply(change_id: int) -> ChangeState:
    return apply_item_adjustment(adjustment_id=change_id, clock=timezone.now)


def more_in_warehouse(shop: Shop, units: int) -> None:
    """Give the warehouse units beyond those that were allocated."""
    StockMovement.objects.create(
        sku=shop.item.sku,
        account=WAREHOUSE,
        kind="RECEIPT",
        units=units,
        reference=f"more:{shop.item.pk}:{units}",
        created_at=timezone.now(),
    )
    Stock.objects.filter(sku=shop.item.sku).update(on_hand=units)


def stocked_sale(units: int = 10, limit: int = 1) -> Shop:
    """A sale of ten units, with ten more in the warehouse."""
    shop = open_sale(units=units, limit=limit)
    more_in_warehouse(shop, 10)
    return shop


def sell(shop: Shop, number: int) -> None:
    for ticket in make_tickets(shop, number):
        assert "-" in buy(ticket)
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


def assert_state(shop: Shop, *, allocated: int, left: int, on_hand: int) -> None:
    """Both stores and the ledger say the same, and no change is half made."""
    unit = ItemBucket.objects.get(item_id=shop.item.pk)
    assert unit.allocated == allocated
    assert numbers(shop).left == {shop.item.pk: left}
    assert numbers(shop).adj_no == Bucket.objects.get(pool=shop.pool).adj_no
    assert Stock.objects.get(sku=shop.item.sku).on_hand == balance(account=WAREHOUSE) == on_hand
    assert balance(account=f"item:{shop.item.pk}:0") == unit.allocated - unit.sold
    assert not ItemAdjustment.objects.filter(open_key__isnull=False).exists()
    report = reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    assert (report.verdict, [item.adjusting for item in report.items]) == (Verdict.BALANCED, [0])


def half_term(shop: Shop) -> int:
    """The units that reconciliation counts as under way; with them it is balanced."""
    report = reconciliation._compare(shop.bucket)
    assert report.verdict is Verdict.BALANCED
    return report.items[0].adjusting


def redis_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(**_: object) -> Adjusted:
        raise GateUnavailable("away")

    monkeypatch.setattr(changing, "adjust", unavailable)


def stop_before_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adjusting, "_end", lambda **_: ChangeState.APPROVED)


def test_up_and_down() -> None:
    shop = stocked_sale()
    sell(shop, 3)
    assert apply(ask(shop, +5)) is ChangeState.APPLIED
    assert_state(shop, allocated=15, left=12, on_hand=5)
    assert apply(ask(shop, -12)) is ChangeState.APPLIED
    assert_state(shop, allocated=3, left=0, on_hand=17)
    assert buy(make_tickets(shop, 1)[0]) == "SoldOut"
    assert apply(ask(shop, +1, counterpart="OUTSIDE")) is ChangeState.APPLIED
    assert_state(shop, allocated=4, left=1, on_hand=17)
    assert "-" in buy(make_tickets(shop, 1)[0])
    assert list(ItemAdjustment.objects.order_by("pk").values_list("adj_no", flat=True)) == [1, 2, 3]
    rows = StockMovement.objects.filter(kind="ADJUSTMENT").order_by("pk").values_list("account", "units")
    account = f"item:{shop.item.pk}:0"
    assert list(rows) == [(account, 5), (WAREHOUSE, -5), (account, -12), (WAREHOUSE, 12), (account, 1)]


def test_everybody_is_told_the_new_number() -> None:
    shop = stocked_sale()
    apply(ask(shop, +5))
    forget_everything()
    (item,) = Client().get(f"/api/v1/sales/{shop.sale.pk}/").json()["items"]
    assert (item["units"], item["availability"]["level"]) == (15, "plenty")


def test_applied_again_it_changes_nothing() -> None:
    shop = stocked_sale()
    change_id = ask(shop, +5)
    assert {apply(change_id) for _ in range(3)} == {ChangeState.APPLIED}
    assert_state(shop, allocated=15, left=15, on_hand=5)


def test_before_the_approval_nothing_happens() -> None:
    shop = stocked_sale()
    change = ItemAdjustment(item=shop.item, delta=5, reason="a pallet was found")
    submit(change=change, by=person("add_itemadjustment"), now=timezone.now())
    assert apply(change.pk) is ChangeState.REQUESTED
    assert pending_item_adjustments() == []
    assert_state(shop, allocated=10, left=10, on_hand=10)
    with pytest.raises(UnknownChange):
        apply(10**9)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [+1, -1])
def test_workers_at_once_apply_each_change_once(delta: int) -> None:
    """CASES 7: four changes, taken up by four who do not know of each other, add up exactly."""
    shop = stocked_sale()
    for _ in range(4):
        ask(shop, delta)
    run_together(lambda _: follow_up(clock=timezone.now), range(4))
    while pending_item_adjustments():
        follow_up(clock=timezone.now)
    assert_state(shop, allocated=10 + 4 * delta, left=10 + 4 * delta, on_hand=10 - 4 * delta)


def test_below_what_is_sold_is_refused_with_what_is_possible() -> None:
    """Sold, and queued for MySQL, are both sold."""
    shop = stocked_sale()
    sell(shop, 3)
    for ticket in make_tickets(shop, 4):
        buy(ticket)
    change_id = ask(shop, -4)
    assert apply(change_id) is ChangeState.REFUSED
    change = ItemAdjustment.objects.get(pk=change_id)
    assert (change.units_possible, change.outcome) == (-3, "possible now: -3")
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert_state(shop, allocated=10, left=3, on_hand=10)
    assert apply(ask(shop, -3)) is ChangeState.APPLIED
    assert_state(shop, allocated=7, left=0, on_hand=13)


def test_more_than_the_warehouse_has_is_refused() -> None:
    shop = stocked_sale()
    change_id = ask(shop, +11)
    assert apply(change_id) is ChangeState.REFUSED
    assert ItemAdjustment.objects.get(pk=change_id).units_possible == 10
    assert_state(shop, allocated=10, left=10, on_hand=10)


@pytest.mark.parametrize("state", ["DRAFT", "SCHEDULED", "ARCHIVING", "ARCHIVED"])
@pytest.mark.parametrize("delta", [+5, -5])
def test_only_what_is_on_sale_is_adjusted(state: str, delta: int) -> None:
    shop = stocked_sale()
    change_id = ask(shop, delta)
    FlashSale.objects.update(state=state)
    before = dump(shop.bucket)
    assert apply(change_id) is ChangeState.REFUSED
    assert dump(shop.bucket) == before
    assert ItemBucket.objects.get().allocated == 10


@pytest.mark.parametrize(
    ("delta", "state", "allocated"), [(+5, ChangeState.APPLIED, 15), (-5, ChangeState.REFUSED, 10)]
)
def test_the_archive_begins_between_the_halves(
    delta: int, state: ChangeState, allocated: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What MySQL has stands, what it has not is not made any more: what is left goes to the warehouse from there."""
    shop = stocked_sale()
    change_id = ask(shop, delta)
    with monkeypatch.context() as patch:
        stop_before_the_end(patch)
        apply(change_id)
    FlashSale.objects.update(state="ARCHIVING")
    before = dump(shop.bucket)
    assert apply(change_id) is state
    assert dump(shop.bucket) == before
    assert ItemBucket.objects.get().allocated == allocated


@pytest.mark.slow
@pytest.mark.parametrize("delta", [+5, -5])
@pytest.mark.parametrize("stop", [redis_away, stop_before_the_end])
def test_the_archive_waits_until_a_half_made_adjustment_is_finished(
    delta: int, stop: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would tell of a difference between the stores that nobody made."""
    shop = stocked_sale()
    sell(shop, 2)
    change_id = ask(shop, delta)
    with monkeypatch.context() as patch:
        stop(patch)
        apply(change_id)
    end(shop)
    with pytest.raises(ArchiveWaits, match="an approved change is being applied"):
        archive(shop)
    assert apply(change_id) is ChangeState.APPLIED
    run = archive(shop)
    assert run.manifest["leftovers"] == {str(shop.item.pk): 8 + delta}
    assert run.manifest["items"][str(shop.item.pk)]["drift"] == 0
    assert Stock.objects.get(sku=shop.item.sku).on_hand == balance(account=WAREHOUSE) == 18
    assert balance(account=f"item:{shop.item.pk}:0") == 0
    assert not Incident.objects.exists()


def test_an_adjustment_approved_before_the_archive_is_refused_after_it() -> None:
    shop = stocked_sale()
    change_id = ask(shop, +5)
    end(shop)
    archive(shop)
    assert apply(change_id) is ChangeState.REFUSED
    assert Stock.objects.get(sku=shop.item.sku).on_hand == balance(account=WAREHOUSE) == 20


STEPS = [
    ("seckill.adjusting._begin", "before"),
    ("seckill.adjusting._begin", "after"),
    ("seckill.gate.changing.adjust", "before"),
    ("seckill.gate.changing.adjust", "after"),
    ("seckill.adjusting._end", "before"),
    ("seckill.adjusting._end", "after"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "moment"), STEPS)
@pytest.mark.parametrize("delta", [+5, -5])
def test_killed_at_any_step(function: str, moment: str, delta: int) -> None:
    """SIGKILL: reconciliation sees no drift in the middle, and the follow-up finishes it, once."""
    shop = stocked_sale()
    sell(shop, 2)
    ask(shop, delta)
    assert run_and_die(job="follow_up", pool_id=shop.pool.pk, function=function, moment=moment) == -9
    assert reconcile_and_repair(bucket=shop.bucket, clock=timezone.now).verdict is Verdict.BALANCED
    follow_up(clock=timezone.now)
    assert_state(shop, allocated=10 + delta, left=8 + delta, on_hand=10 - delta)


def test_half_of_an_increase_is_no_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = stocked_sale()
    change_id = ask(shop, +5)
    with monkeypatch.context() as patch:
        redis_away(patch)
        assert apply(change_id) is ChangeState.APPROVED
    assert (numbers(shop).left[shop.item.pk], half_term(shop)) == (10, 5)
    sell(shop, 1)
    assert half_term(shop) == 5
    assert apply(change_id) is ChangeState.APPLIED
    assert_state(shop, allocated=15, left=14, on_hand=5)


def test_half_of_a_decrease_is_no_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = stocked_sale()
    change_id = ask(shop, -5)
    with monkeypatch.context() as patch:
        stop_before_the_end(patch)
        assert apply(change_id) is ChangeState.APPROVED
    assert (numbers(shop).left[shop.item.pk], half_term(shop)) == (5, 5)
    sell(shop, 5)
    assert buy(make_tickets(shop, 1)[0]) == "SoldOut"
    assert half_term(shop) == 5
    assert apply(change_id) is ChangeState.APPLIED
    assert_state(shop, allocated=5, left=0, on_hand=15)


def test_control_without_the_term_half_an_adjustment_is_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reconciliation that does not know of adjustments would repair what nobody broke, and then sell it twice."""
    shop = stocked_sale()
    change_id = ask(shop, -5)
    monkeypatch.setattr(reconciliation, "units_under_way", lambda **_: {})
    with monkeypatch.context() as patch:
        stop_before_the_end(patch)
        apply(change_id)
    assert reconciliation._compare(shop.bucket).verdict is Verdict.LEAK


@pytest.mark.parametrize("delta", [+5, -5])
@pytest.mark.parametrize("stop", [redis_away, stop_before_the_end])
def test_a_rebuild_between_the_halves(
    delta: int, stop: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It makes the second half of an increase, and undoes the first of a decrease; neither is lost or doubled."""
    shop = stocked_sale()
    change_id = ask(shop, delta)
    with monkeypatch.context() as patch:
        stop(patch)
        apply(change_id)
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert half_term(shop) == 0
    assert apply(change_id) is ChangeState.APPLIED
    assert_state(shop, allocated=10 + delta, left=10 + delta, on_hand=10 - delta)


@pytest.mark.parametrize("delta", [+5, -5])
@pytest.mark.parametrize("stop", [redis_away, stop_before_the_end])
def test_redis_lost_between_the_halves(
    delta: int, stop: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = stocked_sale()
    change_id = ask(shop, delta)
    with monkeypatch.context() as patch:
        stop(patch)
        apply(change_id)
    raw_client().delete(*shop.bucket.keys)
    assert apply(change_id) is ChangeState.APPROVED
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert apply(change_id) is ChangeState.APPLIED
    assert_state(shop, allocated=10 + delta, left=10 + delta, on_hand=10 - delta)


def test_a_rebuild_between_the_script_and_mysql_makes_a_decrease_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The epoch, looked at under the lock, says that Redis does not have the decrease any more."""
    shop = stocked_sale()
    change_id = ask(shop, -5)
    script = changing.adjust

    def rebuilt_meanwhile(**wish: object) -> Adjusted:
        adjusted = script(**wish)  # type: ignore[arg-type]
        rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
        return adjusted

    with monkeypatch.context() as patch:
        patch.setattr(changing, "adjust", rebuilt_meanwhile)
        assert apply(change_id) is ChangeState.APPROVED
    assert numbers(shop).left == {shop.item.pk: 10}
    assert half_term(shop) == 0
    assert apply(change_id) is ChangeState.APPLIED
    assert_state(shop, allocated=5, left=5, on_hand=15)


def test_a_late_call_of_a_finished_adjustment_changes_nothing() -> None:
    """Whoever slept before his script finds the number used: by the same change, by a refusal, by a later one."""
    shop = stocked_sale()
    wish = {"bucket": shop.bucket, "epoch": 1, "item_id": shop.item.pk}
    assert apply(ask(shop, -20)) is ChangeState.REFUSED
    sleeper = changing.adjust(**wish, number=1, delta=-5)  # type: ignore[arg-type]
    assert sleeper == Adjusted(units_changed=0, units_left=10)
    assert apply(ask(shop, +5)) is ChangeState.APPLIED
    for number, delta in ((1, -5), (2, +5), (2, -5)):
        changing.adjust(**wish, number=number, delta=delta)  # type: ignore[arg-type]
    assert_state(shop, allocated=15, left=15, on_hand=5)


def test_a_number_too_far_ahead_or_of_another_epoch_is_refused() -> None:
    shop = stocked_sale()
    before = dump(shop.bucket)
    for epoch, number in ((1, 2), (2, 1), (0, 1)):
        with pytest.raises(GateUnavailable):
            changing.adjust(bucket=shop.bucket, epoch=epoch, number=number, item_id=shop.item.pk, delta=1)
    assert dump(shop.bucket) == before


@pytest.mark.parametrize("unsafe", [MYSQL_FIRST, REDIS_FIRST])
def test_control_the_wrong_store_first_sells_what_is_not_there(unsafe: dict[int, str]) -> None:
    """Down in MySQL first, or up in Redis first: a purchase in between is a phantom, its buyer was lied to."""
    shop = stocked_sale()
    delta = next(iter(unsafe))
    sell(shop, 10 if delta > 0 else 6)
    adjust_unnumbered(shop, delta=delta, store=unsafe[delta])
    assert "-" in buy(make_tickets(shop, 1)[0])
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert Incident.objects.get(kind="phantom").severity == "CRITICAL"


def test_one_waits_for_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """One at a time in a bucket: the second gets its number when the first is finished."""
    shop = stocked_sale()
    first, second = ask(shop, -2), ask(shop, +3)
    with monkeypatch.context() as patch:
        stop_before_the_end(patch)
        apply(first)
    assert apply(second) is ChangeState.APPROVED
    assert ItemAdjustment.objects.get(pk=second).adj_no is None
    assert pending_item_adjustments() == [first, second]
    follow_up(clock=timezone.now)
    assert_state(shop, allocated=11, left=11, on_hand=9)


def test_a_decrease_that_redis_made_of_units_that_never_were_is_refused_by_mysql() -> None:
    """Law 1 stands in MySQL: stock raised by hand in Redis does not let a decrease go below what is sold."""
    shop = stocked_sale()
    sell(shop, 8)
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", 5)
    change_id = ask(shop, -4)
    assert apply(change_id) is ChangeState.REFUSED
    assert ItemAdjustment.objects.get(pk=change_id).units_possible == -2
    assert ItemBucket.objects.get().allocated == 10
    assert reconcile_and_repair(bucket=shop.bucket, clock=timezone.now).verdict is Verdict.EXCESS
    assert_state(shop, allocated=10, left=2, on_hand=10)


def test_the_reconciliation_that_follows_is_linked() -> None:
    shop = stocked_sale()
    reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    change_id = ask(shop, +5)
    apply(change_id)
    assert follow_up(clock=timezone.now) == [shop.bucket]
    assert ItemAdjustment.objects.get().reconciliation is None
    for _ in range(2):
        reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    before, first, _ = ReconciliationRun.objects.order_by("pk")
    change = ItemAdjustment.objects.get()
    assert change.reconciliation == first != before
    assert (first.verdict, first.adj_no, first.numbers[0]["allocated"]) == ("BALANCED", 1, 15)
    assert follow_up(clock=timezone.now) == []


def test_the_task_has_what_it_changed_reconciled() -> None:
    """The message is in the broker with the change; without a worker the next run sends another."""
    shop = stocked_sale()
    ask(shop, +5)
    follow_up_changes()
    with broker() as client:
        (message,) = client.lrange("slow", 0, -1)
    assert json.loads(message)["headers"]["task"] == "seckill.reconcile_full"
    assert json.loads(message)["headers"]["argsrepr"] == f"({shop.pool.pk}, 0)"
    reconcile_one(shop.pool.pk, 0)
    assert ItemAdjustment.objects.get().reconciliation is not None
    follow_up_changes()
    with broker() as client:
        assert client.llen("slow") == 1


def test_a_change_that_cannot_be_finished_is_told_of() -> None:
    shop = stocked_sale()
    ask(shop, +5)
    with pytest.MonkeyPatch.context() as patch:
        redis_away(patch)
        follow_up(clock=timezone.now)
        assert not Incident.objects.exists()
        patch.setattr(followup, "STUCK_SECONDS", 0)
        follow_up(clock=timezone.now)
    assert Incident.objects.get(kind="change_stuck").resolved_at is None
    follow_up(clock=timezone.now)
    assert Incident.objects.get(kind="change_stuck").resolved_at is not None
    assert_state(shop, allocated=15, left=15, on_hand=5)


def test_redis_away_and_back(settings: Settings) -> None:
    shop = stocked_sale()
    ask(shop, +5)
    before = settings.CACHES["stock"]["LOCATION"]
    point(settings, "stock", NOWHERE)
    follow_up(clock=timezone.now)
    assert ItemBucket.objects.get().allocated == 15
    point(settings, "stock", before)
    follow_up(clock=timezone.now)
    assert_state(shop, allocated=15, left=15, on_hand=5)


def test_one_change_that_cannot_be_applied_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = stocked_sale(), open_sale()
    ask(bad, +5)
    ask(good, -5)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM seckill_itembucket WHERE item_id = %s", [bad.item.pk])
    follow_up(clock=timezone.now)
    assert ItemBucket.objects.get(item_id=good.item.pk).allocated == 5
    assert ItemAdjustment.objects.get(item=bad.item).state == "APPROVED"


def test_buyers_and_adjusters_at_once() -> None:
    """Up by five, down by five, and twenty buyers of ten units: nothing is sold that is not there, nothing is lost."""
    shop = stocked_sale()
    for delta in (+5, -3, -2):
        ask(shop, delta)
    tickets = make_tickets(shop, 20)

    def act(wish: str) -> str:
        if not wish:
            follow_up(clock=timezone.now)
            return ""
        return buy(wish)

    answers = run_together(act, [*tickets, "", "", ""])
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    while pending_item_adjustments():
        follow_up(clock=timezone.now)
    sold = sum("-" in answer for answer in answers)
    unit = ItemBucket.objects.get()
    assert unit.sold == sold_units(shop) == sold
    assert_state(shop, allocated=unit.allocated, left=unit.allocated - sold, on_hand=20 - unit.allocated)
    assert not Incident.objects.exists()
