"""Watching locks: a transaction that has long kept a bucket's row from whoever waits for it is an incident by name.

A wait for a lock ends after a few seconds and is tried again, so no single one lasts long; what is
looked for is the transaction that stands in the way of one right now and began half a minute ago.
MariaDB and MySQL 8 tell of waits in tables of their own; both ask for the right to see them
(PROCESS; on MySQL 8 also SELECT on performance_schema). Without it settlement's own waits are
added up: the incident is opened all the same, but can name nobody.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import DatabaseError, connection

from seckill.attempt_tables import SettleAttempt
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_buckets, open_incident, resolve_incident
from seckill.models import Bucket, Incident
from seckill.transient import is_transient

logger = logging.getLogger(__name__)

LOCK_BUSY = "lock_busy"
BUSY_SECONDS = 30
# Between two tries nobody waits, though the lock is still held; only after so long it is free.
FREE_SECONDS = 15

PRIMARY = "PRIMARY"
BUCKET_TABLE = Bucket._meta.db_table  # noqa: SLF001  Django's own documented name

# Blocking session, its transaction's age in seconds, what it runs, then table, index and key of the locked row.
_MARIADB = """
    SELECT b.trx_mysql_thread_id, TIMESTAMPDIFF(SECOND, b.trx_started, NOW()), b.trx_query, l.lock_table,
           l.lock_index, l.lock_data
    FROM information_schema.innodb_lock_waits w
    JOIN information_schema.innodb_trx b ON b.trx_id = w.blocking_trx_id
    JOIN information_schema.innodb_locks l ON l.lock_id = w.requested_lock_id
    WHERE b.trx_started < NOW() - INTERVAL %s SECOND
"""
_MYSQL = """
    SELECT b.trx_mysql_thread_id, TIMESTAMPDIFF(SECOND, b.trx_started, NOW()), b.trx_query,
           CONCAT(l.object_schema, '.', l.object_name), l.index_name, l.lock_data
    FROM performance_schema.data_lock_waits w
    JOIN information_schema.innodb_trx b ON b.trx_id = w.blocking_engine_transaction_id
    JOIN performance_schema.data_locks l ON l.engine_lock_id = w.requesting_engine_lock_id
    WHERE b.trx_started < NOW() - INTERVAL %s SECOND
"""

_may_look = True


@dataclass(frozen=True, kw_only=True)
class Blocker:
    """A session that keeps a bucket's row, how long its transaction has been open, and what it runs right now."""

    bucket: BucketRef
    session_id: int
    seconds: int
    query: str

    def __str__(self) -> str:
        doing = f"runs {self.query[:200]}" if self.query else "runs nothing right now"
        return f"session {self.session_id} has kept it in a transaction of {self.seconds} s, and {doing}"


def watch_locks(*, now: datetime) -> list[Blocker]:
    """Open an incident for each bucket that is kept by an old transaction; return what was found."""
    blockers = _blockers()
    for blocker in blockers:
        detail = f"the bucket's lock is busy: {blocker}"
        open_incident(kind=LOCK_BUSY, severity=Severity.CRITICAL, bucket=blocker.bucket, detail=detail, now=now)
    for bucket in open_buckets(kind=LOCK_BUSY) - {blocker.bucket for blocker in blockers}:
        seen = Incident.objects.filter(open_key=f"{LOCK_BUSY}:{bucket}", last_seen_at__gt=now - _free_after())
        busy = SettleAttempt.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number, busy_since__isnull=False)
        if not (seen.exists() or busy.exists()):
            resolve_incident(kind=LOCK_BUSY, bucket=bucket, now=now)
    return blockers


def note_wait(*, bucket: BucketRef, now: datetime) -> None:
    """Settlement has waited in vain for the bucket's lock; after half a minute of that it is an incident."""
    row = SettleAttempt.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number)
    row.filter(busy_since=None).update(busy_since=now)
    since = row.values_list("busy_since", flat=True).first()
    if since is None or now - since < timedelta(seconds=BUSY_SECONDS) or bucket in open_buckets(kind=LOCK_BUSY):
        return
    detail = f"the bucket's lock could not be had since {since:%H:%M:%S} UTC; who keeps it is not known"
    open_incident(kind=LOCK_BUSY, severity=Severity.CRITICAL, bucket=bucket, detail=detail, now=now)


def _free_after() -> timedelta:
    return timedelta(seconds=FREE_SECONDS)


def _blockers() -> list[Blocker]:
    found = {}
    for session_id, seconds, query, table, index, key in _waits():
        if table.replace("`", "").rpartition(".")[2] != BUCKET_TABLE:
            continue
        for bucket in _buckets(index=index, key=key.split(",")):
            found[bucket] = Blocker(bucket=bucket, session_id=session_id, seconds=seconds, query=query or "")
    return list(found.values())


def _buckets(*, index: str, key: Sequence[str]) -> list[BucketRef]:
    """The bucket of a locked record: by its primary key, or by pool and number, which MySQL's record goes on after."""
    if index == PRIMARY:
        rows = Bucket.objects.filter(pk=int(key[0]))
    else:
        rows = Bucket.objects.filter(pool_id=int(key[0]), number=int(key[1]))
    return [BucketRef(pool_id=pool_id, number=number) for pool_id, number in rows.values_list("pool_id", "number")]


def can_see_waits() -> bool:
    """Tell whether this user may see who keeps a lock. Raises ``DatabaseError`` where that cannot be told."""
    try:
        _ask_for_waits()
    except DatabaseError as error:
        if is_transient(error):
            raise
        return False
    return True


def _ask_for_waits() -> list[tuple[int, int, str | None, str, str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(_MARIADB if getattr(connection, "mysql_is_mariadb", False) else _MYSQL, [BUSY_SECONDS])
        return list(cursor.fetchall())


def _waits() -> list[tuple[int, int, str | None, str, str, str]]:
    """Rows of the server's own table of waits; none where this user may not see it."""
    global _may_look  # noqa: PLW0603  said once per process
    if not _may_look:
        return []
    try:
        return _ask_for_waits()
    except DatabaseError as error:
        _may_look = is_transient(error)
        logger.warning("who keeps a lock cannot be told: %s", error)
        connection.close_if_unusable_or_obsolete()
        return []
