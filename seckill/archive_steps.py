"""The steps of an archive run: for each stage what leads to the next one. Each is bounded and safe to repeat."""

from collections.abc import Callable, Mapping

from django.db import transaction
from django.db.models import F

from inventory.services import put_into_warehouse
from seckill.archive_buyers import DIFFERS, compare_buyers, copy_buyers
from seckill.archive_receipts import check_receipts
from seckill.archive_run import Work, held, reach, require_held
from seckill.archive_tables import ArchiveStage
from seckill.dead_letters import count_parked, require_no_dead_letters
from seckill.errors import ArchiveWaits
from seckill.gate import archiving, gate
from seckill.gate.gate import Snapshot
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_incident
from seckill.models import Bucket, ItemBucket, SaleItem
from seckill.outcomes import account_of, lock_bucket
from seckill.returns import debts_of, pay_debts
from seckill.settlement import settle_bucket


def seal_bucket(work: Work) -> None:
    """Settle, pay what Redis is owed, seal. No new debt is made since the sale is archiving."""
    bucket = work.bucket
    settle_bucket(bucket=bucket, clock=work.clock)
    pay_debts(bucket=bucket, now=work.clock())
    if debts_of(bucket=bucket, count_max=1):
        raise ArchiveWaits("returned units that Redis was not told of yet")
    if not archiving.seal(bucket=bucket, epoch=work.run.epoch):
        raise ArchiveWaits("the end of the sale by the clock of Redis")
    with held(work):
        reach(work, ArchiveStage.SEALED)


def drain_bucket(work: Work) -> None:
    """Settle until the queue is empty; from then on nothing at all changes the bucket."""
    bucket = work.bucket
    settle_bucket(bucket=bucket, clock=work.clock)
    require_no_dead_letters(bucket=bucket, is_accepted=work.run.accepts_dead_letters)
    if not archiving.close(bucket=bucket, epoch=work.run.epoch):
        raise ArchiveWaits("the settlement of what is queued")
    snapshot = gate.snapshot(bucket=bucket, entries_max=0)
    buyers = archiving.members(bucket=bucket, epoch=work.run.epoch).buyers
    items = _weigh(bucket=bucket, snapshot=snapshot)
    findings = {"items": items, "dead_letters": count_parked(bucket=bucket)}
    with held(work):
        reach(work, ArchiveStage.DRAINED, findings=findings, progress={"total": buyers})


def _weigh(*, bucket: BucketRef, snapshot: Snapshot) -> dict[str, dict[str, int]]:
    """Law 7 for the last time, per item, in units: nothing is in flight or owed any more."""
    units = ItemBucket.objects.filter(bucket__pool_id=bucket.pool_id, bucket__number=bucket.number)
    return {
        str(unit.item_id): {
            "allocated": unit.allocated,
            "sold": unit.sold,
            "left": snapshot.left.get(unit.item_id, 0),
            "drift": unit.allocated - unit.sold - snapshot.left.get(unit.item_id, 0),
        }
        for unit in units.order_by("item_id")
    }


def clear_leftovers(work: Work) -> None:
    """Give what is left over to the warehouse, in one transaction; tell an operator of whatever differed."""
    bucket, now = work.bucket, work.clock()
    leftovers: dict[str, int] = {}
    with transaction.atomic(durable=True):
        row = lock_bucket(bucket)
        require_held(work)
        for unit in ItemBucket.objects.filter(bucket_id=row.pk).order_by("item_id"):
            leftovers[str(unit.item_id)] = _take_out(unit)
        _put_away(bucket=bucket, leftovers=leftovers, work=work)
        reach(work, ArchiveStage.CLEARED, findings={"leftovers": leftovers})
    if detail := _differing(work.run.manifest):
        open_incident(kind=DIFFERS, severity=Severity.WARNING, bucket=bucket, detail=detail, now=now)


def _take_out(unit: ItemBucket) -> int:
    """Lower ``allocated`` to what is sold; return by how many units."""
    leftover = unit.allocated - unit.sold
    mine = ItemBucket.objects.filter(pk=unit.pk, allocated=unit.allocated, sold=unit.sold)
    if mine.update(allocated=F("allocated") - leftover) != 1:
        raise ArchiveWaits(f"item {unit.item_id}, which was changed by somebody who does not hold the lock")
    return leftover


def _put_away(*, bucket: BucketRef, leftovers: Mapping[str, int], work: Work) -> None:
    """Move the units through the ledger; stock rows last and by SKU, see Note [Lock order]."""
    items = SaleItem.objects.filter(pk__in=[item_id for item_id, units in leftovers.items() if units])
    for item in items.order_by("sku_id", "pk"):
        put_into_warehouse(
            sku_id=item.sku_id,
            units=leftovers[str(item.pk)],
            account=account_of(item_id=item.pk, bucket=bucket),
            is_written_off=False,
            reference=f"archive:{item.pk}:{bucket.number}",
            now=work.clock(),
        )


def _differing(manifest: Mapping[str, dict[str, object]]) -> str:
    """What an operator ought to know of the comparisons; "" where everything agreed."""
    buyers, receipts = manifest["buyers"], manifest["receipts"]
    items: Mapping[str, Mapping[str, int]] = manifest.get("items", {})  # type: ignore[assignment]
    drifts = [f"item {item_id} by {item['drift']:+d}" for item_id, item in items.items() if item["drift"]]
    counts = {
        "buyers' marks differ": buyers["differing"],
        "buyers' marks cannot be read": len(buyers["unreadable"]),  # type: ignore[arg-type]
        "buyers' marks are missing": receipts.get("marks_missing", 0),
        "receipts differ": receipts.get("differing", 0),
    }
    found = [f"{count} {what}" for what, count in counts.items() if count]
    if receipts["compared"] and receipts["in_redis"] != receipts["in_mysql"]:
        found.append(f"{receipts['in_redis']} receipts for {receipts['in_mysql']} reservations")
    if drifts:
        found.append(f"units differ: {', '.join(drifts)}")
    return "; ".join(found)


def unlink_bucket(work: Work) -> None:
    """Remove the five keys; whoever asks now is answered from MySQL."""
    token = Bucket.objects.values_list("claim", flat=True).get(pool_id=work.run.pool_id, number=work.run.bucket_no)
    archiving.unlink(bucket=work.bucket, token=token)
    with held(work):
        reach(work, ArchiveStage.DONE, finished_at=work.clock())


STEPS: Mapping[ArchiveStage, Callable[[Work], None]] = {
    ArchiveStage.CLAIMED: seal_bucket,
    ArchiveStage.SEALED: drain_bucket,
    ArchiveStage.DRAINED: copy_buyers,
    ArchiveStage.COPIED: compare_buyers,
    ArchiveStage.COMPARED: check_receipts,
    ArchiveStage.CHECKED: clear_leftovers,
    ArchiveStage.CLEARED: unlink_bucket,
}
