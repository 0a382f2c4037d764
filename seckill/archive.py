"""The archive: a sale that has ended leaves Redis, and MySQL alone answers for it from then on.

``ARCHIVING`` is set under the locks of the sale and its buckets. Then each bucket has a run that goes
through the stages of ``ArchiveStage``: seal Redis, settle what is queued, copy the buyers, compare, give
what is left over to the warehouse, remove the keys. Killed anywhere, the next tick goes on; nothing is
removed before it is compared.
"""

import logging
import math
import time
from collections.abc import Callable
from datetime import datetime

from django.db import DatabaseError, connection, transaction

from inventory.errors import InventoryError
from seckill import returns
from seckill.archive_begin import BLOCKED, Accepted, begin, due_sales, sales_under_archive
from seckill.archive_loss import finish_from_mysql
from seckill.archive_run import Overtaken, Work
from seckill.archive_steps import STEPS
from seckill.archive_tables import ArchiveRun, ArchiveStage
from seckill.errors import (
    ArchiveBlocked,
    ArchiveWaits,
    BucketUnsound,
    GateUnavailable,
    NotPreheated,
    SaleNotReady,
    SettlementError,
)
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_incident, resolve_incident
from seckill.models import FlashSale, Incident
from seckill.selectors import buckets_of
from seckill.states import SaleState
from seckill.transient import is_transient
from seckill.turns import only_one

logger = logging.getLogger(__name__)

# Returns go on after an archive, and close their incident themselves.
OUTLIVING_AN_ARCHIVE = frozenset({returns.STUCK})
WAITS_LENGTH_MAX = 300


# Told the run after each step.
Tell = Callable[[ArchiveRun], None]


def archive_due(*, clock: Callable[[], datetime], seconds: float) -> None:
    """Begin with the sales whose delay after the end is over, and go on with all runs for so many seconds.

    One that cannot go on holds up no other: the run says what it waits for, and where a person is
    needed there is an incident.
    """
    for sale_id in due_sales(now=clock()):
        _try_to_begin(sale_id=sale_id, clock=clock)
    runs = list(ArchiveRun.objects.exclude(stage=ArchiveStage.DONE).order_by("started_at", "pk"))
    for run in runs:
        _try_to_advance(run=run, clock=clock, has_time=Pace(seconds / len(runs)))
    for sale_id in sales_under_archive():
        finish_sale(sale_id=sale_id)


def _try_to_advance(*, run: ArchiveRun, clock: Callable[[], datetime], has_time: Callable[[], bool]) -> None:
    try:
        advance(run=run, clock=clock, has_time=has_time)
    except DatabaseError:
        connection.close_if_unusable_or_obsolete()
        logger.exception("the archive %s cannot go on", run)


class Pace:
    """Lets a run work for so many seconds, and rest after each step: buyers of other items come first.

    ``REST_FACTOR`` times as long as the step took, so an archive takes no more than a tenth of a core: on two cores
    that were busy besides, a quarter of one was felt at the p99 of purchases (``make bench-archive``). What
    is done within ``GRACE_SECONDS`` of work, as a small sale is, is done without rest.
    """

    REST_FACTOR = 9.0
    GRACE_SECONDS = 0.2
    # A step that took long has waited for something, and used no core.
    REST_SECONDS_MAX = 5.0

    def __init__(self, seconds: float = math.inf) -> None:
        self._give_up_at = time.monotonic() + seconds
        self._began_at: float | None = None
        self._worked_seconds = 0.0

    def __call__(self) -> bool:
        """Rest, then tell whether there is time for another step."""
        if self._began_at is not None:
            step_seconds = time.monotonic() - self._began_at
            self._worked_seconds += step_seconds
            if self._worked_seconds > self.GRACE_SECONDS:
                time.sleep(min(self.REST_SECONDS_MAX, self.REST_FACTOR * step_seconds))
        self._began_at = time.monotonic()
        return self._began_at < self._give_up_at


def _try_to_begin(*, sale_id: int, clock: Callable[[], datetime]) -> None:
    try:
        begin(sale_id=sale_id, accepted=Accepted(), now=clock())
    except ArchiveBlocked as error:
        for bucket in buckets_of(sale_id=sale_id):
            _open_blocked(bucket=bucket, detail=str(error), now=clock())
    except (ArchiveWaits, SaleNotReady, GateUnavailable) as error:
        logger.warning("the archive of sale %s has to wait: %s", sale_id, error)
    except DatabaseError:
        connection.close_if_unusable_or_obsolete()
        logger.exception("the archive of sale %s cannot begin", sale_id)


