"""Orders that wait for their payment, as the shop window wants to know of them."""

from collections.abc import Collection
from datetime import datetime

from django.db.models import Max

from orders.models import Order
from orders.states import OrderState


def latest_pay_by(*, sku_ids: Collection[int], number_prefix: str) -> dict[int, datetime]:
    """Until when the last unpaid order of each SKU may still be paid, among the numbers that begin so."""
    rows = Order.objects.filter(
        state=OrderState.PENDING_PAYMENT, sku_id__in=sku_ids, number__startswith=number_prefix
    ).values_list("sku_id")
    return dict(rows.annotate(last=Max("pay_by_at")).order_by())
