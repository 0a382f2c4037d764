"""Settlement: drains a bucket's queue into MySQL, in batches, one writer per bucket.

A batch is: lock the bucket, then read the head of the queue, decide, write, commit, then tell Redis.
Whatever dies in between, the next run finds the entries still in the queue and their order numbers
known, and only tells Redis again. ``try`` stands outside the transaction, always.
"""

import logging
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from django.db import DatabaseError, connection, transaction

from seckill.conf import LIMITS
from seckill.dead_letters import as_bad, park, split_readable
from seckill.decisions import Decision
from seckill.errors import GateUnavailable, NotPreheated, QueueForked, SettlementError
from seckill.gate import gate, staging
from seckill.gate.entries import BadEntry, QueueEntry
from seckill.gate.gate import Confirmation, Release
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_incident, resolve_incident
from seckill.models import Bucket
from seckill.outcomes import PoolFacts, decide_entries, lock_bucket, pool_facts, write_decisions, write_reservations
from seckill.states import RefusalReason, ReservationState

logger = logging.getLogger(__name__)

# The only errors that are about one row and refuse it: NULL, out of range, bad character, too long,
# missing parent, unsigned underflow, and a violated CHECK (MySQL 3819, MariaDB 4025).
ROW_ERRORS = frozenset({1048, 1264, 1366, 1406, 1452, 1690, 3819, 4025})
# Lock wait, deadlock, server gone, connection lost: nothing is known to be wrong, try again.
# MariaDB also ends a connection that idled in its transaction (4031 and 1927).
TRANSIENT_ERRORS = frozenset({1205, 1213, 1927, 2002, 2003, 2006, 2013, 4031})

