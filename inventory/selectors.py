"""Reads of the inventory."""

from django.db.models import Sum

from inventory.models import StockMovement


def balance(*, account: str, sku_id: int | None = None) -> int:
    """Units the ledger says an account has (of one SKU, or of all)."""
    rows = StockMovement.objects.filter(account=account)
    if sku_id is not None:
        rows = rows.filter(sku_id=sku_id)
    return rows.aggregate(total=Sum("units"))["total"] or 0
