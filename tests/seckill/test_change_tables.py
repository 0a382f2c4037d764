"""The rules of changes by hand hold in the database itself, whoever writes past the services."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import models
from django.utils import timezone

from seckill.change_tables import ItemAdjustment, WindowChange
from seckill.transfer_tables import Transfer
from tests.support.rows import CHECK_VIOLATED, NOW, assert_refused, check_names
from tests.support.shop import make_buyers, open_sale

F = models.F
TABLES: tuple[type[models.Model], ...] = (ItemAdjustment, Transfer, WindowChange)

COMMON: list[tuple[str, dict[str, Any]]] = [
    ("has_reason", {"reason": ""}),
    ("state_known", {"state": "DONE"}),
    ("decided_by_somebody", {"decided_at": None}),
    ("decided_by_somebody", {"decided_by": None}),
    ("decided_by_somebody", {"state": "REQUESTED"}),
    ("two_people", {"decided_by": F("requested_by")}),
]

# rule, table, what somebody tries to write
BAD_WRITES: list[tuple[str, type[models.Model], dict[str, Any]]] = [
    *[(f"itemadjustment_{rule}", ItemAdjustment, change) for rule, change in COMMON],
    *[(f"windowchange_{rule}", WindowChange, change) for rule, change in COMMON],
    ("itemadjustment_changes_something", ItemAdjustment, {"delta": 0}),
    ("itemadjustment_counterpart_known", ItemAdjustment, {"counterpart": "ELSEWHERE"}),
    ("itemadjustment_open_has_number", ItemAdjustment, {"adj_no": None}),
    ("itemadjustment_open_has_number", ItemAdjustment, {"epoch": None}),
    ("itemadjustment_open_has_number", ItemAdjustment, {"state": "APPLIED"}),
    ("transfer_between_two_buckets", Transfer, {"receiver_no": F("donor_no")}),
    ("transfer_moves_at_most", Transfer, {"units_wanted": 0}),
    ("transfer_moves_at_most", Transfer, {"state": "GIVING", "units_moved": 3}),
    ("transfer_state_has_its_units", Transfer, {"units_moved": 1}),
    ("transfer_state_has_its_units", Transfer, {"state": "GIVING"}),
    ("transfer_state_has_its_units", Transfer, {"state": "LOST"}),
    ("transfer_open_has_its_buckets", Transfer, {"donor_key": None}),
    ("transfer_open_has_its_buckets", Transfer, {"receiver_key": None}),
    ("transfer_open_has_its_buckets", Transfer, {"state": "NOTHING", "finished_at": NOW}),
    ("windowchange_closes_after_opening", WindowChange, {"closes_at": F("opens_at")}),
]


def one_of_each() -> None:
    """One approved change of each kind; the adjustment has its number."""
    shop = open_sale()
    clerk, manager = make_buyers(2)
    approved = {
        "reason": "counted again",
        "state": "APPROVED",
        "requested_by": clerk,
        "requested_at": NOW,
        "decided_by": manager,
        "decided_at": NOW,
    }
    ItemAdjustment.objects.create(item=shop.item, delta=1, adj_no=1, epoch=1, open_key=str(shop.bucket), **approved)
    now = timezone.now()
    Transfer.objects.create(
        item=shop.item,
        pool_id=shop.pool.pk,
        donor_no=0,
        receiver_no=1,
        units_wanted=2,
        donor_adj_no=1,
        receiver_adj_no=1,
        donor_epoch=1,
        donor_key="1:0",
        receiver_key="1:1",
        created_at=NOW,
    )
    WindowChange.objects.create(sale=shop.sale, opens_at=now, closes_at=now + timedelta(hours=1), **approved)


@pytest.mark.parametrize(("rule", "table", "change"), BAD_WRITES)
def test_a_row_that_breaks_a_rule_is_refused(rule: str, table: type[models.Model], change: dict[str, Any]) -> None:
    one_of_each()
    assert_refused(table=table, change=change, rule=rule, codes=CHECK_VIOLATED)


def test_every_rule_has_its_case() -> None:
    assert {case[0] for case in BAD_WRITES} == check_names(*TABLES)
