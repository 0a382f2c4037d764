"""Closing incidents that say of themselves only that something happened: over once the books are balanced after it."""

from datetime import datetime

from seckill.dead_letters import DEAD_LETTER
from seckill.gate.keys import BucketRef
from seckill.incidents import resolve_incident
from seckill.mending import MARKS, RECEIPTS
from seckill.models import DeadLetter, Incident

CLOSED_BY_BALANCE = (MARKS, RECEIPTS, "phantom", "order_differs", "row_refused", DEAD_LETTER)


def close_what_is_over(*, bucket: BucketRef, balanced_since: datetime, now: datetime) -> None:
    """Close what was last seen before a comparison began in which every number and every member was right.

    The comparison itself may have seen something new; that stays open until the next. A dead letter
    is over only when somebody has decided on every one.
    """
    over = Incident.objects.filter(
        pool_id=bucket.pool_id,
        bucket_no=bucket.number,
        kind__in=CLOSED_BY_BALANCE,
        open_key__isnull=False,
        last_seen_at__lt=balanced_since,
    )
    undecided = DeadLetter.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number, concluded_at=None)
    for kind in over.values_list("kind", flat=True):
        if kind != DEAD_LETTER or not undecided.exists():
            resolve_incident(kind=kind, bucket=bucket, now=now)
