"""Rebuild: the one door by which a bucket comes into Redis, at preheat and after any loss.

Claim in MySQL, freeze, every surviving entry into MySQL under a new epoch, staging filled from MySQL
without a lock, swap under the lock. Killed anywhere, it starts again; two at once cannot both
finish, because the claim, the token, the run id, the last stream id and the epoch must all still
be what they were.
"""

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from django.db import connection, transaction
from django.db.models import Sum

from seckill.conf import LIMITS
from seckill.errors import GateUnavailable, RebuildRefused
from seckill.gate import staging
from seckill.gate.entries import BadEntry, QueueEntry
from seckill.gate.keys import BucketRef
from seckill.gate.staging import Frozen, GateFields
from seckill.intake import Intake, IntakeContext, owes_nothing, park_unknown, take_in
from seckill.members import receipt_of
from seckill.models import Bucket, Reservation, SalePool
from seckill.outcomes import (
    highest_seq,
    in_order,
    is_on_sale,
    lock_bucket,
    next_numbers,
    pool_facts,
    require_all_commits,
    ticket_prices,
    units_unsold,
)
from seckill.pausing import paused_items
from seckill.rebuild_runs import begin_run, end_run, fail_run
from seckill.states import ReservationState
from seckill.stopping import adopt_stops

logger = logging.getLogger(__name__)

# Room between the last number seen and the first of the next epoch, in case the last was not seen.
SEQ_MARGIN = 10

PUT_ASIDE = "put aside by a rebuild that an operator asked for"


@dataclass(frozen=True, kw_only=True)
class Rebuilt:
    """What a rebuild did."""

    epoch: int
    drained: int
    refused: int
    parked: int


class Commits(StrEnum):
    """What a rebuild does when MySQL has forgotten commits: stock made from such books would be sold twice."""

    MUST_BE_THERE = "must be there"
    MAY_BE_LOST = "may be lost"


class Queue(StrEnum):
    """What a rebuild does with the entries that survived: one that MySQL cannot take would keep the bucket shut."""

    IS_DRAINED = "is drained"
    IS_PUT_ASIDE = "is put aside"


@dataclass(frozen=True, kw_only=True)
class Orders:
    """How a rebuild is to be done, and whether nobody has asked for it."""

    commits: Commits = Commits.MUST_BE_THERE
    queue: Queue = Queue.IS_DRAINED
    is_automatic: bool = False


PLAIN = Orders()


def rebuild_bucket(*, bucket: BucketRef, clock: Callable[[], datetime], orders: Orders = PLAIN) -> Rebuilt:
    """Make Redis say of a bucket what MySQL says, and open it.

    Raises ``RebuildRefused`` when another rebuild is at it or anything changed meanwhile,
    ``CommitsLost`` unless the caller accepts that, and ``GateUnavailable``; the gate stays shut
    then and the sweep tries again.
    """
    bury(bucket=bucket, now=clock())
    adopt_stops(bucket=bucket, now=clock())
    with transaction.atomic(durable=True):
        row = lock_bucket(bucket)
        if not is_on_sale(bucket):
            raise RebuildRefused(f"the sale of bucket {bucket} is not on")
        now = clock()
        token = claim(row=row, now=now)
        begin_run(row=row, token=token, is_automatic=orders.is_automatic, now=now)
    return rebuild_claimed(bucket=bucket, token=token, clock=clock, orders=orders)


def claim(*, row: Bucket, now: datetime) -> str:
    """Take the claim on a locked bucket and return its token.

    Raises ``RebuildRefused`` when a live rebuild holds it. A dead one is to be buried before: its token, by
    which alone its keys can be found, is forgotten now.
    """
    if row.claim_until is not None and row.claim_until > now:
        raise RebuildRefused(f"bucket {row} is being rebuilt")
    token = secrets.token_hex(8)
    Bucket.objects.filter(pk=row.pk).update(claim=token, claim_until=_lease_end(now))
    return token


def rebuild_claimed(*, bucket: BucketRef, token: str, clock: Callable[[], datetime], orders: Orders = PLAIN) -> Rebuilt:
    """Do the rebuild whose claim was taken with ``token``. Raises as ``rebuild_bucket``."""
    try:
        rebuilt = _rebuild(bucket=bucket, token=token, clock=clock, orders=orders)
    except Exception as error:
        let_go(bucket=bucket, token=token)
        fail_run(token=token, error=error, now=clock())
        raise
    let_go(bucket=bucket, token=token)
    end_run(token=token, now=clock(), **vars(rebuilt))
    return rebuilt


