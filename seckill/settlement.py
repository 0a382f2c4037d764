"""Settlement: drains a bucket's queue into MySQL, in batches, one writer per bucket.

A batch is: lock the bucket, then read the head of the queue, take it in, commit, then tell Redis.
Whatever dies in between, the next run finds the entries still in the queue and their order numbers
known, and only tells Redis again. ``try`` stands outside the transaction, always. A batch that kills its
worker again and again is made smaller (``seckill.attempts``).
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db import DatabaseError, connection, transaction

from seckill.attempts import Attempt, Waiting, attempt
from seckill.conf import LIMITS
from seckill.errors import BucketUnsound, CommitsLost, GateUnavailable, NotPreheated, QueueForked, SettlementError
from seckill.gate import gate, staging
from seckill.gate.entries import BadEntry, QueueEntry
from seckill.gate.gate import Confirmation, Release
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_incident, resolve_incident
from seckill.intake import Intake, IntakeContext, owes_its_units, park_killer, take_in
from seckill.lock_watch import note_wait
from seckill.models import Bucket
from seckill.outcomes import lock_bucket, pool_facts, require_all_commits
from seckill.states import ReservationState
from seckill.tally import tally
from seckill.transient import DUPLICATE_KEY, LOCK_WAIT, error_code, is_transient
from seckill.turns import only_one
from seckill.work_counts import count_batch

logger = logging.getLogger(__name__)

STOPPED = "settlement_stopped"
FORKED = "queue_forked"
COMMITS_LOST = "commits_lost"


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What a run did: entries that left the queue, and whether Redis had sold what MySQL does not have."""

    entries: int = 0
    found_phantoms: bool = False


def settle_bucket(*, bucket: BucketRef, clock: Callable[[], datetime]) -> Settled:
    """Settle until a read makes no progress.

    Does nothing when another worker is at it. Raises ``GateUnavailable`` (Redis), and whatever the
    database says that is neither about a row nor passing: then an incident is open, the queue is
    as it was and nobody is refused.
    """
    with only_one(work=f"settle:{bucket}") as is_mine:
        if not is_mine:
            return Settled()
        try:
            return _drain(bucket=bucket, clock=clock)
        except (QueueForked, CommitsLost) as error:
            _close(bucket=bucket, error=error, now=clock())
        except DatabaseError as error:
            if not is_transient(error):
                _stop(bucket=bucket, error=error, now=clock())
                raise
            logger.warning("settlement of bucket %s is interrupted, the sweep will repeat it: %s", bucket, error)
            # A sound connection is kept, and gives back its name lock itself: a closed one does so some time later.
            connection.close_if_unusable_or_obsolete()
            if error_code(error) == LOCK_WAIT:
                note_wait(bucket=bucket, now=clock())
        except SettlementError as error:
            _stop(bucket=bucket, error=error, now=clock())
            raise
    return Settled()


def _drain(*, bucket: BucketRef, clock: Callable[[], datetime]) -> Settled:
    entries, found_phantoms = 0, False
    with attempt(bucket=bucket, size_max=LIMITS.batch_size, waiting=_look(bucket), clock=clock) as run:
        for _ in range(LIMITS.batches_per_task_max):
            began = time.perf_counter()
            intake, epoch = _write_batch(bucket=bucket, run=run, now=clock())
            found_phantoms = found_phantoms or bool(intake.phantoms)
            new = [decision.entry for decision in intake.decisions if decision.is_new]
            tally.count_settled(pool_id=bucket.pool_id, entries=new, now=clock())
            moved = _tell_redis(bucket=bucket, intake=intake, epoch=epoch)
            count_batch(intake=intake, seconds=time.perf_counter() - began, now=clock())
            if moved == 0:
                break
            run.note_progress(now=clock())
            entries += moved
    if entries:
        resolve_incident(kind=STOPPED, bucket=bucket, now=clock())
    return Settled(entries=entries, found_phantoms=found_phantoms)


