"""Opening: scheduled sales come into Redis by themselves, a quarter of an hour before they open."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import DatabaseError, connection

from seckill.errors import GateUnavailable, RebuildRefused, SaleNotReady, SettlementError
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_buckets, open_incident, resolve_incident
from seckill.models import FlashSale
from seckill.preheat import preheat_sale
from seckill.states import SaleState

logger = logging.getLogger(__name__)

NOT_PREHEATED = "not_preheated"
# A sale that is still not preheated so long before it opens wants a person.
ALARM_MINUTES = 10


def preheat_due_sales(*, clock: Callable[[], datetime]) -> int:
    """Preheat every scheduled sale whose time has come; return how many.

    One that cannot be preheated holds up no other; ten minutes before its opening it is an incident.
    """
    now, preheated = clock(), 0
    due = FlashSale.objects.filter(state=SaleState.SCHEDULED, closes_at__gt=now).order_by("opens_at")
    for sale in due:
        if sale.opens_at - now > timedelta(minutes=sale.preheat_minutes):
            continue
        try:
            preheat_sale(sale_id=sale.pk, clock=clock)
            preheated += 1
        except (GateUnavailable, RebuildRefused) as error:
            logger.warning("sale %s is preheated, the sweep will bring it into Redis: %s", sale.pk, error)
        except (SaleNotReady, SettlementError, DatabaseError) as error:
            connection.close_if_unusable_or_obsolete()
            _alarm(sale=sale, error=error, now=now)
    _all_clear(now=now)
    return preheated


def _alarm(*, sale: FlashSale, error: Exception, now: datetime) -> None:
    logger.error("sale %s cannot be preheated: %s", sale.pk, error)
    if sale.opens_at - timedelta(minutes=ALARM_MINUTES) <= now:
        for pool_id in sale.pools.values_list("pk", flat=True):
            bucket = BucketRef(pool_id=pool_id, number=0)
            detail = f"{sale.name} opens at {sale.opens_at:%H:%M} UTC and cannot be preheated: {error}"
            open_incident(kind=NOT_PREHEATED, severity=Severity.CRITICAL, bucket=bucket, detail=detail, now=now)


def _all_clear(*, now: datetime) -> None:
    """Close the incidents of sales that are preheated by now, whoever did it, or are drafts again."""
    for bucket in open_buckets(kind=NOT_PREHEATED):
        if not FlashSale.objects.filter(pools=bucket.pool_id, state=SaleState.SCHEDULED).exists():
            resolve_incident(kind=NOT_PREHEATED, bucket=bucket, now=now)
