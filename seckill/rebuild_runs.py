"""The record of rebuilds: each is written with its claim, so that one whose process dies is counted and seen."""

import logging
from datetime import datetime

from django.db import DatabaseError
from django.db.models import QuerySet

from seckill.gate.keys import BucketRef
from seckill.models import Bucket, RebuildRun

logger = logging.getLogger(__name__)

Outcome = RebuildRun.Outcome


def begin_run(*, row: Bucket, token: str, is_automatic: bool, now: datetime) -> None:
    """Write down a rebuild whose claim is being taken, in the same transaction; what was under way before has died."""
    runs = RebuildRun.objects.filter(pool_id=row.pool_id, bucket_no=row.number)
    runs.filter(outcome=Outcome.RUNNING).update(outcome=Outcome.DIED, finished_at=now)
    runs.create(pool_id=row.pool_id, bucket_no=row.number, token=token, is_automatic=is_automatic, created_at=now)


def end_run(*, token: str, epoch: int, drained: int, refused: int, parked: int, now: datetime) -> None:
    """Write down that a rebuild has opened its bucket."""
    _under_way(token).update(
        outcome=Outcome.DONE, epoch=epoch, drained=drained, refused=refused, parked=parked, finished_at=now
    )


def fail_run(*, token: str, error: Exception, now: datetime) -> None:
    """Write down why a rebuild failed; where MySQL is away, the next one finds that it is gone."""
    words = f"{type(error).__name__}: {error}"[:200]
    try:
        _under_way(token).update(outcome=Outcome.FAILED, error=words, finished_at=now)
    except DatabaseError as second:
        logger.warning("that rebuild %s failed could not be written: %s", token, second)


def count_automatic_runs(*, bucket: BucketRef, since: datetime) -> int:
    """How many rebuilds of a bucket's pool began by themselves, however they ended."""
    runs = RebuildRun.objects.filter(pool_id=bucket.pool_id, is_automatic=True, created_at__gt=since)
    return runs.count()


def _under_way(token: str) -> QuerySet[RebuildRun]:
    return RebuildRun.objects.filter(token=token, outcome=Outcome.RUNNING)