def archive_sale(
    *,
    sale_id: int,
    accepted: Accepted,
    clock: Callable[[], datetime],
    has_time: Callable[[], bool],
    tell: Tell = lambda _run: None,
) -> list[ArchiveRun]:
    """Archive a sale that has ended now, whatever the delay; return its runs, which say what they wait for.

    Raises ``SaleNotReady``, ``ArchiveWaits`` or ``GateUnavailable`` when it cannot begin; nothing is
    changed then.
    """
    if sale_id in sales_under_archive():
        accept(sale_id=sale_id, accepted=accepted)
    else:
        begin(sale_id=sale_id, accepted=accepted, now=clock())
    for run in runs_of(sale_id=sale_id):
        advance(run=run, clock=clock, has_time=has_time, tell=tell)
    finish_sale(sale_id=sale_id)
    return runs_of(sale_id=sale_id)


def runs_of(*, sale_id: int) -> list[ArchiveRun]:
    """A sale's runs."""
    return list(ArchiveRun.objects.filter(pool__sale_id=sale_id).order_by("pool_id", "bucket_no"))


def accept(*, sale_id: int, accepted: Accepted) -> None:
    """Note what an operator gives up on the runs of a sale; what was given up before stays so."""
    runs = ArchiveRun.objects.filter(pool__sale_id=sale_id)
    if accepted.dead_letters:
        runs.update(accepts_dead_letters=True)
    if accepted.lost_commits:
        runs.update(accepts_lost_commits=True)


def advance(
    *, run: ArchiveRun, clock: Callable[[], datetime], has_time: Callable[[], bool], tell: Tell = lambda _run: None
) -> None:
    """Take a run as far as it can go now. Does nothing while another worker is at it; no law depends on that."""
    with only_one(work=f"archive:{run.pool_id}:{run.bucket_no}") as is_mine:
        while is_mine and has_time():
            work = Work(run=ArchiveRun.objects.get(pk=run.pk), clock=clock)
            tell(work.run)
            if work.run.stage == ArchiveStage.DONE or not _step(work):
                return


def _step(work: Work) -> bool:
    """Do one step; False when the run has to wait, and says for what."""
    try:
        _step_or_finish_without_redis(work)
    except Overtaken:
        return True
    except (ArchiveBlocked, InventoryError) as error:
        return _wait(work, detail=str(error), is_person_needed=True)
    except (ArchiveWaits, GateUnavailable, SettlementError) as error:
        return _wait(work, detail=str(error) or type(error).__name__)
    except DatabaseError as error:
        connection.close_if_unusable_or_obsolete()
        return _wait(work, detail=str(error), is_person_needed=not is_transient(error))
    if work.run.waits_for:
        resolve_incident(kind=BLOCKED, bucket=work.bucket, now=work.clock())
    return True


def _step_or_finish_without_redis(work: Work) -> None:
    try:
        STEPS[ArchiveStage(work.run.stage)](work)
    except NotPreheated:
        finish_from_mysql(work, detail="the bucket is not in Redis")
    except BucketUnsound as error:
        finish_from_mysql(work, detail=str(error))


def _wait(work: Work, *, detail: str, is_person_needed: bool = False) -> bool:
    logger.warning("the archive of bucket %s waits for: %s", work.bucket, detail)
    ArchiveRun.objects.filter(pk=work.run.pk).update(waits_for=detail[:WAITS_LENGTH_MAX])
    if is_person_needed:
        _open_blocked(bucket=work.bucket, detail=detail, now=work.clock())
    return False


def _open_blocked(*, bucket: BucketRef, detail: str, now: datetime) -> None:
    open_incident(kind=BLOCKED, severity=Severity.WARNING, bucket=bucket, detail=detail, now=now)


def finish_sale(*, sale_id: int) -> None:
    """Set a sale to ``ARCHIVED`` once every bucket's run is done, and close the incidents whose cause is gone.

    In one transaction: nobody comes to an archived sale a second time.
    """
    with transaction.atomic(durable=True):
        sale = FlashSale.objects.select_for_update().get(pk=sale_id)
        runs = runs_of(sale_id=sale_id)
        if sale.state != SaleState.ARCHIVING or any(run.stage != ArchiveStage.DONE for run in runs):
            return
        FlashSale.objects.filter(pk=sale_id).update(state=SaleState.ARCHIVED)
        for run in runs:
            _close_incidents(bucket=BucketRef(pool_id=run.pool_id, number=run.bucket_no), now=run.finished_at)


def _close_incidents(*, bucket: BucketRef, now: datetime | None) -> None:
    """Close what was open about a bucket: nobody looks at it any more, and the manifest says what was found."""
    kinds = Incident.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number, open_key__isnull=False)
    for kind in set(kinds.values_list("kind", flat=True)) - OUTLIVING_AN_ARCHIVE:
        if now is not None:
            resolve_incident(kind=kind, bucket=bucket, now=now)
