"""The live picture of a sale: what an operator watches while it runs, from few keys and few rows.

The stock Redis is asked once for all buckets of the sale, the tallies once, and MySQL by a dozen statements that use
indexes and read no buyer. Nothing is locked, so the numbers are milliseconds apart: for watching. What is exact is said
by the last reconciliation.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Max, Q, Sum

from seckill.errors import GateUnavailable
from seckill.gate.keys import BucketRef
from seckill.gate.pulse import Pulse, pulses
from seckill.latest_runs import latest_runs
from seckill.models import FlashSale, Incident, ItemBucket, ReconciliationRun, SaleItem
from seckill.order_counts import order_counts
from seckill.sample_tables import ItemSample
from seckill.sampling import Part, Seen, look, parts_of
from seckill.states import SalePhase, SaleState, sale_phase

# Rates are over so long: shorter jumps, longer lags behind.
RATE_SECONDS_MIN, RATE_SECONDS_MAX = 3.0, 5.0
RATE_LOOKS_BACK = timedelta(seconds=60)
SALES_SHOWN_MAX = 50
INCIDENTS_SHOWN_MAX = 20
WATCHED = (SaleState.SCHEDULED, SaleState.PREHEATED, SaleState.ARCHIVING)


@dataclass(frozen=True, kw_only=True)
class SaleInBrief:
    """A sale on the list; units are None before its preheat, ``left`` also where Redis cannot tell."""

    id: int
    name: str
    phase: SalePhase
    opens_at: datetime
    closes_at: datetime
    allocated: int | None
    sold: int | None
    left: int | None
    incidents: int


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Answers per second over the last few; None where nobody has counted."""

    accepted: float | None = None
    sold_out: float | None = None
    refused: float | None = None


@dataclass(frozen=True, kw_only=True)
class ItemPicture:
    """One item: its units in both stores, what buyers are answered, and its orders."""

    id: int
    pool_id: int
    sku_id: int
    name: str
    price: Decimal
    is_paused: bool
    allocated: int
    seen: Seen
    rates: Rates
    orders: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Check:
    """The last reconciliation of a bucket."""

    verdict: str
    drift: int
    at: datetime


@dataclass(frozen=True, kw_only=True)
class BucketPicture:
    """One bucket: its queue, its gate and its last reconciliation. Without ``pulse`` Redis does not show it."""

    bucket: BucketRef
    pool_name: str
    pulse: Pulse | None
    check: Check | None


@dataclass(frozen=True, kw_only=True)
class Picture:
    """All of a sale at about one instant. ``sampled_at`` is when somebody last looked for the charts."""

    sale: FlashSale
    phase: SalePhase
    at: datetime
    items: tuple[ItemPicture, ...]
    buckets: tuple[BucketPicture, ...]
    incidents: tuple[Incident, ...]
    orders_counted_at: datetime | None
    sampled_at: datetime | None


def sales_to_watch(*, now: datetime) -> list[SaleInBrief]:
    """Sales that are on, come next or are being archived, the earliest opening first; a bounded number."""
    sales = list(FlashSale.objects.filter(state__in=WATCHED).order_by("opens_at", "pk")[:SALES_SHOWN_MAX])
    sums = ItemBucket.objects.filter(item__pool__sale__in=sales).values_list("item__pool__sale_id")
    units = {
        sale: (allocated, sold) for sale, allocated, sold in sums.annotate(Sum("allocated"), Sum("sold")).order_by()
    }
    left = _left_by_sale(sales)
    open_ones = Incident.objects.filter(open_key__isnull=False, pool__sale__in=sales).values_list(
        "pool__sale_id", flat=True
    )
    incidents = list(open_ones)
    return [
        SaleInBrief(
            id=sale.pk,
            name=sale.name,
            phase=_phase(sale, now),
            opens_at=sale.opens_at,
            closes_at=sale.closes_at,
            allocated=units.get(sale.pk, (None, None))[0],
            sold=units.get(sale.pk, (None, None))[1],
            left=left.get(sale.pk),
            incidents=incidents.count(sale.pk),
        )
        for sale in sales
    ]


def picture_of(*, sale_id: int, clock: Callable[[], datetime]) -> Picture:
    """Look at a sale. Raises ``FlashSale.DoesNotExist``."""
    sale, now = FlashSale.objects.get(pk=sale_id), clock()
    items = list(SaleItem.objects.filter(pool__sale=sale).select_related("sku__product", "pool").order_by("pk"))
    parts = parts_of(item__pool__sale=sale)
    seen, felt = look(parts=parts)
    counts = order_counts(sale_id=sale.pk, items={(i.pool_id, i.sku_id): i.pk for i in items}, clock=clock)
    rates, sampled_at = _rates(seen=seen, now=now)
    return Picture(
        sale=sale,
        phase=_phase(sale, now),
        at=now,
        items=tuple(
            _item(item=item, parts=parts, seen=seen[item.pk], rates=rates, orders=counts.of_item.get(item.pk, {}))
            for item in items
            if item.pk in seen
        ),
        buckets=_buckets(items=items, parts=parts, felt=felt),
        incidents=_incidents(sale),
        orders_counted_at=counts.counted_at,
        sampled_at=sampled_at,
    )


