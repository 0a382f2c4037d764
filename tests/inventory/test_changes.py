"""Law 10: a change by hand is asked for by one person and decided by another; two of them add up (CASES 7)."""

from itertools import product

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from pytest_django import Settings

from inventory.adjusting import apply_stock_adjustment, pending_stock_adjustments
from inventory.changes import (
    CHANGE_TRANSITIONS,
    ChangeState,
    approve,
    finish,
    may_decide,
    reject,
    submit,
    waiting_for,
)
from inventory.errors import AlreadyDecided, ChangeNotAllowed, UnknownChange
from inventory.models import UNITS_MAX, Sku, Stock, StockAdjustment, StockMovement
from inventory.selectors import balance
from inventory.services import WAREHOUSE, receive
from tests.support.people import person
from tests.support.rows import NOW, make_sku
from tests.support.threads import run_together
from tests.support.unsafe_writes import unsafe_receive


def clerk() -> User:
    return person("add_stockadjustment")


def manager() -> User:
    return person("approve_stockadjustment")


def stocked(units: int = 10) -> Sku:
    sku = make_sku()
    receive(sku_id=sku.pk, units=units, reference=f"receipt:{sku.pk}", now=NOW)
    return sku


def ask(sku: Sku, delta: int, *, by: User | None = None) -> int:
    change = StockAdjustment(sku=sku, delta=delta, reason="counted again")
    return submit(change=change, by=by or clerk(), now=NOW).pk


def agree(change_id: int, *, by: User | None = None) -> None:
    approve(table=StockAdjustment, change_id=change_id, by=by or manager(), reason="seen", now=NOW)


def apply(change_id: int) -> ChangeState:
    return apply_stock_adjustment(adjustment_id=change_id, now=NOW)


def adjust(sku: Sku, delta: int) -> ChangeState:
    change_id = ask(sku, delta)
    agree(change_id)
    return apply(change_id)


def on_hand(sku: Sku) -> int:
    """Units in the warehouse, which the ledger agrees with."""
    stock = Stock.objects.get(sku=sku)
    assert stock.on_hand == balance(account=WAREHOUSE, sku_id=sku.pk)
    return stock.on_hand


def test_asked_by_one_approved_by_another_applied_once() -> None:
    sku, asker, decider = stocked(), clerk(), manager()
    change_id = ask(sku, +5, by=asker)
    assert apply(change_id) is ChangeState.REQUESTED
    assert on_hand(sku) == 10
    agree(change_id, by=decider)
    assert pending_stock_adjustments() == [change_id]
    assert [apply(change_id), apply(change_id)] == [ChangeState.APPLIED, ChangeState.APPLIED]
    assert on_hand(sku) == 15
    assert pending_stock_adjustments() == []
    row = StockMovement.objects.get(kind="ADJUSTMENT")
    assert (row.account, row.units, row.reason, row.actor_id) == (WAREHOUSE, 5, "counted again", asker.pk)
    change = StockAdjustment.objects.get()
    assert (change.decided_by_id, change.on_hand_after, change.ledger_after) == (decider.pk, 15, 15)
    assert (change.outcome, change.is_by_one_person) == ("on hand 15, ledger 15", False)


def test_two_people_s_plus_ten_make_twenty() -> None:
    """CASES 7: deltas add up, also when both are applied at the same moment."""
    sku = stocked()
    changes = [ask(sku, +10), ask(sku, +10)]
    for change_id in changes:
        agree(change_id)
    run_together(apply, [*changes, *changes])
    assert on_hand(sku) == 30


def test_control_two_stale_numbers_make_ten() -> None:
    """The same as numbers read, added to and written back: one of the two is lost."""
    sku = stocked()
    unsafe = unsafe_receive(writers=2)
    run_together(lambda units: unsafe(sku.pk, units), [10, 10])
    assert Stock.objects.get(sku=sku).on_hand == 20


def test_a_sku_the_warehouse_never_had() -> None:
    sku = make_sku()
    assert adjust(sku, +3) is ChangeState.APPLIED
    assert on_hand(sku) == 3


@pytest.mark.parametrize(
    ("delta", "words"), [(-11, "possible now: -10"), (UNITS_MAX, f"possible now: +{UNITS_MAX - 10}")]
)
def test_what_is_not_possible_is_refused_with_what_is(delta: int, words: str) -> None:
    sku = stocked()
    assert adjust(sku, delta) is ChangeState.REFUSED
    assert on_hand(sku) == 10
    change = StockAdjustment.objects.get()
    assert (change.outcome, change.on_hand_after) == (words, None)
    assert not StockMovement.objects.filter(kind="ADJUSTMENT").exists()


