"""Counts of orders by state, as an operator watches them."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import CharField, Count, F, Func, Q, Value

from orders.models import Order


@dataclass(frozen=True, kw_only=True)
class StateCount:
    """How many orders of one SKU are in one state, among the numbers that begin with ``prefix`` and a dash."""

    prefix: str
    sku_id: int
    state: str
    count: int


def orders_by_state(*, prefixes: Sequence[str]) -> list[StateCount]:
    """Count the orders whose number begins with one of the prefixes and a dash, by the index."""
    which = Q()
    for prefix in prefixes:
        # As a range, which the index can answer; the dot comes right after the dash.
        which |= Q(number__gte=f"{prefix}-", number__lt=f"{prefix}.")
    if not which:
        return []
    first = Func(F("number"), Value("-"), Value(1), function="SUBSTRING_INDEX", output_field=CharField())
    rows = Order.objects.filter(which).annotate(prefix=first).values_list("prefix", "sku_id", "state")
    counted = rows.annotate(count=Count("pk")).order_by()
    return [StateCount(prefix=prefix, sku_id=sku, state=state, count=count) for prefix, sku, state, count in counted]
