"""Reconciliation: law 7 by numbers, for one bucket at one instant, read-only.

``allocated = sold + left in Redis + queued and not yet in MySQL + owed to Redis``, per item. What is in
flight is never drift: the bucket's lock holds MySQL still, one script reads Redis, and since
settlement is in order, only the head of the queue can be known to MySQL already.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from seckill.conf import LIMITS
from seckill.decisions import Fate
from seckill.errors import GateUnavailable, NotPreheated
from seckill.gate import gate
from seckill.gate.entries import QueueEntry
from seckill.gate.gate import Snapshot
from seckill.gate.keys import BucketRef
from seckill.models import ItemBucket, ReconciliationRun
from seckill.outcomes import known_fates, lock_bucket
from seckill.settlement import settle_bucket
from seckill.states import ReservationState

Verdict = ReconciliationRun.Verdict


@dataclass(frozen=True, kw_only=True)
class ItemBalance:
    """The terms of law 7 for one item, in units."""

    item_id: int
    allocated: int
    sold: int
    left: int
    in_flight: int
    owed: int

    @property
    def drift(self) -> int:
        """Units missing in Redis (leak) if positive, units too many (excess) if negative."""
        return self.allocated - self.sold - self.left - self.in_flight - self.owed


@dataclass(frozen=True, kw_only=True)
class BucketReport:
    """What one reconciliation found."""

    bucket: BucketRef
    verdict: ReconciliationRun.Verdict
    items: tuple[ItemBalance, ...]
    explanation: str = ""

    @property
    def drift(self) -> int:
        """The items' drift, added up by absolute size."""
        return sum(abs(item.drift) for item in self.items)


def reconcile_bucket(*, bucket: BucketRef, clock: Callable[[], datetime]) -> BucketReport:
    """Settle what waits, compare, and record the run. Changes no stock."""
    try:
        settle_bucket(bucket=bucket, clock=clock)
        report = _compare(bucket)
    except (GateUnavailable, NotPreheated) as error:
        report = BucketReport(bucket=bucket, verdict=Verdict.UNAVAILABLE, items=(), explanation=str(error))
    ReconciliationRun.objects.create(
        pool_id=bucket.pool_id,
        bucket_no=bucket.number,
        verdict=report.verdict,
        drift=report.drift,
        numbers=[vars(item) | {"drift": item.drift} for item in report.items],
        created_at=clock(),
    )
    return report


def _compare(bucket: BucketRef) -> BucketReport:
    with transaction.atomic(durable=True):
        row = lock_bucket(bucket)
        snapshot = gate.snapshot(bucket=bucket, entries_max=LIMITS.batch_size)
        if snapshot.is_frozen or snapshot.epoch != row.epoch:
            raise GateUnavailable("the bucket awaits its rebuild")
        fates = known_fates(order_numbers=[e.order_no for e in snapshot.entries if isinstance(e, QueueEntry)])
        units = list(ItemBucket.objects.filter(bucket_id=row.pk).order_by("item_id"))
    items = tuple(
        _balance(unit=unit, snapshot=snapshot, known=_known_units(snapshot=snapshot, fates=fates)) for unit in units
    )
    return BucketReport(bucket=bucket, verdict=_verdict(items), items=items)


def _known_units(*, snapshot: Snapshot, fates: Mapping[str, Fate]) -> dict[int, tuple[int, int]]:
    """Per item: units of entries still queued though MySQL knows them, and what refused ones of them are owed."""
    known: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for entry in snapshot.entries:
        if isinstance(entry, QueueEntry) and (fate := fates.get(entry.order_no)) is not None:
            queued, owed = known[entry.item_id]
            refused = fate.state is ReservationState.REFUSED
            known[entry.item_id] = (queued + entry.quantity, owed + (fate.units_owed if refused else 0))
    return known


def _balance(*, unit: ItemBucket, snapshot: Snapshot, known: Mapping[int, tuple[int, int]]) -> ItemBalance:
    known_queued, owed = known[unit.item_id]
    return ItemBalance(
        item_id=unit.item_id,
        allocated=unit.allocated,
        sold=unit.sold,
        left=snapshot.left.get(unit.item_id, 0),
        in_flight=snapshot.queued.get(unit.item_id, 0) - known_queued,
        owed=owed,
    )


def _verdict(items: tuple[ItemBalance, ...]) -> ReconciliationRun.Verdict:
    if any(item.drift < 0 for item in items):
        return Verdict.EXCESS
    return Verdict.LEAK if any(item.drift > 0 for item in items) else Verdict.BALANCED
