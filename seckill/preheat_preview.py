"""What preheating a sale would do, shown before it is done, and a mark that says whether the sale is still the same."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from seckill.errors import SaleNotReady
from seckill.gate.keys import BucketRef
from seckill.models import FlashSale, SaleItem, SalePool
from seckill.plan_checks import Finding, check_plan, is_sound, sku_facts
from seckill.preheat import preheat_sale
from seckill.sale_plan import plan_of
from seckill.spreading import proposed_buckets, shares
from seckill.states import SALE_TRANSITIONS, SaleState


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Units of one SKU that go from the warehouse to the sale."""

    code: str
    units: int
    on_hand: int

    @property
    def on_hand_after(self) -> int:
        """What the warehouse has then."""
        return self.on_hand - self.units


@dataclass(frozen=True, kw_only=True)
class PoolPreview:
    """One pool as it will stand in Redis."""

    name: str
    limit_per_buyer: int
    buckets: tuple[BucketRef, ...]
    items: int
    units: int

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys Redis will have of the first bucket; the others' are named alike."""
        return self.buckets[0].keys

    @property
    def units_per_bucket(self) -> int:
        """The most units any of its buckets gets, of all items together."""
        return max(shares(units=self.units, buckets=len(self.buckets)))

    @property
    def proposed(self) -> int:
        """How many buckets the units would want."""
        return proposed_buckets(units=self.units)


@dataclass(frozen=True, kw_only=True)
class PreheatPreview:
    """What will happen; ``mark`` is what the operator has seen, to be handed back with his yes."""

    sale: FlashSale
    taken: tuple[Taken, ...]
    pools: tuple[PoolPreview, ...]
    findings: tuple[Finding, ...]
    mark: str
    is_possible: bool

    @property
    def units(self) -> int:
        """All units of the sale."""
        return sum(taken.units for taken in self.taken)


def preheat_preview(*, sale_id: int, now: datetime) -> PreheatPreview:
    """Say what preheating would do now. Reads only. Raises ``SaleNotReady`` where there is no such sale."""
    sale = FlashSale.objects.filter(pk=sale_id).first()
    if sale is None:
        raise SaleNotReady(_("there is no sale {sale_id}").format(sale_id=sale_id))
    findings = tuple(check_plan(plan=plan_of(sale=sale), now=now))
    may = SaleState.PREHEATED in SALE_TRANSITIONS[SaleState(sale.state)]
    return PreheatPreview(
        sale=sale,
        taken=_taken(sale_id),
        pools=_pools(sale_id),
        findings=findings,
        mark=mark_of(sale_id=sale_id),
        is_possible=may and is_sound(list(findings)),
    )


def preheat_as_seen(*, sale_id: int, mark: str, clock: Callable[[], datetime]) -> None:
    """Preheat a sale that is still what its preview showed.

    Raises ``SaleNotReady`` when it was changed since, and what ``preheat_sale`` raises.
    """
    preheat_sale(sale_id=sale_id, clock=clock, is_as_seen=lambda: mark_of(sale_id=sale_id) == mark)


def mark_of(*, sale_id: int) -> str:
    """A digest of all that buyers and the warehouse would feel of the sale."""
    sale = FlashSale.objects.filter(pk=sale_id).values_list(
        "name", "rules", "opens_at", "closes_at", "pay_window_minutes", "has_challenge", "state"
    )
    pools = SalePool.objects.filter(sale_id=sale_id).order_by("pk")
    facts = pools.values_list("pk", "limit_per_buyer", "max_queue", "bucket_count")
    items = SaleItem.objects.filter(pool__sale_id=sale_id).order_by("pk")
    columns = items.values_list("pk", "pool_id", "sku_id", "price", "units", "is_paused")
    told = json.dumps([list(sale), list(facts), list(columns)], default=str)
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def _taken(sale_id: int) -> tuple[Taken, ...]:
    units = Counter[int]()
    for sku_id, asked in SaleItem.objects.filter(pool__sale_id=sale_id).values_list("sku_id", "units"):
        units[sku_id] += asked
    facts = sku_facts(set(units))
    found = (Taken(code=facts[pk].code, units=units[pk], on_hand=facts[pk].on_hand) for pk in units)
    return tuple(sorted(found, key=lambda taken: taken.code))


def _pools(sale_id: int) -> tuple[PoolPreview, ...]:
    items, units = Counter[int](), Counter[int]()
    for pool_id, asked in SaleItem.objects.filter(pool__sale_id=sale_id).values_list("pool_id", "units"):
        items[pool_id] += 1
        units[pool_id] += asked
    return tuple(
        PoolPreview(
            name=str(pool),
            limit_per_buyer=pool.limit_per_buyer,
            buckets=tuple(BucketRef(pool_id=pool.pk, number=n) for n in range(pool.bucket_count)),
            items=items[pool.pk],
            units=units[pool.pk],
        )
        for pool in SalePool.objects.filter(sale_id=sale_id, pk__in=items).order_by("pk")
    )
