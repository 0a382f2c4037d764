"""Rows inserted at once are what ``bulk_create`` would have written, and are written all or none."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction

from inventory.inserting import insert_rows
from orders.models import Order
from orders.states import OrderState, UnitsTo
from seckill.models import Reservation
from seckill.states import RefusalReason, ReservationState
from tests.support.shop import make_buyers, make_sale

NOON = datetime(2026, 6, 18, 12, 0, 0, 123_456, tzinfo=UTC)


def orders(prefix: str) -> list[Order]:
    """Orders whose fields hold all that a field may: names in any alphabet, cents, no instant, one of another zone."""
    sku, (buyer,) = make_sale().item.sku, make_buyers(1)
    shanghai = NOON.astimezone(timezone(timedelta(hours=8)))
    return [
        Order(number=f"{prefix}1", buyer=buyer, sku=sku, quantity=1, unit_price=Decimal("0.10"), created_at=NOON)
        if n == 0
        else Order(
            number=f"{prefix}票'\"%s\\{n}",
            buyer_id=buyer.pk,
            sku_id=sku.pk,
            quantity=2,
            unit_price=Decimal("9999999999.99"),
            state=OrderState.CANCELLED,
            created_at=shanghai,
            pay_by_at=NOON,
            closed_at=NOON + timedelta(microseconds=1),
            units_to=UnitsTo.WAREHOUSE,
        )
        for n in range(3)
    ]


def with_pay_by(rows: list[Order]) -> list[Order]:
    rows[0].pay_by_at = NOON + timedelta(minutes=15)
    return rows


def stored(prefix: str) -> list[tuple[object, ...]]:
    names = [f.attname for f in Order._meta.concrete_fields if f.attname not in {"id", "number", "buyer_id", "sku_id"}]
    return list(Order.objects.filter(number__startswith=prefix).order_by("pk").values_list(*names))


def test_what_bulk_create_would_have_written() -> None:
    insert_rows(with_pay_by(orders("a")))
    Order.objects.bulk_create(with_pay_by(orders("b")))
    assert stored("a") == stored("b")
    assert [row.number for row in Order.objects.filter(number__startswith="a").order_by("pk")][1] == "a票'\"%s\\1"


def test_a_tombstone_as_well() -> None:
    shop = make_sale()
    fields = {"pool": shop.pool, "bucket_no": 0, "item": shop.item, "buyer_id": 7, "limit_key": "7", "quantity": 1}
    fields |= {"unit_price": Decimal("1.00"), "epoch": 1, "created_at": NOON}
    insert_rows(
        [
            Reservation(
                order_no="x",
                seq=1,
                state=ReservationState.REFUSED,
                reason=RefusalReason.PHANTOM,
                units_owed=1,
                **fields,
            ),
            Reservation(order_no="y", seq=2, state=ReservationState.SETTLED, **fields),
        ]
    )
    rows = Reservation.objects.order_by("seq").values_list("order_no", "state", "reason", "units_owed", "created_at")
    assert list(rows) == [("x", "REFUSED", "phantom", 1, NOON), ("y", "SETTLED", "", 0, NOON)]


def test_nothing_is_a_statement_less() -> None:
    insert_rows([])
    assert not Order.objects.exists()


def test_one_bad_row_and_none_is_written() -> None:
    rows = with_pay_by(orders("a"))
    rows[2].number = rows[1].number
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        insert_rows(rows)
    assert caught.value.args[0] == 1062
    assert not Order.objects.exists()
