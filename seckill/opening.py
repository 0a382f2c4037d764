"""Opening: scheduled sales come into Redis by themselves, a quarter of an hour before they open."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import DatabaseError, connection

from seckill.errors import AlreadyPreheated, GateUnavailable, RebuildRefused, SaleNotReady, SettlementError
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_buckets, open_incident, resolve_incident
from seckill.models import Bucket, FlashSale
from seckill.preheat import preheat_sale
from seckill.states import SaleState
from seckill.sweep import examine

logger = logging.getLogger(__name__)

NOT_PREHEATED = "not_preheated"
# A sale that is still not preheated so long before it opens wants a person.
ALARM_MINUTES = 10


def preheat_due_sales(*, clock: Callable[[], datetime]) -> int:
    """Preheat every scheduled sale whose time has come; return how many.

    One that cannot be preheated holds up no other; ten minutes before its opening it is an incident.
    """
    now, preheated = clock(), 0
    alarmed: set[BucketRef] = set()
    due = FlashSale.objects.filter(state=SaleState.SCHEDULED, closes_at__gt=now).order_by("opens_at")
    for sale in due:
        if sale.opens_at - now > timedelta(minutes=sale.preheat_minutes):
            continue
        try:
            preheat_sale(sale_id=sale.pk, clock=clock)
            preheated += 1
        except AlreadyPreheated:
            continue  # by another tick, or an operator, since we looked
        except (GateUnavailable, RebuildRefused) as error:
            logger.warning("sale %s is preheated, the sweep will bring it into Redis: %s", sale.pk, error)
        except (SaleNotReady, SettlementError, DatabaseError) as error:
            connection.close_if_unusable_or_obsolete()
            logger.error("sale %s cannot be preheated: %s", sale.pk, error)  # noqa: TRY400  the trace says no more
            alarmed |= _alarm(sale=sale, detail=f"cannot be preheated: {error}", now=now)
    alarmed |= _alarm_about_redis(now=now)
    for bucket in open_buckets(kind=NOT_PREHEATED) - alarmed:
        resolve_incident(kind=NOT_PREHEATED, bucket=bucket, now=now)
    return preheated


def _alarm(*, sale: FlashSale, detail: str, now: datetime) -> set[BucketRef]:
    """Open an incident for each pool of a sale that opens within ten minutes; return their buckets."""
    if sale.opens_at - timedelta(minutes=ALARM_MINUTES) > now:
        return set()
    buckets = {BucketRef(pool_id=pool_id, number=0) for pool_id in sale.pools.values_list("pk", flat=True)}
    for bucket in buckets:
        detail_of_sale = f"{sale.name} opens at {sale.opens_at:%H:%M} UTC and {detail}"
        open_incident(kind=NOT_PREHEATED, severity=Severity.CRITICAL, bucket=bucket, detail=detail_of_sale, now=now)
    return buckets


def _alarm_about_redis(*, now: datetime) -> set[BucketRef]:
    """A sale that is preheated in MySQL alone, because Redis is away, is not preheated for its buyers.

    A bucket that somebody has claimed is on its way there.
    """
    alarmed: set[BucketRef] = set()
    for sale in FlashSale.objects.filter(
        state=SaleState.PREHEATED, opens_at__gt=now, opens_at__lte=now + timedelta(minutes=ALARM_MINUTES)
    ):
        unclaimed = Bucket.objects.filter(pool__sale=sale).exclude(claim_until__gt=now)
        for pool_id, number in unclaimed.values_list("pool_id", "number"):
            if damage := _damage(BucketRef(pool_id=pool_id, number=number)):
                alarmed |= _alarm(sale=sale, detail=f"is not in Redis: {damage}", now=now)
    return alarmed


def _damage(bucket: BucketRef) -> str:
    try:
        return examine(bucket=bucket)
    except GateUnavailable as error:
        return str(error) or "it does not answer"