def _rebuild(*, bucket: BucketRef, token: str, clock: Callable[[], datetime], orders: Orders) -> Rebuilt:
    frozen = staging.freeze(bucket=bucket, token=token)
    epoch, drained = drain_survivors(
        bucket=bucket, frozen=frozen, commits=orders.commits, queue=orders.queue, clock=clock
    )
    _fill_staging(bucket=bucket, token=token, epoch=epoch, clock=clock)
    _swap(bucket=bucket, frozen=frozen, epoch=epoch, clock=clock)
    refused = sum(1 for d in drained.decisions if d.state is ReservationState.REFUSED)
    return Rebuilt(epoch=epoch, drained=len(drained.decisions), refused=refused, parked=len(drained.parked))


def drain_survivors(
    *,
    bucket: BucketRef,
    frozen: Frozen,
    commits: Commits,
    clock: Callable[[], datetime],
    queue: Queue = Queue.IS_DRAINED,
) -> tuple[int, Intake]:
    """Transaction 1: bring what survived in the queue into MySQL under a new epoch, or put it aside.

    Raises as ``rebuild_bucket``.
    """
    with transaction.atomic(durable=True):
        row = lock_bucket(bucket)
        now = clock()  # read under the lock: waiting for it may have outlasted the claim
        require_claim(row=row, token=frozen.token, now=now)
        if commits is Commits.MUST_BE_THERE:
            require_all_commits(bucket=bucket, settled_seq=frozen.settled_seq)
        queue_epoch = frozen.epoch or row.epoch
        row.epoch = max(row.epoch, frozen.epoch) + 1
        facts = pool_facts(pool_id=bucket.pool_id)
        context = IntakeContext(
            row=row, queue_epoch=queue_epoch, bucket=bucket, facts=facts, now=now, debt=owes_nothing
        )
        next_seq = _first_seq(bucket=bucket, frozen=frozen)
        drained = Intake()
        for chunk in staging.surviving_entries(bucket=bucket, chunk_size=LIMITS.chunk_size):
            if queue is Queue.IS_PUT_ASIDE:
                drained += park_unknown(entries=chunk, context=context, error=PUT_ASIDE)
                continue
            drained += take_in(entries=_renumbered(entries=chunk, epoch=row.epoch, first_seq=next_seq), context=context)
            next_seq += len(chunk)
        Bucket.objects.filter(pk=row.pk).update(epoch=row.epoch)
    return row.epoch, drained


def _renumbered(*, entries: Sequence[QueueEntry | BadEntry], epoch: int, first_seq: int) -> list[QueueEntry | BadEntry]:
    """Give entries that survived into a new epoch the numbers of that epoch."""
    return [
        replace(entry, epoch=epoch, seq=first_seq + n) if isinstance(entry, QueueEntry) else entry
        for n, entry in enumerate(entries)
    ]


def _first_seq(*, bucket: BucketRef, frozen: Frozen) -> int:
    return max(frozen.seq, highest_seq(bucket)) + SEQ_MARGIN


def _fill_staging(*, bucket: BucketRef, token: str, epoch: int, clock: Callable[[], datetime]) -> None:
    """Fill buyers and receipts from MySQL, in chunks, without a lock: the claim keeps the rows still."""
    staging.begin_staging(bucket=bucket, token=token, epoch=epoch)
    for rows in _chunks_of_reservations(bucket):
        _renew(bucket=bucket, token=token, now=clock())
        receipts = {row.order_no: receipt_of(row) for row in rows}
        staging.stage_receipts(bucket=bucket, token=token, receipts=receipts)
    for held in _chunks_of_buyers(bucket):
        _renew(bucket=bucket, token=token, now=clock())
        staging.stage_buyers(bucket=bucket, token=token, held=held)


def _chunks_of_reservations(bucket: BucketRef) -> Iterator[list[Reservation]]:
    """Read the reservations between two numbers at a time: with one end open, each chunk reads from the first row."""
    rows = in_order(bucket)
    for epoch in rows.order_by("epoch").values_list("epoch", flat=True).distinct():
        last = -1
        while numbers := next_numbers(bucket, epoch=epoch, after=last, count_max=LIMITS.chunk_size):
            first, last = numbers
            yield list(rows.filter(epoch=epoch, seq__gte=first, seq__lte=last))


