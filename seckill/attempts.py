"""Attempts: a batch that kills its worker is made smaller until the entry that kills stands alone.

Nobody can write down his own death, so every run of settlement that finds a queue writes down that
it begins, in a transaction of its own, and that it ended, however it ended. What the next run finds
still open, before the same head of the queue, is a death. Three in a row halve the batch; three of
a batch of one have its entry parked as a dead letter. Batches grow again as they go well. An
exception is no death.

A run that ends by losing MySQL cannot write its end, and counts as a death. It takes dozens of
those in a row, with no batch done in between, to park an entry for it, and a parked entry is not
lost: an operator may have it replayed.
"""

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from django.db import DatabaseError, connection, transaction
from django.db.models import QuerySet

from seckill.attempt_tables import SettleAttempt
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_incident, resolve_incident

logger = logging.getLogger(__name__)

DEATHS_MAX = 3
WORKER_KILLED = "worker_killed"


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """What a look at the queue shows: its first stream id, "" where there is none, and its length."""

    head: str = ""
    length: int = 0


@dataclass
class Attempt:
    """A run of settlement under way. ``size`` bounds its next batch; ``is_killer`` has that one entry parked."""

    bucket: BucketRef
    token: str
    size: int
    size_max: int
    deaths: int
    is_busy: bool = False
    is_killer: bool = False

    def note_progress(self, *, now: datetime) -> None:
        """A batch went well: forget the deaths, let batches grow again; its lock could be had."""
        self.is_killer = False
        if self.deaths == 0 and self.size >= self.size_max and not self.is_busy:
            return
        self.deaths, self.is_busy, self.size = 0, False, min(self.size_max, self.size * 2)
        _own(self).update(deaths=0, size_max=self.size, busy_since=None)
        if self.size == self.size_max:
            resolve_incident(kind=WORKER_KILLED, bucket=self.bucket, now=now)


@contextmanager
def attempt(*, bucket: BucketRef, size_max: int, waiting: Waiting, clock: Callable[[], datetime]) -> Iterator[Attempt]:
    """Write down that a run begins, and, whatever it raises, that it ended; nothing where the queue is empty."""
    begun = _begin(bucket=bucket, size_max=size_max, waiting=waiting, now=clock())
    try:
        yield begun
    finally:
        if begun.token:
            _end(begun)


def _begin(*, bucket: BucketRef, size_max: int, waiting: Waiting, now: datetime) -> Attempt:
    row = SettleAttempt.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number).first()
    size = size_max if row is None else min(row.size_max, size_max)
    begun = Attempt(bucket=bucket, token="", size=size, size_max=size_max, deaths=0)
    if not waiting.head:
        return begun
    begun.token = secrets.token_hex(8)
    begun.is_busy = row is not None and row.busy_since is not None
    if row is not None and row.head == waiting.head:
        begun.deaths = row.deaths + bool(row.token)
    if begun.deaths >= DEATHS_MAX:
        _shrink(begun=begun, batch=min(size, waiting.length))
    with transaction.atomic(durable=True):
        SettleAttempt.objects.update_or_create(
            pool_id=bucket.pool_id,
            bucket_no=bucket.number,
            defaults={
                "token": begun.token,
                "head": waiting.head,
                "deaths": begun.deaths,
                "size_max": begun.size,
                "started_at": now,
            },
        )
        if begun.size < size:
            detail = (
                f"{DEATHS_MAX} workers died settling; batches have at most {begun.size} entries until one goes well"
            )
            open_incident(kind=WORKER_KILLED, severity=Severity.WARNING, bucket=bucket, detail=detail, now=now)
    return begun


def _shrink(*, begun: Attempt, batch: int) -> None:
    """Halve what the deadly batch can have held; a batch of one is the killer itself."""
    if batch == 1:
        begun.size, begun.is_killer = 1, True
    else:
        begun.size, begun.deaths = batch // 2, 0


def _end(begun: Attempt) -> None:
    connection.close_if_unusable_or_obsolete()
    try:
        _own(begun).update(token="")
    except DatabaseError as error:
        logger.warning("settling bucket %s ended unwritten, which counts as a death: %s", begun.bucket, error)


def _own(begun: Attempt) -> QuerySet[SettleAttempt]:
    """The row, unless somebody else has begun since."""
    bucket = begun.bucket
    return SettleAttempt.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number, token=begun.token)
