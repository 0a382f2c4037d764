"""Mistakes in the plan of a sale, found before it is written, in words that say what to type instead.

An error stops the plan. A price that looks like a slip of the hand must be typed twice. A warning stops nothing.

# Note [Suspicious prices]
A price is suspicious below half of the SKU's list price, and where its part of the list price is over twice, or less
than half, of what is usual among the other sizes and colours of its product in the same sale (the middle one of their
parts of the list price; both neighbours of the middle where their number is even).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import Enum
from statistics import median

from django.db.models import F
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _

from inventory.models import UNITS_MAX, Sku
from seckill.conf import LIMITS
from seckill.models import SaleItem, SalePool
from seckill.sale_plan import PlannedItem, PlannedPool, SalePlan, plan_of
from seckill.states import SaleState

SUSPICIOUS_PART = Decimal("0.5")
SIBLING_FACTOR_MAX = 2
# As the column has it: ten digits before the point.
PRICE_LIMIT = Decimal(10000000000)
PLANNED = frozenset({SaleState.DRAFT, SaleState.SCHEDULED})
NOT_OVER = PLANNED | {SaleState.PREHEATED}


class Weight(Enum):
    """What a finding does to a plan."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong or odd; ``pool`` and ``item`` count from 0, ``field`` names the input."""

    weight: Weight
    code: str
    words: str
    field: str = ""
    pool: int | None = None
    item: int | None = None


@dataclass(frozen=True, kw_only=True)
class SkuFacts:
    """What a check needs to know of a SKU."""

    code: str
    product_id: int
    list_price: Decimal
    on_hand: int


@dataclass(frozen=True, kw_only=True)
class _Place:
    """An item with where it stands in the plan."""

    pool: int
    number: int
    item: PlannedItem


def check_plan(*, plan: SalePlan, now: datetime) -> list[Finding]:
    """Find what is wrong or odd in a plan, errors first. Three queries, however many items."""
    places = [
        _Place(pool=pool_no, number=number, item=item)
        for pool_no, pool in enumerate(plan.pools)
        for number, item in enumerate(pool.items)
    ]
    facts = sku_facts({place.item.sku_id for place in places})
    findings = [
        *check_window(opens_at=plan.opens_at, closes_at=plan.closes_at, now=now),
        *_emptiness(plan=plan),
        *(finding for number, pool in enumerate(plan.pools) for finding in _pool(number=number, pool=pool)),
        *(finding for place in places for finding in _item(place=place, facts=facts)),
        *_units(places=places, facts=facts, plan=plan),
        *_prices(places=places, facts=facts),
        *_overlaps(plan=plan, places=places, facts=facts),
    ]
    return sorted(findings, key=lambda finding: finding.weight is not Weight.ERROR)


def check_window(*, opens_at: datetime, closes_at: datetime, now: datetime) -> list[Finding]:
    """Find what is wrong or odd in a window, of a sale that is planned or of one that is on."""
    if closes_at <= opens_at:
        words = _("The sale closes before it opens. Choose a later end.")
        return [_error("closes_first", words, field="closes_at")]
    if closes_at <= now:
        words = _("The whole window is in the past. Choose an end that is still to come.")
        return [_error("window_over", words, field="closes_at")]
    if opens_at <= now:
        words = _("The opening is in the past: the sale is open as soon as it is preheated.")
        return [_warning("opens_at_once", words, field="opens_at")]
    return []


def check_limit(*, limit: int, units: int) -> list[Finding]:
    """Find what is wrong or odd in a pool's limit per buyer, beside all its units."""
    if limit < 1:
        return [_error("limit_too_small", _("A buyer must be allowed at least 1 unit."), field="limit_per_buyer")]
    if limit > LIMITS.quantity_max:
        words = _("A limit of {limit} is no limit: one purchase takes {most} units at most. Choose {most} or fewer.")
        words = words.format(limit=limit, most=LIMITS.quantity_max)
        return [_error("limit_too_big", words, field="limit_per_buyer")]
    if 1 < units <= limit:
        words = _("One buyer may take all {units} units of this pool: the limit is {limit}.")
        words = words.format(units=units, limit=limit)
        return [_warning("limit_takes_all", words, field="limit_per_buyer")]
    return []


