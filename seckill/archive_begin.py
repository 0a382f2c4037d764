"""The beginning of an archive: which sale may begin, and the one transaction that ends its life in Redis."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, transaction
from django.utils.translation import gettext as _

from inventory.changes import ChangeState
from seckill.archive_tables import ArchiveRun, ArchiveStage
from seckill.change_tables import ItemAdjustment, WindowChange
from seckill.dead_letters import require_no_dead_letters
from seckill.errors import ArchiveWaits, GateUnavailable, SaleNotReady
from seckill.gate import gate
from seckill.gate.gate import Snapshot
from seckill.gate.keys import BucketRef
from seckill.incidents import resolve_incident
from seckill.models import Bucket, FlashSale, ItemBucket
from seckill.selectors import buckets_of
from seckill.states import SaleState
from seckill.sweep import examine
from seckill.transfer_tables import Transfer
from seckill.transient import is_transient

BLOCKED = "archive_blocked"


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """What an operator gives up so that an archive can go on."""

    dead_letters: bool = False
    lost_commits: bool = False


def due_sales(*, now: datetime) -> list[int]:
    """Sales that were over so long ago that they are to be archived by themselves."""
    delay = timedelta(minutes=settings.SECKILL["archive_delay_minutes"])
    due = FlashSale.objects.filter(state=SaleState.PREHEATED, closes_at__lte=now - delay).order_by("closes_at")
    return list(due.values_list("pk", flat=True))


def sales_under_archive() -> list[int]:
    """Sales whose archive has begun and is not done."""
    return list(FlashSale.objects.filter(state=SaleState.ARCHIVING).order_by("closes_at").values_list("pk", flat=True))


def begin(*, sale_id: int, accepted: Accepted, now: datetime) -> None:
    """Set a sale to ``ARCHIVING`` and make a run for each of its buckets.

    From then on returned units go to the warehouse, and neither rebuild nor repair touches Redis.
    Raises ``SaleNotReady`` (not preheated, or not over), ``ArchiveWaits``, ``ArchiveBlocked``,
    ``GateUnavailable``; nothing is changed then.
    """
    _require_ended(sale=FlashSale.objects.filter(pk=sale_id).first(), sale_id=sale_id, now=now)
    seen = _look(sale_id=sale_id, accepted=accepted)
    try:
        _begin(sale_id=sale_id, seen=seen, accepted=accepted, now=now)
    except DatabaseError as error:
        if not is_transient(error):
            raise
        raise ArchiveWaits("the database is busy; nothing was changed") from error
    for bucket in seen:
        resolve_incident(kind=BLOCKED, bucket=bucket, now=now)


def explain(*, sale_id: int, accepted: Accepted, now: datetime) -> str:
    """Say whether an archive could begin now, and why not. Changes nothing."""
    if sale_id in sales_under_archive():
        return "its archive has begun and would go on"
    try:
        _require_ended(sale=FlashSale.objects.filter(pk=sale_id).first(), sale_id=sale_id, now=now)
        seen = _look(sale_id=sale_id, accepted=accepted)
    except (SaleNotReady, ArchiveWaits, GateUnavailable) as error:
        return f"cannot be archived now: {str(error) or type(error).__name__}"
    rows = ItemBucket.objects.filter(item__pool__sale_id=sale_id).values_list("allocated", "sold")
    allocated, sold = (sum(units) for units in zip(*rows, strict=True))
    queued = sum(sum(snapshot.queued.values()) for snapshot in seen.values())
    return (
        f"would be archived: {len(seen)} buckets, {sold} units sold, {queued} in the queue,"
        f" {allocated - sold - queued} left over"
    )


def _look(*, sale_id: int, accepted: Accepted) -> dict[BucketRef, Snapshot]:
    """Look at a sale's buckets in Redis. Raises ``ArchiveWaits``, ``ArchiveBlocked``, ``GateUnavailable``."""
    seen = {bucket: _look_at(bucket) for bucket in buckets_of(sale_id=sale_id)}
    for bucket in seen:
        require_no_dead_letters(bucket=bucket, is_accepted=accepted.dead_letters)
    return seen


