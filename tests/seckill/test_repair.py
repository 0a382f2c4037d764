"""Repairs: excess at once, a leak only with proof, nothing that was overtaken, and nothing twice."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from seckill import repair
from seckill.errors import GateUnavailable
from seckill.gate import gate
from seckill.gate.connection import raw_client
from seckill.models import Bucket, Incident, ReconciliationRun, Repair
from seckill.rebuild import rebuild_bucket
from seckill.reconciliation import Verdict, reconcile_bucket
from seckill.repair import reconcile_and_repair
from tests.support.shop import Shop, buy, make_ticket, make_tickets, open_sale
from tests.support.state import assert_settled_state, numbers


def run(shop: Shop, *, seconds: float = 0) -> Verdict:
    """Reconcile and repair, with the clock so many seconds ahead."""
    ahead = timedelta(seconds=seconds)

    def clock() -> datetime:
        return timezone.now() + ahead

    return reconcile_and_repair(bucket=shop.bucket, clock=clock).verdict


def tamper(shop: Shop, units: int) -> None:
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", units)


def left(shop: Shop) -> int:
    return numbers(shop).left[shop.item.pk]


def repairs() -> list[tuple[int, str]]:
    return list(Repair.objects.order_by("pk").values_list("delta", "outcome"))


def test_excess_is_lowered_at_once() -> None:
    shop = open_sale(units=10)
    buy(make_ticket(shop))
    tamper(shop, 3)
    assert run(shop) is Verdict.EXCESS
    assert repairs() == [(-3, "DONE")]
    assert run(shop) is Verdict.BALANCED
    assert Incident.objects.get(kind="drift").resolved_at is not None
    assert_settled_state(shop, sold=1)


def test_a_leak_is_raised_after_half_a_minute_of_proof() -> None:
    shop = open_sale(units=10)
    tamper(shop, -4)
    assert run(shop) is Verdict.LEAK
    assert run(shop, seconds=29) is Verdict.LEAK
    assert (left(shop), repairs()) == (6, [])
    assert run(shop, seconds=31) is Verdict.LEAK
    assert (left(shop), repairs()) == (10, [(4, "DONE")])
    assert run(shop, seconds=32) is Verdict.BALANCED


def test_a_leak_is_raised_by_the_least_of_all_that_was_seen() -> None:
    shop = open_sale(units=10)
    tamper(shop, -4)
    run(shop)
    tamper(shop, 3)
    run(shop, seconds=15)
    tamper(shop, -3)
    run(shop, seconds=31)
    assert repairs() == [(1, "DONE")]
    assert left(shop) == 7


def test_a_balanced_run_in_between_takes_the_proof_away() -> None:
    shop = open_sale(units=10)
    tamper(shop, -2)
    run(shop)
    tamper(shop, 2)
    run(shop, seconds=15)
    tamper(shop, -2)
    run(shop, seconds=31)
    assert repairs() == []


def test_another_epoch_proves_nothing() -> None:
    shop = open_sale(units=10)
    tamper(shop, -2)
    run(shop)
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    tamper(shop, -2)
    run(shop, seconds=31)
    assert repairs() == []


def test_what_was_repaired_is_no_proof_for_more() -> None:
    shop = open_sale(units=10)
    tamper(shop, -2)
    run(shop)
    run(shop, seconds=31)
    tamper(shop, -2)
    run(shop, seconds=40)
    assert repairs() == [(2, "DONE")]
    run(shop, seconds=71)
    assert repairs() == [(2, "DONE"), (2, "DONE")]


def test_phantoms_sold_in_between_are_not_taken_away_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The excess was sold between the look and the script: it never falls below zero, MySQL refuses the rest."""
    shop = open_sale(units=2)
    for ticket in make_tickets(shop, 2):
        buy(ticket)
    tamper(shop, 3)
    plan = repair._plan

    def buy_and_plan(**arguments: object) -> list[Repair]:
        buy(make_ticket(shop))
        return plan(**arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(repair, "_plan", buy_and_plan)
    run(shop)
    assert (left(shop), repairs()) == (0, [(-2, "DONE")])
    assert run(shop) is Verdict.BALANCED
    assert_settled_state(shop, sold=2)


def test_an_item_of_which_nothing_is_left_does_not_stop_the_repair_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have too many; the second is sold out before the script comes. Lua's -0 is no number to Redis."""
    shop = open_sale(units=2, items=2, limit=3)
    first, second = (item.pk for item in shop.items)
    for item in (first, second):
        raw_client().hincrby(shop.bucket.keys[0], f"{item}:left", 1)
    plan = repair._plan

    def buy_and_plan(**arguments: object) -> list[Repair]:
        (ticket,) = make_tickets(shop, 1, item=shop.items[1])
        buy(ticket, 3)
        return plan(**arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(repair, "_plan", buy_and_plan)
    run(shop)
    assert repairs() == [(-1, "DONE"), (-1, "OVERTAKEN")]
    assert numbers(shop).left == {first: 2, second: 0}


@pytest.mark.parametrize("what", ["another repair", "a rebuild", "an outage"])
def test_a_repair_that_was_overtaken_changes_nothing(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(units=10)
    tamper(shop, 3)
    plan = repair._plan

    def overtake(**arguments: object) -> list[Repair]:
        rows = plan(**arguments)  # type: ignore[arg-type]
        monkeypatch.setattr(repair, "_plan", plan)
        if what == "another repair":
            run(shop)
        elif what == "a rebuild":
            rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
        return rows

    def away(**_: object) -> None:
        raise GateUnavailable

    monkeypatch.setattr(repair, "_plan", overtake)
    if what == "an outage":
        monkeypatch.setattr(gate, "repair", away)
    run(shop)
    monkeypatch.undo()
    run(shop)
    assert run(shop) is Verdict.BALANCED
    assert repairs()[0] == (-3, "OVERTAKEN")
    assert left(shop) == 10


def test_a_repair_planned_by_a_process_that_died_is_overtaken() -> None:
    shop = open_sale(units=10)
    tamper(shop, 3)
    report = reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    repair._plan(report=report, deltas={shop.item.pk: -3}, now=timezone.now())
    assert run(shop) is Verdict.EXCESS
    assert repairs() == [(-3, "OVERTAKEN"), (-3, "DONE")]
    assert Bucket.objects.get().repair_no == numbers(shop).repair_no == 1


def test_a_repair_whose_answer_was_lost_is_found_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law 5 for repairs: no answer is not a failure; the number in Redis tells at the next occasion."""
    shop = open_sale(units=10)
    tamper(shop, 3)
    made = gate.repair

    def make_and_lose(**arguments: object) -> None:
        made(**arguments)  # type: ignore[arg-type]
        raise GateUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(gate, "repair", make_and_lose)
        run(shop)
    assert repairs() == [(-3, "PLANNED")]
    tamper(shop, 1)
    run(shop)
    assert repairs() == [(-3, "DONE"), (-1, "DONE")]


def test_a_frozen_bucket_is_not_repaired() -> None:
    shop = open_sale(units=10)
    tamper(shop, 3)
    raw_client().hset(shop.bucket.keys[1], "frozen", "token")
    assert run(shop) is Verdict.UNAVAILABLE
    assert (repairs(), left(shop)) == ([], 13)
    assert ReconciliationRun.objects.get().verdict == "UNAVAILABLE"
    assert not Incident.objects.exists()
