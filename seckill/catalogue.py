"""The shop window: sales as everybody may see them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from django.db.models import Q, QuerySet

from inventory.catalogue import SkuView, sku_view
from seckill.availability import Availability, availability_of, units_on_sale
from seckill.errors import UnknownSale
from seckill.models import FlashSale, SaleItem
from seckill.states import SalePhase, SaleState, sale_phase

# Sales of a kind on the front page; nobody reads on.
FRONT_MAX = 24
FRONT_OVER_MAX = 6


class ShownState(StrEnum):
    """Where a sale is, as a buyer wants to know it. Tickets are to be had from ``preheated`` on."""

    SCHEDULED = "scheduled"
    PREHEATED = "preheated"
    LIVE = "live"
    ENDED = "ended"


@dataclass(frozen=True, kw_only=True)
class ItemView:
    """One item as everybody may see it; ``availability`` is None where nothing is on sale."""

    id: int
    pool: int
    sku: SkuView
    price: Decimal
    units: int
    limit_per_buyer: int
    is_paused: bool
    availability: Availability | None


@dataclass(frozen=True, kw_only=True)
class SaleView:
    """One sale as everybody may see it."""

    id: int
    name: str
    rules: str
    state: ShownState
    opens_at: datetime
    closes_at: datetime
    pay_window_minutes: int
    items: tuple[ItemView, ...]


@dataclass(frozen=True, kw_only=True)
class Front:
    """What a visitor sees first: on sale, those that close first; to come, those that open first; over, the last."""

    live: tuple[SaleView, ...]
    coming: tuple[SaleView, ...]
    over: tuple[SaleView, ...]


def front(*, now: datetime) -> Front:
    """Choose what stands on the shop's front page."""
    live = shown_sales(state=ShownState.LIVE, now=now).order_by("closes_at", "pk")[:FRONT_MAX]
    preheated = shown_sales(state=ShownState.PREHEATED, now=now).order_by("opens_at", "pk")[:FRONT_MAX]
    scheduled = shown_sales(state=ShownState.SCHEDULED, now=now).filter(closes_at__gt=now)
    coming = [*preheated, *scheduled.order_by("opens_at", "pk")[:FRONT_MAX]]
    over = shown_sales(state=ShownState.ENDED, now=now).order_by("-closes_at", "-pk")[:FRONT_OVER_MAX]
    views = views_of(sales=[*live, *coming, *over], now=now)
    return Front(
        live=tuple(view for view in views if view.state is ShownState.LIVE),
        coming=tuple(view for view in views if view.state in {ShownState.PREHEATED, ShownState.SCHEDULED}),
        over=tuple(view for view in views if view.state is ShownState.ENDED),
    )


def shown_sales(*, state: ShownState | None, now: datetime) -> QuerySet[FlashSale]:
    """All sales but drafts, or those that are in one state right now."""
    sales = FlashSale.objects.exclude(state=SaleState.DRAFT)
    preheated = Q(state=SaleState.PREHEATED)
    match state:
        case ShownState.SCHEDULED:
            return sales.filter(state=SaleState.SCHEDULED)
        case ShownState.PREHEATED:
            return sales.filter(preheated, opens_at__gt=now)
        case ShownState.LIVE:
            return sales.filter(preheated, opens_at__lte=now, closes_at__gt=now)
        case ShownState.ENDED:
            return sales.filter(
                Q(state__in=[SaleState.ARCHIVING, SaleState.ARCHIVED]) | preheated & Q(closes_at__lte=now)
            )
        case None:
            return sales


def sale_by_id(*, sale_id: int, now: datetime) -> SaleView:
    """One sale. Raises ``UnknownSale`` for a draft, or for none."""
    sale = shown_sales(state=None, now=now).filter(pk=sale_id).first()
    if sale is None:
        raise UnknownSale
    return views_of(sales=[sale], now=now)[0]


def views_of(*, sales: Iterable[FlashSale], now: datetime) -> list[SaleView]:
    """Make the views of some sales with a few looks at MySQL and one at Redis for all of them."""
    sales = list(sales)
    items = list(
        SaleItem.objects.filter(pool__sale__in=sales).select_related("pool__sale", "sku__product").order_by("pk")
    )
    on_sale = [item for item in items if _state(item.pool.sale, now) in {ShownState.PREHEATED, ShownState.LIVE}]
    allocated = units_on_sale(items=on_sale)
    availability = availability_of(items=on_sale, allocated=allocated, now=now) if on_sale else {}
    return [
        _sale_view(sale=sale, items=items, allocated=allocated, availability=availability, now=now) for sale in sales
    ]


def _sale_view(
    *,
    sale: FlashSale,
    items: Iterable[SaleItem],
    allocated: Mapping[int, int],
    availability: Mapping[int, Availability],
    now: datetime,
) -> SaleView:
    return SaleView(
        id=sale.pk,
        name=sale.name,
        rules=sale.rules,
        state=_state(sale, now),
        opens_at=sale.opens_at,
        closes_at=sale.closes_at,
        pay_window_minutes=sale.pay_window_minutes,
        items=tuple(
            ItemView(
                id=item.pk,
                pool=item.pool_id,
                sku=sku_view(item.sku),
                price=item.price,
                units=allocated.get(item.pk, item.units),
                limit_per_buyer=item.pool.limit_per_buyer,
                is_paused=item.is_paused,
                availability=availability.get(item.pk),
            )
            for item in items
            if item.pool.sale_id == sale.pk
        ),
    )


def _state(sale: FlashSale, now: datetime) -> ShownState:
    phase = sale_phase(state=SaleState(sale.state), opens_at=sale.opens_at, closes_at=sale.closes_at, now=now)
    if phase in {SalePhase.ARCHIVING, SalePhase.ARCHIVED}:
        return ShownState.ENDED
    return ShownState(phase.value)