def _look(bucket: BucketRef) -> Waiting:
    """Look at the queue; of one that cannot be seen the batch itself says why."""
    try:
        snapshot = gate.snapshot(bucket=bucket, entries_max=1)
    except (GateUnavailable, NotPreheated):
        return Waiting()
    head = snapshot.entries[0].stream_id if snapshot.entries else ""
    return Waiting(head=head, length=snapshot.queue_length)


def _write_batch(*, bucket: BucketRef, run: Attempt, now: datetime) -> tuple[Intake, int]:
    """Take in the head of the queue with one transaction; return what became of it, and its epoch.

    A number that is there already, though a look under the lock did not show it, was written by
    somebody who had lost the lock: a second look finds it.
    """
    try:
        return _write_once(bucket=bucket, run=run, now=now)
    except DatabaseError as error:
        if error_code(error) != DUPLICATE_KEY:
            raise
    return _write_once(bucket=bucket, run=run, now=now)


def _write_once(*, bucket: BucketRef, run: Attempt, now: datetime) -> tuple[Intake, int]:
    with transaction.atomic(durable=True):
        row = lock_bucket(bucket)
        facts = pool_facts(pool_id=bucket.pool_id)
        context = IntakeContext(
            row=row, queue_epoch=row.epoch, bucket=bucket, facts=facts, now=now, debt=owes_its_units
        )
        entries = _read_queue(row=row, bucket=bucket, entries_max=run.size)
        if run.is_killer:
            return park_killer(entries=entries, context=context, deaths=run.deaths), row.epoch
        return take_in(entries=entries, context=context), row.epoch


def _read_queue(*, row: Bucket, bucket: BucketRef, entries_max: int) -> list[QueueEntry | BadEntry]:
    """Read the head of the queue, under the lock: a batch read before it could be written after a rebuild."""
    try:
        snapshot = gate.snapshot(bucket=bucket, entries_max=entries_max)
    except NotPreheated as error:
        raise BucketUnsound("Redis has lost the bucket") from error
    if snapshot.epoch != row.epoch:
        raise BucketUnsound(f"the gate is of epoch {snapshot.epoch}, MySQL of {row.epoch}: it awaits its rebuild")
    require_all_commits(bucket=bucket, settled_seq=snapshot.settled_seq)
    foreign = {entry.epoch for entry in snapshot.entries if isinstance(entry, QueueEntry)} - {row.epoch}
    if foreign:
        raise QueueForked(f"the queue holds entries of epochs {sorted(foreign)} in epoch {row.epoch}")
    return list(snapshot.entries)


def _tell_redis(*, bucket: BucketRef, intake: Intake, epoch: int) -> int:
    """Confirm, release and drop what the committed batch decided; return how many entries left. Safe to repeat."""
    refused = [d for d in intake.decisions if d.state is ReservationState.REFUSED]
    settled = [d for d in intake.decisions if d.state is not ReservationState.REFUSED]
    settled_seq = max((d.seq for d in intake.decisions), default=0)
    moved = 0
    if settled:
        confirmations = [Confirmation(entry=d.entry) for d in settled]
        moved += gate.confirm(bucket=bucket, epoch=epoch, settled_seq=settled_seq, confirmations=confirmations)
    if refused:
        releases = [Release(entry=d.entry, units_owed=d.units_owed, reason=d.reason) for d in refused]
        moved += gate.release(bucket=bucket, epoch=epoch, settled_seq=settled_seq, releases=releases)
    if intake.parked:
        moved += gate.drop(bucket=bucket, epoch=epoch, stream_ids=intake.parked)
    return moved


def _close(*, bucket: BucketRef, error: QueueForked | CommitsLost, now: datetime) -> None:
    """Freeze the gate with a token that no rebuild has: the sweep finds it orphaned.

    It rebuilds after a fork. After lost commits a rebuild refuses until somebody accepts the loss.
    """
    kind = FORKED if isinstance(error, QueueForked) else COMMITS_LOST
    staging.freeze(bucket=bucket, token=kind)
    open_incident(kind=kind, severity=Severity.CRITICAL, bucket=bucket, detail=str(error), now=now)


def _stop(*, bucket: BucketRef, error: Exception, now: datetime) -> None:
    open_incident(kind=STOPPED, severity=Severity.CRITICAL, bucket=bucket, detail=str(error), now=now)
