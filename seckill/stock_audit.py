"""The books of one item, read now: law 7 per bucket, and what the ledger says. Changes nothing."""

from dataclasses import dataclass

from inventory.selectors import balance
from seckill.errors import CommitsLost, GateUnavailable, NotPreheated, UnknownItem
from seckill.gate.keys import BucketRef
from seckill.models import Bucket, ItemBucket, SaleItem
from seckill.outcomes import account_of
from seckill.reconciliation import ItemBalance, Verdict, compare_now


@dataclass(frozen=True, kw_only=True)
class BucketBooks:
    """One bucket of an item. Without ``gate`` Redis could not be asked, and ``explanation`` says why.

    ``ledger`` is what the ledger has on the item's account: allocated minus sold, or somebody wrote past it.
    """

    bucket: BucketRef
    verdict: Verdict
    allocated: int
    sold: int
    ledger: int
    gate: ItemBalance | None
    explanation: str


def audit_item(*, item_id: int) -> list[BucketBooks]:
    """Read an item's books, bucket by bucket; none before its preheat. Raises ``UnknownItem``."""
    item = SaleItem.objects.filter(pk=item_id).first()
    if item is None:
        raise UnknownItem
    rows = Bucket.objects.filter(pool_id=item.pool_id).order_by("number")
    units = {unit.bucket_id: unit for unit in ItemBucket.objects.filter(item_id=item_id, bucket_id__in=rows)}
    return [_books(row=row, unit=units[row.pk]) for row in rows if row.pk in units]


def _books(*, row: Bucket, unit: ItemBucket) -> BucketBooks:
    bucket = BucketRef(pool_id=row.pool_id, number=row.number)
    ledger = balance(account=account_of(item_id=unit.item_id, bucket=bucket))
    try:
        report = compare_now(bucket=bucket)
    except (GateUnavailable, NotPreheated, CommitsLost) as error:
        found, explanation = None, str(error) or "the bucket is not in Redis"
    else:
        found, explanation = {item.item_id: item for item in report.items}[unit.item_id], ""
    return BucketBooks(
        bucket=bucket,
        verdict=_verdict(found),
        allocated=unit.allocated if found is None else found.allocated,
        sold=unit.sold if found is None else found.sold,
        ledger=ledger,
        gate=found,
        explanation=explanation,
    )


def _verdict(found: ItemBalance | None) -> Verdict:
    if found is None:
        return Verdict.UNAVAILABLE
    if found.drift == 0:
        return Verdict.BALANCED
    return Verdict.LEAK if found.drift > 0 else Verdict.EXCESS
