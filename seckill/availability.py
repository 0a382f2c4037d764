"""How much is left, in words coarse enough to be shown to everybody and kept by caches for a second.

Whoever is away or cannot tell makes it ``unknown``, never an error: a shop window must not go dark because the
gate does.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Sum

from orders.unpaid import latest_pay_by
from seckill.errors import GateUnavailable
from seckill.gate.keys import BucketRef
from seckill.gate.shop_window import UnitsShown, units_shown
from seckill.models import Bucket, ItemBucket, SaleItem
from seckill.transfers import items_on_their_way

# Of an item's units, at most this part is "few", and at most that part "last".
FEW_PART = 5
LAST_PART = 20


class Level(StrEnum):
    """How much of an item is left."""

    PLENTY = "plenty"
    FEW = "few"
    LAST = "last"
    NONE_LEFT = "none_left"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Availability:
    """What is left of an item.

    ``unpaid_until`` is set where none is left and some are not paid yet: until then units may come back. Without it,
    "none left" is sold out.
    """

    level: Level
    unpaid_until: datetime | None = None


UNKNOWN = Availability(level=Level.UNKNOWN)


def units_on_sale(*, items: Collection[SaleItem]) -> dict[int, int]:
    """Return what each item on sale has been allocated by now: its planned units, and what was adjusted since."""
    rows = ItemBucket.objects.filter(item__in=items).values_list("item_id").annotate(units=Sum("allocated"))
    return dict(rows.order_by())


def availability_of(
    *, items: Sequence[SaleItem], allocated: Mapping[int, int], now: datetime
) -> dict[int, Availability]:
    """Tell for items on sale, whose pool and sale are loaded, how much is left: one round trip to Redis for all."""
    buckets = _buckets(pool_ids={item.pool_id for item in items})
    try:
        shown = units_shown(buckets=[ref for refs in buckets.values() for ref in refs])
    except GateUnavailable:
        shown = {}
    units = {item.pk: _added_up(item=item, buckets=buckets.get(item.pool_id, []), shown=shown) for item in items}
    taken = [item for item in items if _is_taken(units[item.pk])]
    unpaid = _unpaid_until(items=taken, units=units, now=now)
    moving = items_on_their_way(item_ids=[item.pk for item in taken if len(buckets[item.pool_id]) > 1], now=now)
    return {
        item.pk: Availability(level=Level.LAST)
        if item.pk in moving
        else _availability(
            units=units[item.pk], allocated=allocated.get(item.pk, item.units), unpaid_until=unpaid.get(item.pk)
        )
        for item in items
    }


def _buckets(*, pool_ids: Collection[int]) -> dict[int, list[BucketRef]]:
    found: dict[int, list[BucketRef]] = {}
    for pool_id, number in Bucket.objects.filter(pool_id__in=pool_ids).values_list("pool_id", "number"):
        found.setdefault(pool_id, []).append(BucketRef(pool_id=pool_id, number=number))
    return found


def _added_up(
    *, item: SaleItem, buckets: Sequence[BucketRef], shown: Mapping[BucketRef, Mapping[int, UnitsShown]]
) -> UnitsShown | None:
    """Return the item's units over all buckets of its pool; None when one of them cannot be shown."""
    parts = [shown.get(bucket, {}).get(item.pk) for bucket in buckets]
    known = [part for part in parts if part is not None]
    if not parts or len(known) < len(parts):
        return None
    return UnitsShown(left=sum(part.left for part in known), queued=sum(part.queued for part in known))


def _is_taken(units: UnitsShown | None) -> bool:
    return units is not None and units.left == 0


def _unpaid_until(
    *, items: Sequence[SaleItem], units: Mapping[int, UnitsShown | None], now: datetime
) -> dict[int, datetime]:
    """Until when unpaid orders of taken items may still be paid; what is queued has its whole pay window before it."""
    latest: dict[int, datetime] = {}
    for pool_id in {item.pool_id for item in items}:
        of_pool = {item.sku_id: item.pk for item in items if item.pool_id == pool_id}
        found = latest_pay_by(sku_ids=of_pool, number_prefix=f"{pool_id}-")
        latest |= {of_pool[sku_id]: pay_by for sku_id, pay_by in found.items()}
    for item in items:
        part = units[item.pk]
        if part is not None and part.queued > 0:
            latest[item.pk] = now + timedelta(minutes=item.pool.sale.pay_window_minutes)
    return {item_id: pay_by for item_id, pay_by in latest.items() if pay_by > now}


def _availability(*, units: UnitsShown | None, allocated: int, unpaid_until: datetime | None) -> Availability:
    if units is None:
        return UNKNOWN
    if units.left == 0:
        return Availability(level=Level.NONE_LEFT, unpaid_until=unpaid_until)
    return Availability(level=level_of(left=units.left, units=allocated))


def level_of(*, left: int, units: int) -> Level:
    """Say in a word how many of an item's units are left; the very last one is always ``last``."""
    if left <= 0:
        return Level.NONE_LEFT
    if left == 1 or left * LAST_PART <= units:
        return Level.LAST
    return Level.FEW if left * FEW_PART <= units else Level.PLENTY
