"""Incidents: opened once, counted while they last, closed when the cause is gone."""

import logging
from datetime import datetime

from django.db import transaction
from django.db.models import F

from seckill.gate.keys import BucketRef
from seckill.models import Incident

logger = logging.getLogger(__name__)

Severity = Incident.Severity


def open_incident(*, kind: str, severity: Incident.Severity, bucket: BucketRef, detail: str, now: datetime) -> None:
    """Open an incident of a kind for a bucket, or count the one that is open; only the first is logged."""
    open_key = f"{kind}:{bucket}"
    with transaction.atomic():
        counted = Incident.objects.filter(open_key=open_key).update(
            count=F("count") + 1, last_seen_at=now, detail=detail
        )
        if counted:
            return
        _, is_new = Incident.objects.get_or_create(
            open_key=open_key,
            defaults={
                "kind": kind,
                "severity": severity,
                "pool_id": bucket.pool_id,
                "bucket_no": bucket.number,
                "detail": detail,
                "opened_at": now,
                "last_seen_at": now,
            },
        )
    if is_new:
        logger.error("incident %s on bucket %s: %s", kind, bucket, detail)


def resolve_incident(*, kind: str, bucket: BucketRef, now: datetime) -> None:
    """Close the open incident of a kind for a bucket, if there is one."""
    resolved = Incident.objects.filter(open_key=f"{kind}:{bucket}").update(open_key=None, resolved_at=now)
    if resolved:
        logger.warning("incident %s on bucket %s is resolved", kind, bucket)


def open_buckets(*, kind: str) -> set[BucketRef]:
    """Return the buckets that have an open incident of a kind."""
    rows = Incident.objects.filter(kind=kind, open_key__isnull=False).values_list("pool_id", "bucket_no")
    return {BucketRef(pool_id=pool_id, number=number) for pool_id, number in rows}
