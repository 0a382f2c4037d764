"""The rules of the flash sales hold in the database itself, whoever writes past the services."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import models

from seckill.alert_tables import Alert, AlertDelivery
from seckill.attempt_tables import SettleAttempt
from seckill.incidents import Severity, open_incident
from seckill.models import (
    Bucket,
    DeadLetter,
    FlashSale,
    Incident,
    ItemBucket,
    RebuildRun,
    ReconciliationRun,
    Repair,
    Reservation,
    SaleItem,
    SalePool,
    Ticket,
)
from tests.support.rows import (
    CHECK_VIOLATED,
    DUPLICATE,
    NOW,
    OUT_OF_RANGE,
    UNDERFLOW,
    assert_refused,
    check_names,
    error_code,
)
from tests.support.shop import Shop, make_buyers, open_sale, ticket_of

TABLES = (
    Alert,
    AlertDelivery,
    Bucket,
    DeadLetter,
    FlashSale,
    Incident,
    ItemBucket,
    RebuildRun,
    ReconciliationRun,
    Repair,
    Reservation,
    SaleItem,
    SalePool,
    SettleAttempt,
    Ticket,
)

F = models.F

# rule, table, what somebody tries to write, how the database says no
BAD_WRITES: list[tuple[str, type[models.Model], dict[str, Any], frozenset[int]]] = [
    ("sale_closes_after_opening", FlashSale, {"opens_at": NOW, "closes_at": NOW - timedelta(days=1)}, CHECK_VIOLATED),
    ("sale_closes_after_opening", FlashSale, {"closes_at": F("opens_at")}, CHECK_VIOLATED),
    ("sale_pay_window_positive", FlashSale, {"pay_window_minutes": 0}, CHECK_VIOLATED),
    ("sale_state_known", FlashSale, {"state": "LIVE"}, CHECK_VIOLATED),
    ("sale_state_known", FlashSale, {"state": ""}, CHECK_VIOLATED),
    ("pool_limit_positive", SalePool, {"limit_per_buyer": 0}, CHECK_VIOLATED),
    ("pool_max_queue_positive", SalePool, {"max_queue": 0}, CHECK_VIOLATED),
    ("pool_buckets_bounded", SalePool, {"bucket_count": 0}, CHECK_VIOLATED),
    ("pool_buckets_bounded", SalePool, {"bucket_count": 65}, CHECK_VIOLATED),
    ("item_units_positive", SaleItem, {"units": 0}, CHECK_VIOLATED),
    ("item_units_positive", SaleItem, {"units": -1}, frozenset({OUT_OF_RANGE})),
    ("item_price_not_negative", SaleItem, {"price": "-0.01"}, CHECK_VIOLATED),
    ("item_bucket_never_oversold", ItemBucket, {"sold": 11}, CHECK_VIOLATED),
    ("item_bucket_never_oversold", ItemBucket, {"sold": F("allocated") + 1}, CHECK_VIOLATED),
    ("item_bucket_never_oversold", ItemBucket, {"allocated": 3}, CHECK_VIOLATED),
    ("item_bucket_never_oversold", ItemBucket, {"sold": -1}, frozenset({OUT_OF_RANGE})),
    ("item_bucket_never_oversold", ItemBucket, {"sold": F("sold") - 5}, frozenset({UNDERFLOW})),
    ("item_bucket_never_oversold", ItemBucket, {"allocated": F("allocated") - 11}, frozenset({UNDERFLOW})),
    ("reservation_quantity_positive", Reservation, {"quantity": 0, "units_owed": 0}, CHECK_VIOLATED),
    ("reservation_owes_at_most_quantity", Reservation, {"units_owed": 4}, CHECK_VIOLATED),
    ("reservation_owes_at_most_quantity", Reservation, {"units_owed": -1}, frozenset({OUT_OF_RANGE})),
    ("reservation_state_known", Reservation, {"state": "QUEUED", "reason": "", "units_owed": 0}, CHECK_VIOLATED),
    ("reservation_refused_with_reason", Reservation, {"reason": ""}, CHECK_VIOLATED),
    ("reservation_refused_with_reason", Reservation, {"state": "SETTLED"}, CHECK_VIOLATED),
    ("reservation_refused_with_reason", Reservation, {"state": "RETURNED"}, CHECK_VIOLATED),
    ("repair_changes_something", Repair, {"delta": 0}, CHECK_VIOLATED),
    ("dead_letter_concluded_after_decision", DeadLetter, {"decision": "REPLAY"}, CHECK_VIOLATED),
    ("dead_letter_concluded_after_decision", DeadLetter, {"decided_at": NOW}, CHECK_VIOLATED),
    ("dead_letter_concluded_after_decision", DeadLetter, {"concluded_at": NOW}, CHECK_VIOLATED),
    ("rebuild_finished_with_its_time", RebuildRun, {"outcome": "DONE"}, CHECK_VIOLATED),
    ("rebuild_finished_with_its_time", RebuildRun, {"finished_at": NOW}, CHECK_VIOLATED),
    ("rebuild_finished_with_its_time", RebuildRun, {"outcome": "LOST"}, CHECK_VIOLATED),
    ("settle_attempt_size_positive", SettleAttempt, {"size_max": 0}, CHECK_VIOLATED),
    ("alert_event_known", Alert, {"event": "SHOUTED"}, CHECK_VIOLATED),
    ("alert_delivery_sent_with_its_time", AlertDelivery, {"state": "SENT"}, CHECK_VIOLATED),
    ("alert_delivery_sent_with_its_time", AlertDelivery, {"sent_at": NOW}, CHECK_VIOLATED),
    ("alert_delivery_sent_with_its_time", AlertDelivery, {"state": "LOST"}, CHECK_VIOLATED),
]


def one_of_each() -> Shop:
    """A sale of ten units, four of them sold, a refusal that owes its three units, an alert on its way, a repair."""
    shop = open_sale(units=10, limit=3)
    ItemBucket.objects.update(sold=4)
    make_refusal(shop, order_no=f"{shop.bucket.pool_id}-0-aaaaaaaaaaaaaaaa", seq=1)
    open_incident(kind="drift", severity=Severity.WARNING, bucket=shop.bucket, detail="1", now=NOW)
    AlertDelivery.objects.create(alert=Alert.objects.get(), channel="mail", due_at=NOW)
    Repair.objects.create(pool=shop.pool, bucket_no=0, item=shop.item, epoch=1, repair_no=1, delta=-1, created_at=NOW)
    DeadLetter.objects.create(
        pool=shop.pool, bucket_no=0, epoch=1, stream_id="1-1", fields={}, error="x", created_at=NOW
    )
    RebuildRun.objects.create(pool=shop.pool, bucket_no=0, is_automatic=True, created_at=NOW)
    SettleAttempt.objects.create(pool=shop.pool, bucket_no=0, size_max=500, started_at=NOW)
    return shop


def make_refusal(shop: Shop, *, order_no: str, seq: int) -> Reservation:
    return Reservation.objects.create(
        order_no=order_no,
        pool_id=shop.pool.pk,
        bucket_no=0,
        item_id=shop.item.pk,
        buyer_id=1,
        limit_key="1",
        quantity=3,
        unit_price=shop.item.price,
        epoch=1,
        seq=seq,
        state="REFUSED",
        reason="limit_reached",
        units_owed=3,
        created_at=NOW,
    )


@pytest.mark.parametrize(("rule", "table", "change", "codes"), BAD_WRITES)
def test_a_row_that_breaks_a_rule_is_refused(
    rule: str, table: type[models.Model], change: dict[str, Any], codes: frozenset[int]
) -> None:
    """Laws 1 and 3, and whatever else is never true: the table says no, and the row stays as it was."""
    one_of_each()
    assert_refused(table=table, change=change, rule=rule, codes=codes)


def test_every_rule_has_its_case() -> None:
    assert {case[0] for case in BAD_WRITES} == check_names(*TABLES)


def test_what_stands_once_cannot_stand_twice() -> None:
    """One fate per order number and per sequence number, one bucket per number, one row of units per item."""
    shop = one_of_each()
    fate, bucket = Reservation.objects.get(), Bucket.objects.get()
    assert error_code(lambda: make_refusal(shop, order_no=fate.order_no, seq=2)) == DUPLICATE
    assert error_code(lambda: make_refusal(shop, order_no=fate.order_no.replace("a", "b"), seq=1)) == DUPLICATE
    assert error_code(lambda: Bucket.objects.create(pool=shop.pool, number=bucket.number)) == DUPLICATE
    assert error_code(lambda: ItemBucket.objects.create(bucket=bucket, item=shop.item, allocated=1)) == DUPLICATE
    again = {"pool": shop.pool, "sku": shop.item.sku, "price": 1, "units": 1}
    assert error_code(lambda: SaleItem.objects.create(**again)) == DUPLICATE
    assert [t.objects.count() for t in (Reservation, Bucket, ItemBucket, SaleItem)] == [1, 1, 1, 1]


def test_a_ticket_has_a_number_of_its_own() -> None:
    shop = one_of_each()
    first, second = make_buyers(2)
    ticket_of(shop, first, order_no="1-0-aaaaaaaaaaaaaaaa")
    assert error_code(lambda: ticket_of(shop, second, order_no="1-0-aaaaaaaaaaaaaaaa")) == DUPLICATE
    assert Ticket.objects.get().buyer_id == first.pk
