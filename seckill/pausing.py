"""Pause and resume: an operator's wish, kept in MySQL and carried into Redis at once."""

from django.db import transaction

from seckill.errors import SaleNotReady
from seckill.gate import gate
from seckill.gate.keys import BucketRef
from seckill.models import Bucket, SaleItem


def pause_item(*, item_id: int) -> None:
    """Refuse new reservations of an item from now on; what is reserved stays reserved.

    Raises ``SaleNotReady`` when there is no such item, ``GateUnavailable`` when Redis could not be
    told: nothing is sold then either, and the pause is kept for its return.
    """
    for bucket in _store(item_id=item_id, is_paused=True):
        gate.pause(bucket=bucket, item_id=item_id)


def resume_item(*, item_id: int) -> None:
    """Take a pause back. A bucket that the system has frozen stays frozen. Raises as ``pause_item``."""
    for bucket in _store(item_id=item_id, is_paused=False):
        gate.resume(bucket=bucket, item_id=item_id)


def _store(*, item_id: int, is_paused: bool) -> list[BucketRef]:
    """Store the wish under the buckets' locks: a rebuild either reads it, or has swapped before the script."""
    item = SaleItem.objects.filter(pk=item_id).first()
    if item is None:
        raise SaleNotReady(f"there is no item {item_id}")
    with transaction.atomic(durable=True):
        rows = list(Bucket.objects.select_for_update().filter(pool_id=item.pool_id).order_by("number"))
        SaleItem.objects.filter(pk=item_id).update(is_paused=is_paused)
    return [BucketRef(pool_id=row.pool_id, number=row.number) for row in rows]