def check_added(
    *, pool: SalePool, items: Sequence[PlannedItem], now: datetime, without: int | None = None
) -> list[Finding]:
    """Find what is wrong or odd in items that are to join a stored pool, in place of one of its items or of none.

    They come last in the plan, so that what is short in the warehouse is found at them, not at what was there.
    """
    stored = plan_of(sale=pool.sale, without=without)
    added = PlannedPool(name=pool.name, limit_per_buyer=pool.limit_per_buyer, items=tuple(items))
    found = check_plan(plan=replace(stored, pools=(*stored.pools, added)), now=now)
    return [finding for finding in found if finding.pool == len(stored.pools) and finding.item is not None]


def is_sound(findings: list[Finding]) -> bool:
    """Tell whether nothing among the findings stops the plan."""
    return all(finding.weight is Weight.WARNING for finding in findings)


def sku_facts(sku_ids: set[int]) -> Mapping[int, SkuFacts]:
    """Read the facts of some SKUs; unknown ones are left out."""
    rows = Sku.objects.filter(pk__in=sku_ids).annotate(on_hand=Coalesce(F("stock__on_hand"), 0))
    columns = rows.values_list("pk", "code", "product_id", "list_price", "on_hand")
    return {
        pk: SkuFacts(code=code, product_id=product_id, list_price=list_price, on_hand=on_hand)
        for pk, code, product_id, list_price, on_hand in columns
    }


def _error(code: str, words: str, *, field: str = "", place: _Place | None = None) -> Finding:
    at = (place.pool, place.number) if place else (None, None)
    return Finding(weight=Weight.ERROR, code=code, words=words, field=field, pool=at[0], item=at[1])


def _warning(code: str, words: str, *, field: str = "", place: _Place | None = None) -> Finding:
    at = (place.pool, place.number) if place else (None, None)
    return Finding(weight=Weight.WARNING, code=code, words=words, field=field, pool=at[0], item=at[1])


def _emptiness(*, plan: SalePlan) -> Iterator[Finding]:
    if not any(pool.items for pool in plan.pools):
        yield _error("no_items", _("The sale has no items. Add at least one."))


def _pool(*, number: int, pool: PlannedPool) -> Iterator[Finding]:
    units = sum(item.units for item in pool.items)
    for finding in check_limit(limit=pool.limit_per_buyer, units=units):
        yield replace(finding, pool=number)
    repeated = [sku for sku, times in Counter(item.sku_id for item in pool.items).items() if times > 1]
    for place, item in enumerate(pool.items):
        if item.sku_id in repeated and item.sku_id in {earlier.sku_id for earlier in pool.items[:place]}:
            words = _("This SKU is in the pool already. Put its units into one line.")
            at = _Place(pool=number, number=place, item=item)
            yield _error("sku_twice", words, field="sku", place=at)


def _item(*, place: _Place, facts: Mapping[int, SkuFacts]) -> Iterator[Finding]:
    item, sku = place.item, facts.get(place.item.sku_id)
    if not 1 <= item.units <= UNITS_MAX:
        words = _("Units must be a whole number from 1 to {most}.").format(most=UNITS_MAX)
        yield _error("units_out_of_range", words, field="units", place=place)
    if not _is_price(item.price):
        words = _("A price is 0 or more, with at most two digits after the point.")
        yield _error("price_malformed", words, field="price", place=place)
    elif sku is None:
        yield _error("sku_unknown", _("There is no such SKU."), field="sku", place=place)
    elif item.price > sku.list_price:
        words = _("{price} is above the list price of {sku}, {list_price}. Lower it, or raise the list price first.")
        words = words.format(price=item.price, sku=sku.code, list_price=sku.list_price)
        yield _error("price_above_list", words, field="price", place=place)


