"""The last reconciliation of each bucket, by the index: the newest time per bucket, then those rows."""

from collections.abc import Sequence

from django.db.models import Max, Q

from seckill.gate.keys import BucketRef
from seckill.models import ReconciliationRun


def latest_runs(*, pool_ids: Sequence[int]) -> dict[BucketRef, ReconciliationRun]:
    """Return the last run of each bucket of some pools; buckets that were never compared are left out."""
    runs = ReconciliationRun.objects.filter(pool_id__in=pool_ids)
    newest = Q()
    for pool_id, number, at in runs.values_list("pool_id", "bucket_no").annotate(at=Max("created_at")).order_by():
        newest |= Q(pool_id=pool_id, bucket_no=number, created_at=at)
    if not newest:
        return {}
    found = ReconciliationRun.objects.filter(newest).order_by("pk")
    return {BucketRef(pool_id=run.pool_id, number=run.bucket_no): run for run in found}
