"""Builders of single rows, for tests that want no whole shop, and what the database says of bad ones."""

from collections.abc import Callable, Container
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, models, transaction

from inventory.models import Product, Sku
from orders.models import Order
from orders.states import CLOSED, OrderState
from tests.support.shop import make_buyers

NOW = datetime(2026, 6, 18, 10, 0, tzinfo=UTC)

# What a violated CHECK is called: by MySQL, by MariaDB.
CHECK_VIOLATED = frozenset({3819, 4025})
DUPLICATE = 1062
OUT_OF_RANGE = 1264
# Rules that no row breaks without breaking another: which of the two is named first, each database decides for itself.
BROKEN_TOGETHER = {
    "order_state_known": "order_closed_at_when_closed",
    "itemadjustment_state_known": "itemadjustment_open_has_number",
    "reservation_state_known": "reservation_refused_with_reason",
}
NO_PARENT = 1452
UNDERFLOW = 1690

_numbers = count(1)


def make_sku() -> Sku:
    """Make a SKU the warehouse has never had."""
    product = Product.objects.create(name="飞天茅台 53°")
    return Sku.objects.create(product=product, code=f"ROW-{next(_numbers)}", name="500 ml", list_price=Decimal(2999))


def make_order(*, state: OrderState = OrderState.PENDING_PAYMENT, buyer: User | None = None) -> Order:
    """Make an order in any state, whatever led there."""
    return Order.objects.create(
        number=f"order-{next(_numbers)}",
        buyer=buyer or make_buyers(1)[0],
        sku=make_sku(),
        quantity=1,
        unit_price=Decimal("1499.00"),
        state=state,
        created_at=NOW,
        pay_by_at=NOW,
        closed_at=NOW if state in CLOSED else None,
    )


def error_of(action: Callable[[], object]) -> tuple[int, str]:
    """Run what the database must refuse; return the number of its error and what it says."""
    with pytest.raises(DatabaseError) as caught, transaction.atomic():
        action()
    code, message = caught.value.args
    return code, message


def error_code(action: Callable[[], object]) -> int:
    """Run what the database must refuse; return the number of its error."""
    return error_of(action)[0]


def assert_refused(*, table: type[models.Model], change: dict[str, Any], rule: str, codes: Container[int]) -> None:
    """Assert that a table's only row stays as it is, because of a rule or because its column cannot hold such."""
    rows = table._default_manager.all()
    before = rows.values().get()
    code, message = error_of(lambda: rows.update(**change))
    assert code in codes
    assert code not in CHECK_VIOLATED or rule in message or BROKEN_TOGETHER.get(rule, rule) in message
    assert rows.values().get() == before


def check_names(*tables: type[models.Model]) -> set[str]:
    """Names of all CHECK constraints of some tables."""
    return {
        rule.name for table in tables for rule in table._meta.constraints if isinstance(rule, models.CheckConstraint)
    }
