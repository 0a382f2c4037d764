"""The rules of the inventory hold in the database itself, whoever writes past the services."""

from typing import Any

import pytest
from django.db import models

from inventory.models import Product, Sku, Stock, StockAdjustment, StockMovement
from inventory.services import receive
from tests.support.rows import (
    CHECK_VIOLATED,
    DUPLICATE,
    NOW,
    OUT_OF_RANGE,
    UNDERFLOW,
    assert_refused,
    check_names,
    error_code,
    make_sku,
)
from tests.support.shop import make_buyers

F = models.F

TABLES = (Product, Sku, Stock, StockAdjustment, StockMovement)

# rule, table, what somebody tries to write, how the database says no
BAD_WRITES = [
    ("sku_list_price_not_negative", Sku, {"list_price": "-0.01"}, CHECK_VIOLATED),
    ("stock_on_hand_not_negative", Stock, {"on_hand": -1}, frozenset({OUT_OF_RANGE})),
    ("movement_units_not_zero", StockMovement, {"units": 0}, CHECK_VIOLATED),
    ("stockadjustment_changes_something", StockAdjustment, {"delta": 0}, CHECK_VIOLATED),
    ("stockadjustment_has_reason", StockAdjustment, {"reason": ""}, CHECK_VIOLATED),
    ("stockadjustment_state_known", StockAdjustment, {"state": "DONE"}, CHECK_VIOLATED),
    ("stockadjustment_decided_by_somebody", StockAdjustment, {"decided_at": None}, CHECK_VIOLATED),
    ("stockadjustment_decided_by_somebody", StockAdjustment, {"decided_by": None}, CHECK_VIOLATED),
    ("stockadjustment_decided_by_somebody", StockAdjustment, {"state": "REQUESTED"}, CHECK_VIOLATED),
    ("stockadjustment_two_people", StockAdjustment, {"decided_by": F("requested_by")}, CHECK_VIOLATED),
]


def one_of_each() -> Sku:
    """A SKU with three units, so that each table has one row, and an approved request for more."""
    sku = make_sku()
    receive(sku_id=sku.pk, units=3, reference="delivery 1", now=NOW)
    clerk, manager = make_buyers(2)
    StockAdjustment.objects.create(
        sku=sku,
        delta=1,
        reason="counted again",
        state="APPROVED",
        requested_by=clerk,
        requested_at=NOW,
        decided_by=manager,
        decided_at=NOW,
    )
    return sku


@pytest.mark.parametrize(("rule", "table", "change", "codes"), BAD_WRITES, ids=[case[0] for case in BAD_WRITES])
def test_a_row_that_breaks_a_rule_is_refused(
    rule: str, table: type[models.Model], change: dict[str, Any], codes: frozenset[int]
) -> None:
    one_of_each()
    assert_refused(table=table, change=change, rule=rule, codes=codes)


def test_every_rule_has_its_case() -> None:
    assert {case[0] for case in BAD_WRITES} == check_names(*TABLES)


def test_the_warehouse_cannot_be_counted_below_nothing() -> None:
    """CASES 33: an underflow is an error of its own, not a duplicate."""
    one_of_each()
    assert error_code(lambda: Stock.objects.update(on_hand=models.F("on_hand") - 4)) == UNDERFLOW
    assert Stock.objects.get().on_hand == 3


def test_a_reference_and_a_code_stand_once() -> None:
    sku = one_of_each()
    again = StockMovement(sku=sku, account="a", kind="RECEIPT", units=1, reference="delivery 1", created_at=NOW)
    assert error_code(again.save) == DUPLICATE
    assert error_code(lambda: Sku.objects.create(product=sku.product, code=sku.code, list_price=1)) == DUPLICATE
    assert StockMovement.objects.count() == Sku.objects.count() == 1
