"""Reconciliation: law 7 by numbers, members one by one, and the ledger, for one bucket.

``allocated = sold + left in Redis + queued and not yet in MySQL + owed to Redis + half of an adjustment or transfer``,
per item. What is in flight is never drift: the bucket's lock holds MySQL still, one script reads Redis, and since
settlement is in order, only the head of the queue can be known to MySQL already.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction

from metrics.definitions import RECONCILIATIONS
from seckill.adjusting import link_to_adjustments, units_under_way
from seckill.archive_tables import require_no_archive
from seckill.audit import Books, audit_bucket
from seckill.closing import close_what_is_over
from seckill.conf import LIMITS
from seckill.decisions import Fate
from seckill.errors import CommitsLost, GateUnavailable, NotPreheated
from seckill.gate import gate
from seckill.gate.entries import QueueEntry
from seckill.gate.gate import Snapshot
from seckill.gate.keys import BucketRef
from seckill.gate.receipts import ReceiptState
from seckill.incidents import Severity, open_incident, resolve_incident
from seckill.mending import Extent, MembersReport, Treatment, as_plain, compare_members
from seckill.models import ItemBucket, ReconciliationRun, Reservation
from seckill.outcomes import known_fates, lock_bucket, require_all_commits
from seckill.returns import debts_of, pay_debts
from seckill.settlement import settle_bucket
from seckill.states import ReservationState
from seckill.transfers import units_in_transit

Verdict = ReconciliationRun.Verdict

DRIFT = "drift"
# Units that the column of a run can hold.
DRIFT_MAX = 2_147_483_647


@dataclass(frozen=True, kw_only=True)
class ItemBalance:
    """The terms of law 7 for one item, in units."""

    item_id: int
    allocated: int
    sold: int
    left: int
    in_flight: int
    owed: int
    adjusting: int = 0

    @property
    def drift(self) -> int:
        """Units missing in Redis (leak) if positive, units too many (excess) if negative."""
        return self.allocated - self.sold - self.left - self.in_flight - self.owed - self.adjusting


@dataclass(frozen=True, kw_only=True)
class BucketReport:
    """What one reconciliation found."""

    bucket: BucketRef
    verdict: ReconciliationRun.Verdict
    items: tuple[ItemBalance, ...] = ()
    epoch: int = 0
    adj_no: int = 0
    repair_no: int = 0
    explanation: str = ""
    members: MembersReport | None = None
    books: tuple[Books, ...] = ()

    @property
    def is_balanced(self) -> bool:
        """Whether every number, every member looked at and the ledger are right; what was not seen is not."""
        is_seen_right = self.members is not None and self.members.is_balanced and not self.books
        return self.verdict == Verdict.BALANCED and is_seen_right

    @property
    def is_seen(self) -> bool:
        """Whether everything could be looked at."""
        return self.verdict != Verdict.UNAVAILABLE and self.members is not None

    @property
    def drift(self) -> int:
        """The items' drift, added up by absolute size, as far as a column can hold it."""
        return min(DRIFT_MAX, sum(abs(item.drift) for item in self.items))


def reconcile_bucket(
    *,
    bucket: BucketRef,
    clock: Callable[[], datetime],
    extent: Extent = Extent.WINDOW,
    treatment: Treatment = Treatment.LOOK,
) -> BucketReport:
    """Settle what waits, pay what Redis is owed, compare, and record the run.

    Repairs no number; members are mended where that is the ``treatment``.
    """
    began_at = clock()
    try:
        settle_bucket(bucket=bucket, clock=clock)
        pay_debts(bucket=bucket, now=clock())
        report = _compare(bucket)
    except (GateUnavailable, NotPreheated, CommitsLost) as error:
        report = BucketReport(bucket=bucket, verdict=Verdict.UNAVAILABLE, explanation=str(error))
    else:
        report = _with_members(report=report, clock=clock, extent=extent, treatment=treatment)
        report = replace(report, books=tuple(audit_bucket(bucket=bucket, now=clock())))
    _record(report=report, now=clock())
    if report.is_balanced and report.members is not None and report.members.clean_since is not None:
        balanced_since = min(began_at, report.members.clean_since)
        close_what_is_over(bucket=bucket, balanced_since=balanced_since, now=clock())
    return report


def compare_now(*, bucket: BucketRef) -> BucketReport:
    """Compare as things stand: nothing is settled, repaired or recorded.

    Raises ``GateUnavailable``, ``NotPreheated``, ``CommitsLost``.
    """
    return _compare(bucket)


def _with_members(
    *, report: BucketReport, clock: Callable[[], datetime], extent: Extent, treatment: Treatment
) -> BucketReport:
    """Add what the members say; a bucket that is lost between the two looks keeps its numbers."""
    try:
        members = compare_members(bucket=report.bucket, clock=clock, extent=extent, treatment=treatment)
    except (GateUnavailable, NotPreheated, CommitsLost) as error:
        return replace(report, explanation=str(error) or type(error).__name__)
    return replace(report, members=members)


