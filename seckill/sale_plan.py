"""What an operator plans to sell, before anything of it is written: a sale, its pools, their items."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from seckill.models import FlashSale, SaleItem


@dataclass(frozen=True, kw_only=True)
class PlannedItem:
    """One SKU at a price; ``price_again`` is the price typed a second time, where it was."""

    sku_id: int
    price: Decimal
    units: int
    price_again: Decimal | None = None


@dataclass(frozen=True, kw_only=True)
class PlannedPool:
    """Items that share one limit per buyer."""

    name: str
    limit_per_buyer: int
    items: tuple[PlannedItem, ...]
    bucket_count: int = 1


@dataclass(frozen=True, kw_only=True)
class SalePlan:
    """A sale as it is planned; ``sale_id`` is its own where it is stored already."""

    name: str
    opens_at: datetime
    closes_at: datetime
    pools: tuple[PlannedPool, ...]
    sale_id: int | None = None


def plan_of(*, sale: FlashSale, without: int | None = None) -> SalePlan:
    """The plan of a sale that is stored, but for one item; prices count as typed twice, they were checked then."""
    items: dict[int, list[PlannedItem]] = {}
    for item in (
        SaleItem.objects.filter(pool__sale=sale).exclude(pk__in=[] if without is None else [without]).order_by("pk")
    ):
        planned = PlannedItem(sku_id=item.sku_id, price=item.price, units=item.units, price_again=item.price)
        items.setdefault(item.pool_id, []).append(planned)
    pools = tuple(
        PlannedPool(
            name=pool.name,
            limit_per_buyer=pool.limit_per_buyer,
            items=tuple(items.get(pool.pk, ())),
            bucket_count=pool.bucket_count,
        )
        for pool in sale.pools.order_by("pk")
    )
    return SalePlan(name=sale.name, opens_at=sale.opens_at, closes_at=sale.closes_at, pools=pools, sale_id=sale.pk)
