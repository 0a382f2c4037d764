"""The tables of payments, begun payments, refunds and honours, pair by pair."""

from collections.abc import Mapping
from typing import Any

import pytest

from orders.states import (
    ATTEMPT_TRANSITIONS,
    DEFAULT_UNITS_TO,
    HONOUR_TRANSITIONS,
    PAYMENT_TRANSITIONS,
    REFUND_TRANSITIONS,
    AttemptState,
    HonourState,
    PaymentState,
    RefundedUnitsTo,
    RefundReason,
    RefundState,
    UnitsTo,
    sources_of,
)

TABLES: list[tuple[type[Any], Mapping[Any, frozenset[Any]], set[tuple[str, str]]]] = [
    (
        AttemptState,
        ATTEMPT_TRANSITIONS,
        {("OPEN", "PAID"), ("OPEN", "CLOSED"), ("OPEN", "LOST"), ("CLOSED", "PAID"), ("LOST", "PAID")},
    ),
    (
        PaymentState,
        PAYMENT_TRANSITIONS,
        {
            ("ACCEPTED", "REFUNDED"),
            ("REFUND_DUE", "HONOURING"),
            ("REFUND_DUE", "REFUNDED"),
            ("HONOURING", "ACCEPTED"),
            ("HONOURING", "REFUND_DUE"),
        },
    ),
    (
        RefundState,
        REFUND_TRANSITIONS,
        {
            ("REQUESTED", "SENT"),
            ("REQUESTED", "DONE"),
            ("REQUESTED", "FAILED"),
            ("SENT", "DONE"),
            ("SENT", "FAILED"),
        },
    ),
    (HonourState, HONOUR_TRANSITIONS, {("REQUESTED", "DONE"), ("REQUESTED", "REFUSED")}),
]


@pytest.mark.parametrize(("states", "table", "allowed"), TABLES)
def test_every_pair_is_as_the_table_says(
    states: Any, table: Mapping[Any, frozenset[Any]], allowed: set[tuple[str, str]]
) -> None:
    everything: list[Any] = list(states)
    assert set(table) == set(everything)
    pairs = {(a.value, b.value) for a in everything for b in everything if b in table[a]}
    assert pairs == allowed
    for to_state in everything:
        assert {state.value for state in sources_of(table, to_state)} == {a for a, b in allowed if b == to_state}


def test_every_reason_says_where_the_units_go() -> None:
    assert {reason.value: units.value for reason, units in DEFAULT_UNITS_TO.items()} == {
        "UNWELCOME": "NOWHERE",
        "WITHDRAWN": "ON_SALE",
        "SENT_BACK": "WAREHOUSE",
        "DEFECTIVE": "WRITTEN_OFF",
        "GOODWILL": "NOWHERE",
    }
    assert set(DEFAULT_UNITS_TO) == set(RefundReason)
    assert {units.value for units in RefundedUnitsTo} - {"NOWHERE"} == set(UnitsTo.values)
