"""When the shop is well again: the queue emptied by the shop itself, and law 7 by the shop's own reconciliation."""

import time

from django.db import DatabaseError, InterfaceError, connection, transaction
from django.utils import timezone

from seckill.gate.keys import BucketRef
from seckill.models import Bucket
from seckill.reconciliation import Verdict, reconcile_bucket
from seckill.selectors import gate_numbers


class Healing:
    """Looks whether a bucket is well; `healed_at` is when it first was, in seconds since 1970."""

    def __init__(self, bucket: BucketRef) -> None:
        self._bucket = bucket
        self.healed_at: float | None = None

    def look(self) -> bool:
        """Tell whether the bucket is, or has been, well; keep when that was first seen.

        Reconciling settles, so it must not be asked before the shop has emptied the queue.
        """
        if self.healed_at is None and self._is_well():
            self.healed_at = time.time()
        return self.healed_at is not None

    def queue_length(self) -> int:
        """Return how many entries are not settled yet; 0 when Redis cannot be asked."""
        snapshot = gate_numbers(bucket=self._bucket)
        return 0 if snapshot is None else snapshot.queue_length

    def _is_well(self) -> bool:
        snapshot = gate_numbers(bucket=self._bucket)
        if snapshot is None or snapshot.is_frozen or snapshot.queue_length > 0:
            return False
        try:
            report = reconcile_bucket(bucket=self._bucket, clock=timezone.now)
        except (DatabaseError, InterfaceError):
            connection.close()  # It was one to a server that has ended.
            return False
        return report.verdict == Verdict.BALANCED


def is_lock_held(bucket: BucketRef) -> bool:
    """Tell whether somebody else holds the lock of the bucket's row."""
    rows = Bucket.objects.filter(pool_id=bucket.pool_id, number=bucket.number)
    try:
        with transaction.atomic():
            list(rows.select_for_update(nowait=True))
    except DatabaseError:
        return True
    return False
