"""The rules of the orders hold in the database itself, whoever writes past the services."""

from typing import Any

import pytest

from orders.models import Order, OrderEvent
from tests.support.rows import (
    CHECK_VIOLATED,
    DUPLICATE,
    NOW,
    OUT_OF_RANGE,
    assert_refused,
    check_names,
    error_code,
    make_order,
)

# rule, what somebody tries to write, how the database says no
BAD_WRITES = [
    ("order_quantity_positive", {"quantity": 0}, CHECK_VIOLATED),
    ("order_quantity_positive", {"quantity": -1}, frozenset({OUT_OF_RANGE})),
    ("order_unit_price_not_negative", {"unit_price": "-0.01"}, CHECK_VIOLATED),
    ("order_state_known", {"state": "LOST"}, CHECK_VIOLATED),
    ("order_state_known", {"state": ""}, CHECK_VIOLATED),
    ("order_units_to_known", {"units_to": "NOWHERE"}, CHECK_VIOLATED),
    ("order_closed_at_when_closed", {"closed_at": NOW}, CHECK_VIOLATED),
    ("order_closed_at_when_closed", {"state": "EXPIRED"}, CHECK_VIOLATED),
    ("order_units_due_when_closed", {"units_due_at": NOW}, CHECK_VIOLATED),
    ("order_units_due_when_closed", {"state": "PAID", "units_due_at": NOW}, CHECK_VIOLATED),
    ("order_payment_begun_while_unpaid", {"state": "PAID", "payment_begun_at": NOW}, CHECK_VIOLATED),
]


@pytest.mark.parametrize(("rule", "change", "codes"), BAD_WRITES)
def test_a_row_that_breaks_a_rule_is_refused(rule: str, change: dict[str, Any], codes: frozenset[int]) -> None:
    make_order()
    assert_refused(table=Order, change=change, rule=rule, codes=codes)


def test_every_rule_has_its_case() -> None:
    assert {case[0] for case in BAD_WRITES} == check_names(Order, OrderEvent)


def test_numbers_stand_once_and_capitals_are_others() -> None:
    """CASES 21: two numbers that differ in anything are two orders."""
    first, second, third = make_order(), make_order(), make_order()
    assert error_code(lambda: Order.objects.filter(pk=second.pk).update(number=first.number)) == DUPLICATE
    Order.objects.filter(pk=third.pk).update(number=first.number.upper())
    assert Order.objects.get(number=first.number).pk == first.pk
    assert Order.objects.get(number=first.number.upper()).pk == third.pk