STOPPED = "settlement_stopped"
FORKED = "queue_forked"
FORK_TOKEN = "fork"  # noqa: S105  not a password: the name of who froze the gate


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What one transaction did with the head of the queue."""

    decisions: Sequence[Decision]
    parked: Sequence[str]
    epoch: int

    @property
    def settled_seq(self) -> int:
        """The highest sequence number MySQL now knows of this batch."""
        return max((decision.entry.seq for decision in self.decisions), default=0)


def settle_bucket(*, bucket: BucketRef, clock: Callable[[], datetime]) -> int:
    """Settle until a read makes no progress; return how many entries left the queue.

    Does nothing when another worker is at it. Raises ``GateUnavailable`` (Redis), and whatever the
    database says that is neither about a row nor passing: then an incident is open, the queue is
    as it was and nobody is refused.
    """
    with _only_one(bucket) as is_mine:
        return _drain(bucket=bucket, clock=clock) if is_mine else 0


def _drain(*, bucket: BucketRef, clock: Callable[[], datetime]) -> int:
    settled, size = 0, LIMITS.batch_size
    for _ in range(LIMITS.batches_per_task_max):
        try:
            moved = settle_batch(bucket=bucket, size=size, now=clock())
        except DatabaseError as error:
            if (smaller := _after_error(bucket=bucket, error=error, size=size, now=clock())) is None:
                return settled
            size = smaller
            continue
        except QueueForked as error:
            _close_for_rebuild(bucket=bucket, error=error, now=clock())
            return settled
        except SettlementError as error:
            _stop(bucket=bucket, error=error, now=clock())
            raise
        if moved == 0:
            break
        settled += moved
        size = min(LIMITS.batch_size, size * 2)
    if settled:
        resolve_incident(kind=STOPPED, bucket=bucket, now=clock())
    return settled


def settle_batch(*, bucket: BucketRef, size: int, now: datetime) -> int:
    """Settle up to ``size`` entries with one transaction; return how many left the queue."""
    try:
        batch = _write_batch(bucket=bucket, size=size, now=now)
    except NotPreheated as error:
        raise GateUnavailable("Redis has lost the bucket") from error
    _report_phantoms(bucket=bucket, batch=batch, now=now)
    return _tell_redis(bucket=bucket, batch=batch)


def _write_batch(*, bucket: BucketRef, size: int, now: datetime) -> Batch:
    with transaction.atomic(durable=True):
        row = lock_bucket(bucket)
        facts = pool_facts(pool_id=bucket.pool_id)
        readable, bad = _read_queue(row=row, bucket=bucket, size=size, facts=facts)
        decisions = decide_entries(row=row, bucket=bucket, entries=readable, facts=facts)
        write_decisions(row=row, bucket=bucket, decisions=decisions, facts=facts, now=now)
        parked = park(bucket=bucket, epoch=row.epoch, entries=bad, now=now)
    return Batch(decisions=decisions, parked=parked, epoch=row.epoch)


def _read_queue(
    *, row: Bucket, bucket: BucketRef, size: int, facts: PoolFacts
) -> tuple[list[QueueEntry], list[BadEntry]]:
    """Read the head of the queue, under the lock: a batch read before it could be written after a rebuild."""
    snapshot = gate.snapshot(bucket=bucket, entries_max=size)
    if snapshot.epoch != row.epoch:
        raise GateUnavailable(f"the gate is of epoch {snapshot.epoch}, MySQL of {row.epoch}: it awaits its rebuild")
    readable, bad = split_readable(entries=snapshot.entries, facts=facts)
    if foreign := {entry.epoch for entry in readable} - {row.epoch}:
        raise QueueForked(f"the queue holds entries of epochs {sorted(foreign)} in epoch {row.epoch}")
    return readable, bad


def _tell_redis(*, bucket: BucketRef, batch: Batch) -> int:
    """Confirm, release and drop what the committed batch decided. Safe to repeat."""
    refused = [d for d in batch.decisions if d.state is ReservationState.REFUSED]
    settled = [d for d in batch.decisions if d.state is not ReservationState.REFUSED]
    moved = 0
    if settled:
        moved += gate.confirm(
            bucket=bucket,
            epoch=batch.epoch,
            settled_seq=batch.settled_seq,
            confirmations=[Confirmation(entry=d.entry) for d in settled],
        )
    if refused:
        moved += gate.release(
            bucket=bucket,
            epoch=batch.epoch,
            settled_seq=batch.settled_seq,
            releases=[Release(entry=d.entry, units_owed=d.units_owed, reason=d.reason) for d in refused],
        )
    if batch.parked:
        moved += gate.drop(bucket=bucket, epoch=batch.epoch, stream_ids=batch.parked)
    return moved


def _report_phantoms(*, bucket: BucketRef, batch: Batch, now: datetime) -> None:
    """Raise the alarm where Redis sold what MySQL does not have, or tells another story of an order."""
    phantoms = [d for d in batch.decisions if d.is_new and d.reason == RefusalReason.PHANTOM]
    if phantoms:
        units = sum(d.entry.quantity for d in phantoms)
        detail = f"Redis sold {units} units that MySQL does not have, first to order {phantoms[0].entry.order_no}"
        open_incident(kind="phantom", severity=Severity.CRITICAL, bucket=bucket, detail=detail, now=now)
    for decision in batch.decisions:
        if decision.contradicts_row:
            detail = f"Redis and MySQL differ about order {decision.entry.order_no}"
            open_incident(kind="order_differs", severity=Severity.CRITICAL, bucket=bucket, detail=detail, now=now)


def _after_error(*, bucket: BucketRef, error: DatabaseError, size: int, now: datetime) -> int | None:
    """Say how to go on: a smaller batch after a row's error, None after a passing one.

    A row that stands alone is refused. Raises anything else, with an incident.
    """
    code = error.args[0] if error.args else None
    if code in TRANSIENT_ERRORS:
        logger.warning("settlement of bucket %s is interrupted: %s", bucket, error)
        connection.close()
        return None
    if code in ROW_ERRORS:
        if size == 1:
            _refuse_head(bucket=bucket, error=error, now=now)
        return max(1, size // 2)
    _stop(bucket=bucket, error=error, now=now)
    raise error


def _refuse_head(*, bucket: BucketRef, error: DatabaseError, now: datetime) -> None:
    """Write the tombstone of the first entry, which cannot be written as an order; park it if even that fails."""
    try:
        with transaction.atomic(durable=True):
            batch = _write_tombstone(bucket=bucket, now=now)
    except DatabaseError as second:
        if not second.args or second.args[0] not in ROW_ERRORS:
            raise
        with transaction.atomic(durable=True):
            batch = _park_head(bucket=bucket, error=second, now=now)
    detail = f"an entry could not be written: {error}"
    open_incident(kind="row_refused", severity=Severity.WARNING, bucket=bucket, detail=detail, now=now)
    _tell_redis(bucket=bucket, batch=batch)


def _write_tombstone(*, bucket: BucketRef, now: datetime) -> Batch:
    row = lock_bucket(bucket)
    facts = pool_facts(pool_id=bucket.pool_id)
    entries, _ = _read_queue(row=row, bucket=bucket, size=1, facts=facts)
    decisions = decide_entries(row=row, bucket=bucket, entries=entries, facts=facts)
    refused = [_as_refused(decision) if decision.is_new else decision for decision in decisions]
    write_reservations(bucket=bucket, decisions=[d for d in refused if d.is_new], now=now)
    return Batch(decisions=refused, parked=[], epoch=row.epoch)


def _as_refused(decision: Decision) -> Decision:
    """What would have been settled was a real unit, so it is owed."""
    if decision.state is ReservationState.REFUSED:
        return decision
    return Decision(
        entry=decision.entry,
        state=ReservationState.REFUSED,
        reason=RefusalReason.INVALID.value,
        units_owed=decision.entry.quantity,
        is_new=True,
    )


def _park_head(*, bucket: BucketRef, error: DatabaseError, now: datetime) -> Batch:
    row = lock_bucket(bucket)
    facts = pool_facts(pool_id=bucket.pool_id)
    entries, _ = _read_queue(row=row, bucket=bucket, size=1, facts=facts)
    bad = [as_bad(entry=entry, error=str(error)) for entry in entries]
    return Batch(decisions=[], parked=park(bucket=bucket, epoch=row.epoch, entries=bad, now=now), epoch=row.epoch)


def _close_for_rebuild(*, bucket: BucketRef, error: QueueForked, now: datetime) -> None:
    """Freeze the gate with a token no rebuild has: the sweep finds it orphaned and rebuilds."""
    staging.freeze(bucket=bucket, token=FORK_TOKEN)
    open_incident(kind=FORKED, severity=Severity.CRITICAL, bucket=bucket, detail=str(error), now=now)


def _stop(*, bucket: BucketRef, error: Exception, now: datetime) -> None:
    open_incident(kind=STOPPED, severity=Severity.CRITICAL, bucket=bucket, detail=str(error), now=now)


@contextmanager
def _only_one(bucket: BucketRef) -> Iterator[bool]:
    """Thin out duplicate wake-ups: whoever comes second leaves at once. No law depends on it."""
    database = zlib.crc32(str(connection.settings_dict["NAME"]).encode())  # names of locks are short, and server-wide
    name = f"seckill:{database}:settle:{bucket}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, 0)", [name])
        is_mine = cursor.fetchone()[0] == 1
    try:
        yield is_mine
    finally:
        if is_mine and connection.connection is not None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT RELEASE_LOCK(%s)", [name])