def _record(*, report: BucketReport, now: datetime) -> None:
    """Keep the run, and have an incident open exactly while the numbers differ."""
    bucket = report.bucket
    run = ReconciliationRun.objects.create(
        pool_id=bucket.pool_id,
        bucket_no=bucket.number,
        epoch=report.epoch,
        adj_no=report.adj_no,
        repair_no=report.repair_no,
        verdict=report.verdict,
        drift=report.drift,
        numbers=[vars(item) | {"drift": item.drift} for item in report.items],
        members=as_plain(report.members),
        created_at=now,
    )
    RECONCILIATIONS.labels(report.verdict.lower()).inc()
    if report.verdict != Verdict.UNAVAILABLE:
        link_to_adjustments(run=run)
    if report.verdict == Verdict.BALANCED:
        resolve_incident(kind=DRIFT, bucket=bucket, now=now)
    elif report.verdict != Verdict.UNAVAILABLE:
        detail = "; ".join(f"item {item.item_id}: {item.drift:+d}" for item in report.items if item.drift)
        severity = Severity.CRITICAL
        open_incident(kind=DRIFT, severity=severity, bucket=bucket, detail=detail, now=now, units=report.drift)


def _compare(bucket: BucketRef) -> BucketReport:
    with transaction.atomic(durable=True):
        row = lock_bucket(bucket)
        debts = debts_of(bucket=bucket, count_max=LIMITS.batch_size + 1)
        if len(debts) > LIMITS.batch_size:
            raise GateUnavailable("too many returns are owed to Redis to count them in one look")
        numbers = [debt.order_no for debt in debts]
        snapshot = gate.snapshot(bucket=bucket, entries_max=LIMITS.batch_size, order_numbers=numbers)
        if snapshot.is_frozen or snapshot.epoch != row.epoch:
            raise GateUnavailable("the bucket awaits its rebuild")
        if snapshot.is_sealed:
            raise GateUnavailable("the bucket is being archived")
        require_no_archive(bucket)
        require_all_commits(bucket=bucket, settled_seq=snapshot.settled_seq)
        fates = known_fates(order_numbers=[e.order_no for e in snapshot.entries if isinstance(e, QueueEntry)])
        adjusting = Counter(units_under_way(bucket=bucket, snapshot=snapshot))
        adjusting.update(units_in_transit(bucket=bucket, snapshot=snapshot))
        units = list(ItemBucket.objects.filter(bucket_id=row.pk).order_by("item_id"))
    queued = _queued_units(snapshot=snapshot, fates=fates)
    returned = _owed_units(snapshot=snapshot, debts=debts)
    items = tuple(
        ItemBalance(
            item_id=unit.item_id,
            allocated=unit.allocated,
            sold=unit.sold,
            left=snapshot.left.get(unit.item_id, 0),
            in_flight=queued.in_flight.get(unit.item_id, 0),
            owed=queued.owed.get(unit.item_id, 0) + returned.get(unit.item_id, 0),
            adjusting=adjusting.get(unit.item_id, 0),
        )
        for unit in units
    )
    return BucketReport(
        bucket=bucket,
        verdict=_verdict(items),
        items=items,
        epoch=snapshot.epoch,
        adj_no=snapshot.adj_no,
        repair_no=snapshot.repair_no,
    )


@dataclass(frozen=True, kw_only=True)
class _Queued:
    """Units per item in the queue: not yet in MySQL, and owed though MySQL has refused them."""

    in_flight: Mapping[int, int]
    owed: Mapping[int, int]


def _queued_units(*, snapshot: Snapshot, fates: Mapping[str, Fate]) -> _Queued:
    """Count the queue: entry by entry where all of it was read, else from the counter less what MySQL knows.

    The counter alone would still hold the units of an entry that was lost or parked.
    """
    known, unknown, owed = Counter[int](), Counter[int](), Counter[int]()
    for entry in snapshot.entries:
        if not isinstance(entry, QueueEntry):
            continue
        fate = fates.get(entry.order_no)
        (unknown if fate is None else known)[entry.item_id] += entry.quantity
        if fate is not None and fate.state is ReservationState.REFUSED:
            owed[entry.item_id] += fate.units_owed
    if snapshot.queue_length <= len(snapshot.entries):
        return _Queued(in_flight=unknown, owed=owed)
    return _Queued(in_flight={item: units - known[item] for item, units in snapshot.queued.items()}, owed=owed)


def _owed_units(*, snapshot: Snapshot, debts: Sequence[Reservation]) -> dict[int, int]:
    """Units per item of returned reservations that Redis was not told about: their receipts say so."""
    owed: dict[int, int] = defaultdict(int)
    for debt in debts:
        receipt = snapshot.receipts.get(debt.order_no)
        if receipt is not None and receipt.state in {ReceiptState.QUEUED, ReceiptState.CONFIRMED}:
            owed[debt.item_id] += debt.units_owed
    return owed


def _verdict(items: tuple[ItemBalance, ...]) -> ReconciliationRun.Verdict:
    if any(item.drift < 0 for item in items):
        return Verdict.EXCESS
    return Verdict.LEAK if any(item.drift > 0 for item in items) else Verdict.BALANCED