def test_down_to_nothing() -> None:
    sku = stocked()
    assert adjust(sku, -10) is ChangeState.APPLIED
    assert on_hand(sku) == 0


def test_nobody_decides_on_his_own_request() -> None:
    both = person("add_stockadjustment", "approve_stockadjustment")
    change_id = ask(stocked(), +5, by=both)
    for decide in (approve, reject):
        with pytest.raises(ChangeNotAllowed, match="Somebody else"):
            decide(table=StockAdjustment, change_id=change_id, by=both, reason="mine", now=NOW)
    assert not may_decide(change=StockAdjustment.objects.get(), by=both)
    assert not waiting_for(table=StockAdjustment, by=both).exists()
    assert waiting_for(table=StockAdjustment, by=manager()).get().pk == change_id
    assert StockAdjustment.objects.get().state == "REQUESTED"


def test_in_a_one_person_shop_every_entry_says_so(settings: Settings) -> None:
    settings.ONE_PERSON_SHOP = True
    both = person("add_stockadjustment", "approve_stockadjustment")
    sku = stocked()
    change_id = ask(sku, +5, by=both)
    assert waiting_for(table=StockAdjustment, by=both).get().pk == change_id
    agree(change_id, by=both)
    apply(change_id)
    assert StockAdjustment.objects.get().is_by_one_person
    assert StockMovement.objects.get(kind="ADJUSTMENT").reason == "counted again [one person alone]"
    assert adjust(sku, +1) is ChangeState.APPLIED
    assert StockMovement.objects.get(kind="ADJUSTMENT", units=1).reason == "counted again"


def test_without_the_permission_nothing_is_asked_or_decided() -> None:
    sku = stocked()
    with pytest.raises(ChangeNotAllowed, match="permission"):
        ask(sku, +5, by=manager())
    assert not StockAdjustment.objects.exists()
    change_id = ask(sku, +5)
    dismissed = manager()
    User.objects.filter(pk=dismissed.pk).update(is_active=False)
    for nobody in (clerk(), User.objects.get(pk=dismissed.pk)):
        with pytest.raises(ChangeNotAllowed, match="permission"):
            agree(change_id, by=nobody)
    assert StockAdjustment.objects.get().state == "REQUESTED"


@pytest.mark.parametrize("change", [{"delta": 0}, {"delta": UNITS_MAX + 1}, {"reason": ""}, {"reason": "x"}])
def test_a_request_that_says_nothing_is_refused(change: dict[str, object]) -> None:
    wish = {"delta": 1, "reason": "counted again"} | change
    with pytest.raises(ValidationError):
        submit(change=StockAdjustment(sku=stocked(), **wish), by=clerk(), now=NOW)
    assert not StockAdjustment.objects.exists()


def test_a_rejected_request_is_never_applied() -> None:
    sku = stocked()
    change_id = ask(sku, +5)
    reject(table=StockAdjustment, change_id=change_id, by=manager(), reason="no", now=NOW)
    assert apply(change_id) is ChangeState.REJECTED
    with pytest.raises(AlreadyDecided):
        agree(change_id)
    assert on_hand(sku) == 10


@pytest.mark.parametrize(("before", "after"), list(product(ChangeState, ChangeState)))
def test_every_transition(before: ChangeState, after: ChangeState) -> None:
    """The table alone decides, whichever door is used."""
    change_id = ask(stocked(), +5)
    decided = {} if before is ChangeState.REQUESTED else {"decided_by": manager(), "decided_at": NOW}
    StockAdjustment.objects.update(state=before, **decided)
    change = StockAdjustment.objects.get()

    def move() -> None:
        if after is ChangeState.APPROVED:
            agree(change_id)
        elif after is ChangeState.REJECTED:
            reject(table=StockAdjustment, change_id=change_id, by=manager(), reason="no", now=NOW)
        else:
            finish(change=change, state=after, outcome="", now=NOW)

    if after in CHANGE_TRANSITIONS[before]:
        move()
        assert StockAdjustment.objects.get().state == after
    else:
        with pytest.raises(AlreadyDecided):
            move()
        assert StockAdjustment.objects.get().state == before


def test_one_of_two_deciders_comes_first() -> None:
    change_id = ask(stocked(), +5)
    people = [manager() for _ in range(6)]

    def decide(who: User) -> bool:
        try:
            agree(change_id, by=who)
        except AlreadyDecided:
            return False
        return True

    assert sorted(run_together(decide, people)) == [False] * 5 + [True]


def test_a_request_nobody_made() -> None:
    for act in (lambda: agree(10**9), lambda: apply(10**9)):
        with pytest.raises(UnknownChange):
            act()