def _units(*, places: list[_Place], facts: Mapping[int, SkuFacts], plan: SalePlan) -> Iterator[Finding]:
    """Compare with the warehouse: all pools of the sale together, then what other sales plan to take."""
    asked = Counter[int]()
    for place in places:
        asked[place.item.sku_id] += max(place.item.units, 0)
    rows = SaleItem.objects.filter(sku_id__in=facts, pool__sale__state__in=PLANNED).exclude(pool__sale=plan.sale_id)
    elsewhere = Counter[int]()
    for sku_id, units in rows.values_list("sku_id", "units"):
        elsewhere[sku_id] += units
    last = {place.item.sku_id: place for place in places if place.item.sku_id in facts}
    for sku_id, place in last.items():
        sku = facts[sku_id]
        values = {"asked": asked[sku_id], "sku": sku.code, "on_hand": sku.on_hand, "other": elsewhere[sku_id]}
        if asked[sku_id] > sku.on_hand:
            words = _("{asked} units of {sku} are planned, the warehouse has {on_hand}. Plan {on_hand} or fewer.")
            yield _error("not_on_hand", words.format(**values), field="units", place=place)
        elif asked[sku_id] + elsewhere[sku_id] > sku.on_hand:
            words = _(
                "Other sales that are not preheated yet plan {other} units of {sku} too; the warehouse has {on_hand}. "
                "Whichever is preheated last may find too few."
            )
            yield _warning("planned_elsewhere", words.format(**values), field="units", place=place)


def _prices(*, places: list[_Place], facts: Mapping[int, SkuFacts]) -> Iterator[Finding]:
    """Ask for suspicious prices a second time, see Note [Suspicious prices]."""
    for place in places:
        sku = facts.get(place.item.sku_id)
        if sku is None or not sku.list_price or not _is_price(place.item.price) or place.item.price > sku.list_price:
            continue
        why = _suspicion(place=place, places=places, facts=facts)
        if why and place.item.price_again is None:
            yield _error("price_suspicious", why, field="price_again", place=place)
        elif why and place.item.price_again != place.item.price:
            words = _("The two prices differ: {price} and {again}.")
            words = words.format(price=place.item.price, again=place.item.price_again)
            yield _error("price_again_differs", f"{words} {why}", field="price_again", place=place)
        elif why:
            yield _warning("price_confirmed", why, field="price", place=place)


def _suspicion(*, place: _Place, places: list[_Place], facts: Mapping[int, SkuFacts]) -> str:
    """Say why a price looks like a slip of the hand, or ""."""
    sku = facts[place.item.sku_id]
    part = place.item.price / sku.list_price
    values = {"price": place.item.price, "sku": sku.code, "list_price": sku.list_price}
    if part < SUSPICIOUS_PART:
        words = _(
            "{price} is below half of the list price of {sku}, {list_price}. If it is right, type it a second time."
        )
        return words.format(**values)
    siblings = [
        other.item.price / facts[other.item.sku_id].list_price
        for other in places
        if other is not place and _is_sibling(other=other, product_id=sku.product_id, facts=facts)
    ]
    usual = median(siblings) if siblings else part
    if part > usual * SIBLING_FACTOR_MAX or part * SIBLING_FACTOR_MAX < usual:
        words = _(
            "{price} is {percent} % of the list price of {sku}; the other variants of the product stand at {usual} %. "
            "More than twice or less than half of that must be typed a second time."
        )
        return words.format(percent=round(part * 100), usual=round(usual * 100), **values)
    return ""


def _is_sibling(*, other: _Place, product_id: int, facts: Mapping[int, SkuFacts]) -> bool:
    sku = facts.get(other.item.sku_id)
    is_variant = sku is not None and sku.product_id == product_id and sku.list_price > 0
    return is_variant and _is_price(other.item.price)


def _is_price(price: Decimal) -> bool:
    return price.is_finite() and 0 <= price < PRICE_LIMIT and price == round(price, 2)


def _overlaps(*, plan: SalePlan, places: list[_Place], facts: Mapping[int, SkuFacts]) -> Iterator[Finding]:
    """Name other sales of the same SKUs at the same time; pools of one sale may share a SKU (members first)."""
    first = {place.item.sku_id: place for place in reversed(places)}
    rows = SaleItem.objects.filter(
        sku_id__in=facts,
        pool__sale__state__in=NOT_OVER,
        pool__sale__opens_at__lt=plan.closes_at,
        pool__sale__closes_at__gt=plan.opens_at,
    ).exclude(pool__sale=plan.sale_id)
    names = rows.order_by("sku_id", "pool__sale_id").values_list("sku_id", "pool__sale_id", "pool__sale__name")
    for sku_id, sale_id, name in names.distinct():
        words = _("{sku} is also in the sale “{name}” (number {number}), whose window overlaps with this one.")
        words = words.format(sku=facts[sku_id].code, name=name, number=sale_id)
        yield _warning("overlap", words, field="sku", place=first[sku_id])
