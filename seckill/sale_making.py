"""Making a sale of a plan, and putting it on the schedule and off it."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from actions.log import Who, deed_on, facts, record
from seckill.errors import SaleNotReady
from seckill.models import FlashSale, SaleItem, SalePool
from seckill.plan_checks import Weight, check_plan
from seckill.sale_plan import SalePlan, plan_of
from seckill.states import SALE_TRANSITIONS, SaleState


@dataclass(frozen=True, kw_only=True)
class SaleDetails:
    """What a sale has beside its plan."""

    rules: str = ""
    pay_window_minutes: int = 15
    preheat_minutes: int = 15
    has_challenge: bool = False
    max_queue: int = 20_000


def create_sale(*, plan: SalePlan, details: SaleDetails, by: Who, now: datetime) -> int:
    """Write a draft with its pools and items and its row of the action log, all or nothing; return it.

    Raises ``SaleNotReady`` for a plan with errors, which ``check_plan`` tells one by one.
    """
    with transaction.atomic(durable=True):
        _require_sound(plan=plan, now=now)
        sale = FlashSale.objects.create(
            name=plan.name,
            opens_at=plan.opens_at,
            closes_at=plan.closes_at,
            rules=details.rules,
            pay_window_minutes=details.pay_window_minutes,
            preheat_minutes=details.preheat_minutes,
            has_challenge=details.has_challenge,
        )
        for planned in plan.pools:
            pool = SalePool.objects.create(
                sale=sale,
                name=planned.name,
                limit_per_buyer=planned.limit_per_buyer,
                max_queue=details.max_queue,
                bucket_count=planned.bucket_count,
            )
            SaleItem.objects.bulk_create(
                SaleItem(pool=pool, sku_id=item.sku_id, price=item.price, units=item.units) for item in planned.items
            )
        record(deed=deed_on(sale, by=by, what="seckill.add"), now=now, after=facts(sale))
    return sale.pk


def schedule_sale(*, sale_id: int, now: datetime) -> None:
    """Let a sound draft be preheated by itself before it opens. Raises ``SaleNotReady``."""
    with transaction.atomic(durable=True):
        sale = _locked_in_transition(sale_id=sale_id, to=SaleState.SCHEDULED)
        _require_sound(plan=plan_of(sale=sale), now=now)
        FlashSale.objects.filter(pk=sale_id).update(state=SaleState.SCHEDULED)


def unschedule_sale(*, sale_id: int) -> None:
    """Make a scheduled sale a draft again, which nothing preheats by itself. Raises ``SaleNotReady``."""
    with transaction.atomic(durable=True):
        sale = _locked_in_transition(sale_id=sale_id, to=SaleState.DRAFT)
        if sale.state != SaleState.SCHEDULED:
            raise SaleNotReady(_("the sale is {state}, not scheduled").format(state=sale.get_state_display()))
        FlashSale.objects.filter(pk=sale_id).update(state=SaleState.DRAFT)


def _locked_in_transition(*, sale_id: int, to: SaleState) -> FlashSale:
    sale = FlashSale.objects.select_for_update().filter(pk=sale_id).first()
    if sale is None:
        raise SaleNotReady(_("there is no sale {sale_id}").format(sale_id=sale_id))
    if to not in SALE_TRANSITIONS[SaleState(sale.state)]:
        raise SaleNotReady(
            _("the sale is {state}; it cannot become {to}").format(state=sale.get_state_display(), to=to.label)
        )
    return sale


def _require_sound(*, plan: SalePlan, now: datetime) -> None:
    for finding in check_plan(plan=plan, now=now):
        if finding.weight is Weight.ERROR:
            raise SaleNotReady(finding.words)