def _phase(sale: FlashSale, now: datetime) -> SalePhase:
    return sale_phase(state=SaleState(sale.state), opens_at=sale.opens_at, closes_at=sale.closes_at, now=now)


def _left_by_sale(sales: Sequence[FlashSale]) -> dict[int, int]:
    """Units left in Redis, of sales whose buckets can all be shown."""
    rows = ItemBucket.objects.filter(item__pool__sale__in=[s for s in sales if s.state == SaleState.PREHEATED])
    names = ("item__pool__sale_id", "bucket__pool_id", "bucket__number")
    buckets = {
        BucketRef(pool_id=pool_id, number=number): sale_id
        for sale_id, pool_id, number in rows.values_list(*names).distinct().order_by()
    }
    try:
        felt = pulses(buckets=list(buckets))
    except GateUnavailable:
        return {}
    left: dict[int, int] = {}
    for bucket, sale_id in buckets.items():
        if bucket in felt:
            left[sale_id] = left.get(sale_id, 0) + sum(units.left for units in felt[bucket].units.values())
    dark = {sale_id for bucket, sale_id in buckets.items() if bucket not in felt}
    return {sale_id: units for sale_id, units in left.items() if sale_id not in dark}


def _item(
    *, item: SaleItem, parts: Sequence[Part], seen: Seen, rates: Mapping[int, Rates], orders: Mapping[str, int]
) -> ItemPicture:
    return ItemPicture(
        id=item.pk,
        pool_id=item.pool_id,
        sku_id=item.sku_id,
        name=f"{item.sku.product.name} · {item.sku.name}",
        price=item.price,
        is_paused=item.is_paused,
        allocated=sum(part.allocated for part in parts if part.item_id == item.pk),
        seen=seen,
        rates=rates.get(item.pk, Rates()),
        orders=orders,
    )


def _buckets(
    *, items: Sequence[SaleItem], parts: Sequence[Part], felt: Mapping[BucketRef, Pulse]
) -> tuple[BucketPicture, ...]:
    names = {item.pool_id: str(item.pool) for item in items}
    buckets = sorted({part.bucket for part in parts}, key=lambda bucket: (bucket.pool_id, bucket.number))
    runs = latest_runs(pool_ids=list(names))
    return tuple(
        BucketPicture(bucket=b, pool_name=names[b.pool_id], pulse=felt.get(b), check=_check(runs.get(b)))
        for b in buckets
    )


def _check(run: ReconciliationRun | None) -> Check | None:
    return None if run is None else Check(verdict=run.verdict, drift=run.drift, at=run.created_at)


def _incidents(sale: FlashSale) -> tuple[Incident, ...]:
    rows = Incident.objects.filter(open_key__isnull=False, pool__sale=sale).order_by("-last_seen_at")
    return tuple(rows[:INCIDENTS_SHOWN_MAX])


def _rates(*, seen: Mapping[int, Seen], now: datetime) -> tuple[dict[int, Rates], datetime | None]:
    """Rates since the newest sample that is some seconds old; also when the newest of all was taken.

    An item that has no newer sample has not changed since: what came now came within the last seconds.
    """
    recent = ItemSample.objects.filter(item_id__in=list(seen), at__gte=now - RATE_LOOKS_BACK, at__lte=now)
    bound = now - timedelta(seconds=RATE_SECONDS_MIN)
    ends = recent.order_by().values_list("item_id").annotate(newest=Max("at"), base=Max("pk", filter=Q(at__lte=bound)))
    found = list(ends)
    bases = {row.pk: row for row in ItemSample.objects.filter(pk__in=[base for *_, base in found if base is not None])}
    rates = {
        item_id: _rate(seen=seen[item_id], base=bases[base], now=now) for item_id, _, base in found if base is not None
    }
    return rates, max((newest for _, newest, _ in found), default=None)


def _rate(*, seen: Seen, base: ItemSample, now: datetime) -> Rates:
    seconds = min(max((now - base.at).total_seconds(), RATE_SECONDS_MIN), RATE_SECONDS_MAX)

    def per_second(total: int | None, before: int) -> float | None:
        return None if total is None else round(max(0, total - before) / seconds, 1)

    return Rates(
        accepted=per_second(seen.accepted, base.accepted),
        sold_out=per_second(seen.sold_out, base.sold_out),
        refused=per_second(seen.refused, base.refused),
    )
