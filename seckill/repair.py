"""Repair: the safe direction at once, the other only with proof.

Excess (Redis has too many) is lowered at once. A leak (too few) is raised by the least that every
run of at least half a minute has seen, with the same epoch, adjustments and repairs; what is in
flight never shows up as either. A repair is a delta: purchases, settlements and returns in between
leave the drift as it is. (A phantom refused in between lowers an excess by itself; the repair then
takes too much, which is the safe side, and is given back as a leak.) Its row is committed before
the script runs, and the script runs only if no other repair, no rebuild and no restart came in
between; so the bucket's lock need not be held.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction

from seckill.errors import BucketUnsound, GateUnavailable, NotPreheated
from seckill.gate import gate
from seckill.gate.keys import BucketRef
from seckill.mending import Extent, Treatment
from seckill.models import Bucket, ReconciliationRun, Repair
from seckill.reconciliation import BucketReport, Verdict, reconcile_bucket

logger = logging.getLogger(__name__)

PROOF_SECONDS = 30
# Runs older than this prove nothing about now.
PROOF_SECONDS_MAX = 600

Outcome = Repair.Outcome


def reconcile_and_repair(
    *, bucket: BucketRef, clock: Callable[[], datetime], extent: Extent = Extent.WINDOW
) -> BucketReport:
    """Reconcile a bucket and repair what is proved; return what the reconciliation found."""
    report = reconcile_bucket(bucket=bucket, clock=clock, extent=extent, treatment=Treatment.MEND)
    if report.verdict == Verdict.UNAVAILABLE:
        return report
    _judge_unanswered(report)
    if deltas := proved_deltas(report=report, now=clock()):
        _repair(report=report, deltas=deltas, now=clock())
    return report


def _judge_unanswered(report: BucketReport) -> None:
    """Decide what became of repairs whose answer was lost: the number in Redis says whether they were made."""
    planned = Repair.objects.filter(
        pool_id=report.bucket.pool_id, bucket_no=report.bucket.number, outcome=Outcome.PLANNED
    )
    planned.filter(epoch=report.epoch, repair_no__lte=report.repair_no).update(outcome=Outcome.DONE)
    planned.update(outcome=Outcome.OVERTAKEN)


def proved_deltas(*, report: BucketReport, now: datetime) -> dict[int, int]:
    """Units to add per item (negative: to take away); items without proof are left out."""
    least = _least_leaks(report=report, now=now)
    deltas = {item.item_id: item.drift if item.drift < 0 else least.get(item.item_id, 0) for item in report.items}
    return {item_id: delta for item_id, delta in deltas.items() if delta}


def _least_leaks(*, report: BucketReport, now: datetime) -> dict[int, int]:
    """The least drift per item over all runs since one at least ``PROOF_SECONDS`` ago; empty without such a run."""
    runs = list(
        ReconciliationRun.objects.filter(
            pool_id=report.bucket.pool_id,
            bucket_no=report.bucket.number,
            epoch=report.epoch,
            adj_no=report.adj_no,
            repair_no=report.repair_no,
            created_at__gte=now - timedelta(seconds=PROOF_SECONDS_MAX),
        )
        .exclude(verdict=Verdict.UNAVAILABLE)
        .order_by("created_at")
    )
    old = [run for run in runs if run.created_at <= now - timedelta(seconds=PROOF_SECONDS)]
    if not old:
        return {}
    proof = runs[runs.index(old[-1]) :]
    seen = [{item["item_id"]: item["drift"] for item in run.numbers} for run in proof]
    return {item.item_id: max(0, min(drifts.get(item.item_id, 0) for drifts in seen)) for item in report.items}


def _repair(*, report: BucketReport, deltas: dict[int, int], now: datetime) -> None:
    rows = _plan(report=report, deltas=deltas, now=now)
    try:
        applied = gate.repair(bucket=report.bucket, epoch=report.epoch, seen_repair_no=report.repair_no, deltas=deltas)
    except (BucketUnsound, NotPreheated):
        applied = None
    except GateUnavailable as error:
        logger.warning("whether bucket %s was repaired shows at the next run: %s", report.bucket, error)
        return
    for row in rows:
        units = 0 if applied is None else applied[row.item_id]
        outcome = {"outcome": Outcome.DONE, "delta": units} if units else {"outcome": Outcome.OVERTAKEN}
        # Whatever another run has judged meanwhile by the number: here is the answer itself.
        Repair.objects.filter(pk=row.pk).update(**outcome)


def _plan(*, report: BucketReport, deltas: dict[int, int], now: datetime) -> list[Repair]:
    """Write the repair down, before it is made."""
    bucket, repair_no = report.bucket, report.repair_no + 1
    with transaction.atomic(durable=True):
        Bucket.objects.filter(pool_id=bucket.pool_id, number=bucket.number).update(repair_no=repair_no)
        return [
            Repair.objects.create(
                pool_id=bucket.pool_id,
                bucket_no=bucket.number,
                item_id=item_id,
                epoch=report.epoch,
                repair_no=repair_no,
                delta=delta,
                created_at=now,
            )
            for item_id, delta in sorted(deltas.items())
        ]
