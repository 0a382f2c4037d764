"""Reads of the inventory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db.models import F, OuterRef, Q, Subquery, Sum
from django.db.models.functions import Coalesce

from inventory.models import Sku, StockMovement
from inventory.services import WAREHOUSE


@dataclass(frozen=True, kw_only=True)
class StockBooks:
    """A SKU's warehouse stock as it is stored, and as the ledger adds up."""

    sku_id: int
    code: str
    on_hand: int
    ledger: int

    @property
    def difference(self) -> int:
        """Units that are stored and not in the ledger."""
        return self.on_hand - self.ledger


def balance(*, account: str, sku_id: int | None = None) -> int:
    """Units the ledger says an account has (of one SKU, or of all)."""
    rows = StockMovement.objects.filter(account=account)
    if sku_id is not None:
        rows = rows.filter(sku_id=sku_id)
    return rows.aggregate(total=Sum("units"))["total"] or 0


def balances(*, accounts: Sequence[str]) -> dict[str, int]:
    """Units the ledger says each account has; accounts without a row are left out."""
    rows = StockMovement.objects.filter(account__in=accounts).values_list("account")
    return dict(rows.annotate(total=Sum("units")).order_by())


def stock_books(*, sku_ids: Sequence[int]) -> list[StockBooks]:
    """The books of some SKUs, by number; unknown ones are left out."""
    return _books(which=Q(pk__in=sku_ids))


def pages_of_stock_books(*, page_size: int) -> Iterator[list[StockBooks]]:
    """The books of all SKUs, page by page."""
    last = 0
    while page := _books(which=Q(pk__gt=last), count_max=page_size):
        yield page
        last = page[-1].sku_id


def highest_sku_id() -> int:
    """The number of the newest SKU, 0 where there is none."""
    return Sku.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def _books(*, which: Q, count_max: int | None = None) -> list[StockBooks]:
    """Read both numbers by one statement, so that no write comes between them."""
    sums = (
        StockMovement.objects.filter(account=WAREHOUSE, sku_id=OuterRef("pk"))
        .order_by()
        .values("sku_id")
        .annotate(total=Sum("units"))
        .values("total")
    )
    rows = (
        Sku.objects.filter(which)
        .annotate(on_hand=Coalesce(F("stock__on_hand"), 0), ledger=Coalesce(Subquery(sums), 0))
        .order_by("pk")
        .values_list("pk", "code", "on_hand", "ledger")
    )
    return [
        StockBooks(sku_id=pk, code=code, on_hand=on_hand, ledger=ledger)
        for pk, code, on_hand, ledger in rows[:count_max]
    ]
