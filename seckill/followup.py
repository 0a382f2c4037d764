"""Follow-up: approved changes that nobody finished are taken up, each applied once, and then reconciled.

Whoever approves a change applies it at once. If he dies in between, or Redis is away, this does it.
"""

import logging
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial

from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, connection

from inventory.adjusting import apply_stock_adjustment, pending_stock_adjustments
from inventory.changes import ChangeState
from inventory.errors import InventoryError
from seckill.adjusting import apply_item_adjustment, pending_item_adjustments
from seckill.change_tables import ItemAdjustment, WindowChange
from seckill.errors import SeckillError
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_buckets, open_incident, resolve_incident
from seckill.models import Bucket, ReconciliationRun
from seckill.states import SaleState
from seckill.transfers import stuck_buckets
from seckill.windows import apply_window_change, pending_window_changes

logger = logging.getLogger(__name__)

STUCK = "change_stuck"
# An approved change is applied within a second; one that still is not after this wants a person.
STUCK_SECONDS = 60
# A reconciliation that could not be made so long after a change is not asked for again; the next minute's counts it.
RECONCILE_SECONDS_MAX = 600


def follow_up(*, clock: Callable[[], datetime]) -> list[BucketRef]:
    """Apply what is approved and not finished; return the buckets whose changes were not reconciled yet.

    A change that cannot be applied now holds up no other.
    """
    for name, apply in _pending(clock):
        try_to_apply(name=name, apply=apply)
    _note_stuck(now=clock())
    return buckets_to_reconcile(now=clock())


def try_to_apply(*, name: str, apply: Callable[[], ChangeState]) -> ChangeState:
    """Apply an approved change; where that fails it stays approved, and the next run tries again."""
    try:
        return apply()
    except (DatabaseError, InventoryError, ObjectDoesNotExist, SeckillError) as error:
        connection.close_if_unusable_or_obsolete()
        logger.error("%s cannot be applied now: %s", name, error)  # noqa: TRY400  the trace says no more
        return ChangeState.APPROVED


def buckets_to_reconcile(*, now: datetime) -> list[BucketRef]:
    """Buckets with a change that no reconciliation has counted yet."""
    since = now - timedelta(seconds=RECONCILE_SECONDS_MAX)
    adjusted = ItemAdjustment.objects.filter(
        state=ChangeState.APPLIED,
        finished_at__gt=since,
        reconciliation__isnull=True,
        item__pool__sale__state=SaleState.PREHEATED,
    ).values_list("item__pool_id", "bucket_no")
    moved = WindowChange.objects.filter(
        state=ChangeState.APPLIED, finished_at__gt=since, sale__state=SaleState.PREHEATED
    ).values_list("sale_id", "finished_at")
    keys = set(adjusted)
    for sale_id, finished_at in moved:
        rows = Bucket.objects.filter(pool__sale_id=sale_id).values_list("pool_id", "number")
        keys |= {key for key in rows if finished_at and not _is_reconciled(*key, since=finished_at)}
    return [BucketRef(pool_id=pool_id, number=number) for pool_id, number in sorted(keys)]


def _is_reconciled(pool_id: int, number: int, *, since: datetime) -> bool:
    runs = ReconciliationRun.objects.filter(pool_id=pool_id, bucket_no=number, created_at__gte=since)
    return runs.exclude(verdict=ReconciliationRun.Verdict.UNAVAILABLE).exists()


def _pending(clock: Callable[[], datetime]) -> Iterator[tuple[str, Callable[[], ChangeState]]]:
    for pk in pending_stock_adjustments():
        yield f"stock adjustment {pk}", partial(apply_stock_adjustment, adjustment_id=pk, now=clock())
    for pk in pending_item_adjustments():
        yield f"item adjustment {pk}", partial(apply_item_adjustment, adjustment_id=pk, clock=clock)
    for pk in pending_window_changes():
        yield f"window change {pk}", partial(apply_window_change, change_id=pk, clock=clock)


def _note_stuck(*, now: datetime) -> None:
    """Have an incident open exactly while an approved change of a bucket waits too long."""
    waiting = {"state": ChangeState.APPROVED, "decided_at__lt": now - timedelta(seconds=STUCK_SECONDS)}
    adjusted = ItemAdjustment.objects.filter(**waiting).values_list("item__pool_id", "bucket_no")
    moved = Bucket.objects.filter(
        pool__sale_id__in=WindowChange.objects.filter(**waiting).values("sale_id")
    ).values_list("pool_id", "number")
    stuck = {BucketRef(pool_id=pool_id, number=number) for pool_id, number in {*adjusted, *moved}}
    stuck |= stuck_buckets(now=now, seconds=STUCK_SECONDS)
    for bucket in stuck:
        detail = "an approved change, or a transfer between buckets, waits for over a minute to be applied"
        open_incident(kind=STUCK, severity=Severity.WARNING, bucket=bucket, detail=detail, now=now)
    for bucket in open_buckets(kind=STUCK) - stuck:
        resolve_incident(kind=STUCK, bucket=bucket, now=now)