def _chunks_of_buyers(bucket: BucketRef) -> Iterator[dict[str, int]]:
    rows = (
        Reservation.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number, state=ReservationState.SETTLED)
        .values_list("limit_key")
        .annotate(units=Sum("quantity"))
        .order_by("limit_key")
    )
    last_key = ""
    while chunk := dict(rows.filter(limit_key__gt=last_key)[: LIMITS.chunk_size]):
        yield chunk
        last_key = next(reversed(chunk))


def _swap(*, bucket: BucketRef, frozen: Frozen, epoch: int, clock: Callable[[], datetime]) -> None:
    """Transaction 2: the last numbers, then the swap, while nobody can change them."""
    with transaction.atomic(durable=True):
        row = lock_bucket(bucket)
        require_claim(row=row, token=frozen.token, now=clock())
        if row.epoch != epoch:
            raise RebuildRefused(f"bucket {bucket} has gone on to epoch {row.epoch}")
        gate = _gate_fields(row=row, bucket=bucket, frozen=frozen)
        left, prices = units_unsold(row=row), ticket_prices(pool_id=bucket.pool_id)
        staging.stage_gate(bucket=bucket, frozen=frozen, gate=gate, left=left, prices=prices)
        Bucket.objects.filter(pk=row.pk).update(run_id=frozen.run_id)
        staging.swap(bucket=bucket, frozen=frozen, epoch=epoch)


def _gate_fields(*, row: Bucket, bucket: BucketRef, frozen: Frozen) -> GateFields:
    pool = SalePool.objects.select_related("sale").get(pk=bucket.pool_id)
    settled_seq = highest_seq(bucket)
    return GateFields(
        epoch=row.epoch,
        opens_ms=staging.milliseconds(pool.sale.opens_at),
        closes_ms=staging.milliseconds(pool.sale.closes_at),
        limit=pool.limit_per_buyer,
        max_queue=pool.max_queue,
        seq=max(settled_seq, frozen.seq) + SEQ_MARGIN,
        settled_seq=settled_seq,
        adj_no=row.adj_no,
        window_no=pool.sale.window_no,
        repair_no=row.repair_no,
        paused_items=paused_items(pool_id=pool.pk),
        buckets=Bucket.objects.filter(pool_id=pool.pk).count(),
    )


def require_claim(*, row: Bucket, token: str, now: datetime) -> None:
    """Raise ``RebuildRefused`` where a locked row's claim is lost; one that has run out is lost for good."""
    if row.claim != token or row.claim_until is None or row.claim_until <= now:
        raise RebuildRefused(f"the rebuild of bucket {row} has lost its claim")


def _renew(*, bucket: BucketRef, token: str, now: datetime) -> None:
    mine = Bucket.objects.filter(pool_id=bucket.pool_id, number=bucket.number, claim=token, claim_until__gt=now)
    if mine.update(claim_until=_lease_end(now)) != 1:
        raise RebuildRefused(f"the rebuild of bucket {bucket} has lost its claim")


def let_go(*, bucket: BucketRef, token: str) -> None:
    """End the claim and remove the token's trash and staging; what Redis keeps now, the sweep removes later."""
    connection.close_if_unusable_or_obsolete()
    Bucket.objects.filter(pool_id=bucket.pool_id, number=bucket.number, claim=token).update(claim_until=None)
    remove_leavings(bucket=bucket, token=token)


def bury(*, bucket: BucketRef, now: datetime) -> None:
    """Remove the keys of a rebuild whose claim has run out or was let go, and forget its token.

    Raises ``GateUnavailable``, and the token is kept.
    """
    row = Bucket.objects.get(pool_id=bucket.pool_id, number=bucket.number)
    if row.claim and (row.claim_until is None or row.claim_until <= now):
        staging.unlink_leavings(bucket=bucket, token=row.claim)
        Bucket.objects.filter(pk=row.pk, claim=row.claim).update(claim="")


def remove_leavings(*, bucket: BucketRef, token: str) -> None:
    """Remove a dead or finished rebuild's keys and forget its token; if Redis is away, both stay for the next time."""
    try:
        staging.unlink_leavings(bucket=bucket, token=token)
    except GateUnavailable as error:
        logger.warning("keys of rebuild %s of bucket %s are still to be removed: %s", token, bucket, error)
        return
    Bucket.objects.filter(pool_id=bucket.pool_id, number=bucket.number, claim=token).update(claim="")


def _lease_end(now: datetime) -> datetime:
    return now + timedelta(seconds=LIMITS.claim_seconds)
