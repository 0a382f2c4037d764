"""The life of an order, pair by pair."""

from itertools import product

import pytest

from orders.states import CLOSED, TRANSITIONS, OrderState, is_allowed

PENDING, PAID, CANCELLED, EXPIRED = OrderState
ALLOWED = {(PENDING, PAID), (PENDING, CANCELLED), (PENDING, EXPIRED)}


def test_there_are_four_states() -> None:
    assert [state.value for state in OrderState] == ["PENDING_PAYMENT", "PAID", "CANCELLED", "EXPIRED"]
    assert set(TRANSITIONS) == set(OrderState)


@pytest.mark.parametrize("from_state", OrderState)
def test_an_order_goes_only_where_the_table_says(from_state: OrderState) -> None:
    """Law 3 and CASES 5: what is paid is never cancelled, what is closed is never opened again."""
    allowed = {to_state for to_state in OrderState if is_allowed(from_state, to_state)}
    assert allowed == {to_state for pair, to_state in ALLOWED if pair is from_state}


def test_what_is_closed_gives_units_back_and_leads_nowhere() -> None:
    assert {CANCELLED, EXPIRED} == CLOSED
    assert not any(is_allowed(*pair) for pair in product(CLOSED, OrderState))
