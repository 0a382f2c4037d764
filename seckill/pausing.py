"""Pause and resume: an operator's wish, kept in MySQL and carried into Redis at once.

MySQL is the truth. The script only carries it; where it is lost, overtaken or meets a swap, the
sweep sees the difference within a second and carries it again.
"""

from django.db import DatabaseError, transaction
from django.utils.translation import gettext as _

from seckill.errors import SaleNotReady
from seckill.gate import gate
from seckill.gate.keys import BucketRef
from seckill.models import Bucket, SaleItem
from seckill.transient import is_transient


def pause_item(*, item_id: int) -> None:
    """Refuse new reservations of an item from now on; what is reserved stays reserved.

    Raises ``SaleNotReady`` when there is no such item or the database is busy: nothing is changed
    then. Raises ``GateUnavailable`` when Redis was not told: the wish is kept, and the sweep carries
    it there as soon as it can.
    """
    for bucket in _store(item_id=item_id, is_paused=True):
        gate.pause(bucket=bucket, item_id=item_id)


def resume_item(*, item_id: int) -> None:
    """Take a pause back. A bucket that the system has frozen stays frozen. Raises as ``pause_item``."""
    for bucket in _store(item_id=item_id, is_paused=False):
        gate.resume(bucket=bucket, item_id=item_id)


def paused_items(*, pool_id: int) -> frozenset[int]:
    """Return the items of a pool that ought to be paused."""
    return frozenset(SaleItem.objects.filter(pool_id=pool_id, is_paused=True).values_list("pk", flat=True))


def carry_over(*, bucket: BucketRef, wanted: frozenset[int], found: frozenset[int]) -> None:
    """Make Redis pause what MySQL wants paused, and nothing else. Raises ``GateUnavailable``."""
    for item_id in wanted - found:
        gate.pause(bucket=bucket, item_id=item_id)
    for item_id in found - wanted:
        gate.resume(bucket=bucket, item_id=item_id)


def _store(*, item_id: int, is_paused: bool) -> list[BucketRef]:
    """Store the wish under the buckets' locks: a rebuild either reads it, or has swapped before the script."""
    item = SaleItem.objects.filter(pk=item_id).first()
    if item is None:
        raise SaleNotReady(_("there is no item {item_id}").format(item_id=item_id))
    try:
        with transaction.atomic(durable=True):
            rows = list(Bucket.objects.select_for_update().filter(pool_id=item.pool_id).order_by("number"))
            SaleItem.objects.filter(pk=item_id).update(is_paused=is_paused, stopped_at=None)
    except DatabaseError as error:
        if not is_transient(error):
            raise
        raise SaleNotReady(_("the bucket is busy; nothing was changed, please try again")) from error
    return [BucketRef(pool_id=row.pool_id, number=row.number) for row in rows]
