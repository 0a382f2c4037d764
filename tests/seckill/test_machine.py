"""The machine of random operations and faults on the real stores, and three planted faults that it must find."""

import os
from typing import Any

import pytest
from django.db import DatabaseError
from hypothesis import Phase

from orders.models import Payment
from orders.services import honours
from orders.services.moves import move_locked
from orders.states import OrderState
from seckill import decisions, reconciliation
from seckill.gate.entries import QueueEntry
from seckill.states import RefusalReason
from tests.support.machine import only, run
from tests.support.machine_money import MoneyMachine

EXAMPLES = 200
# A control plants one fault, and needs no other rules than those that meet it.
EXAMPLES_OF_CONTROLS = 400


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_a_machine_of_operations_and_faults() -> None:
    """At least 200 runs; ``SOAK_EXAMPLES`` makes them more, see ``make soak``."""
    examples = int(os.environ.get("SOAK_EXAMPLES", EXAMPLES))
    run(MoneyMachine, examples=examples, phases=(Phase.generate, Phase.shrink))


@pytest.mark.slow
def test_control_a_second_fate_for_a_known_number_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's control: settlement that refuses what it has settled, when it sees it again."""

    def another_fate(*, entry: QueueEntry, fate: object) -> decisions.Decision:
        del fate
        return decisions._refused(entry=entry, reason=RefusalReason.PHANTOM, units_owed=entry.quantity)

    monkeypatch.setattr(decisions, "_repeat", another_fate)
    with pytest.raises((AssertionError, DatabaseError)):
        run(only(MoneyMachine, "buy", "settle"), examples=EXAMPLES_OF_CONTROLS, phases=(Phase.generate,))


@pytest.mark.slow
def test_control_reconciliation_that_knows_of_no_adjustments_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of an adjustment looks like drift then, and is repaired as if it was."""
    monkeypatch.setattr(reconciliation, "units_under_way", lambda **_: {})
    with pytest.raises(AssertionError):
        run(
            only(MoneyMachine, "ask_for_an_adjustment", "adjust", "reconcile"),
            examples=EXAMPLES_OF_CONTROLS,
            phases=(Phase.generate,),
        )


@pytest.mark.slow
def test_control_an_honour_that_leaves_the_money_where_it_was_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The new order is paid then, and the refund of the same money may be due again."""

    def pay_without_money(*, order: Any, payment: Payment, **arguments: Any) -> None:
        Payment.objects.filter(pk=payment.pk).update(state="REFUND_DUE")
        move_locked(order=order, to_state=OrderState.PAID, now=arguments["now"], reason="honoured")

    monkeypatch.setattr(honours, "_pay", pay_without_money)
    with pytest.raises(AssertionError):
        run(
            only(MoneyMachine, "pay_unheard", "wish", "honour", "refund"),
            examples=EXAMPLES_OF_CONTROLS,
            phases=(Phase.generate,),
        )