def _begin(*, sale_id: int, seen: dict[BucketRef, Snapshot], accepted: Accepted, now: datetime) -> None:
    with transaction.atomic(durable=True):
        sale = FlashSale.objects.select_for_update().filter(pk=sale_id).first()
        _require_ended(sale=sale, sale_id=sale_id, now=now)
        _require_no_change_under_way(sale_id)
        rows = list(Bucket.objects.select_for_update().filter(pool__sale_id=sale_id).order_by("pool_id", "number"))
        _require_no_transfer_under_way(rows)
        for row in rows:
            _void_claim(row=row, now=now)
            bucket = BucketRef(pool_id=row.pool_id, number=row.number)
            # Again, under the lock: whoever decides a letter holds it.
            require_no_dead_letters(bucket=bucket, is_accepted=accepted.dead_letters)
        FlashSale.objects.filter(pk=sale_id).update(state=SaleState.ARCHIVING)
        ArchiveRun.objects.bulk_create(_new_run(row=row, seen=seen, accepted=accepted, now=now) for row in rows)


def _require_ended(*, sale: FlashSale | None, sale_id: int, now: datetime) -> None:
    if sale is None:
        raise SaleNotReady(_("there is no sale {sale_id}").format(sale_id=sale_id))
    if sale.state != SaleState.PREHEATED:
        raise SaleNotReady(
            _("the sale is {state}; only one that is preheated and over is archived").format(
                state=sale.get_state_display()
            )
        )
    if sale.closes_at > now:
        until = f"{sale.closes_at:%Y-%m-%d %H:%M:%S} UTC"
        raise SaleNotReady(_("the sale is open until {until}").format(until=until))


def _require_no_change_under_way(sale_id: int) -> None:
    """Wait while half of an adjustment is made, or a new window is not in every gate yet; the sale is locked."""
    adjustments = ItemAdjustment.objects.filter(item__pool__sale_id=sale_id, open_key__isnull=False)
    windows = WindowChange.objects.filter(sale_id=sale_id, state=ChangeState.APPROVED, window_no__isnull=False)
    if adjustments.exists() or windows.exists():
        raise ArchiveWaits("an approved change is being applied")


def _require_no_transfer_under_way(rows: list[Bucket]) -> None:
    """Wait while units are between two buckets; these are locked, so that no transfer begins any more."""
    pool_ids = {row.pool_id for row in rows}
    if Transfer.objects.filter(pool_id__in=pool_ids, finished_at__isnull=True).exists():
        raise ArchiveWaits("units are on their way from one bucket to another")


def _look_at(bucket: BucketRef) -> Snapshot:
    if damage := examine(bucket=bucket):
        raise ArchiveWaits(f"bucket {bucket} is to be rebuilt first: {damage}")
    return gate.snapshot(bucket=bucket, entries_max=0)


def _void_claim(*, row: Bucket, now: datetime) -> None:
    """Refuse while a rebuild is at it; one whose claim ran out must not wake up and swap."""
    if row.claim_until is not None and row.claim_until > now:
        raise ArchiveWaits(f"bucket {row} is being rebuilt")
    Bucket.objects.filter(pk=row.pk).update(claim_until=None)


def _new_run(*, row: Bucket, seen: dict[BucketRef, Snapshot], accepted: Accepted, now: datetime) -> ArchiveRun:
    snapshot = seen[BucketRef(pool_id=row.pool_id, number=row.number)]
    at_begin = {"queue_length": snapshot.queue_length, "seq": snapshot.seq, "settled_seq": snapshot.settled_seq}
    return ArchiveRun(
        pool_id=row.pool_id,
        bucket_no=row.number,
        epoch=row.epoch,
        accepts_dead_letters=accepted.dead_letters,
        accepts_lost_commits=accepted.lost_commits,
        manifest={"at_begin": at_begin, "reached": {ArchiveStage.CLAIMED.value: now.isoformat()}},
        started_at=now,
    )
