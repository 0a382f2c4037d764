"""Silence: a stock Redis that has not answered for some seconds is an incident; one answer that was missed is none.

What is remembered is one row: since when nobody had an answer. It goes with the first look that had one from every
bucket. There is one incident for the server, not one per bucket: it stands at the first of those that are silent.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_buckets, open_incident, resolve_incident
from seckill.silence_tables import StockSilence

UNREACHABLE = "stock_unreachable"
SERVER = "stock"
# A restart of Redis, or a failover that nobody needs to be called for, takes less.
SILENT_SECONDS = 3
# The sweep looks each second: what was noted longer ago was another silence, whose end nobody saw.
FORGOTTEN_SECONDS = 15


def note_silence(*, silent: Sequence[BucketRef], now: datetime) -> None:
    """Open, count or close the incident of a stock Redis that does not answer for ``silent``, as a sweep has found."""
    where = set(silent[:1])
    if silent and now - _silent_since(now=now) >= timedelta(seconds=SILENT_SECONDS):
        detail = f"the stock Redis does not answer: nothing is sold of {len(silent)} buckets, from {silent[0]} on"
        open_incident(kind=UNREACHABLE, severity=Severity.CRITICAL, bucket=silent[0], detail=detail, now=now)
    if not silent:
        StockSilence.objects.filter(server=SERVER).delete()
    for bucket in open_buckets(kind=UNREACHABLE) - where:
        resolve_incident(kind=UNREACHABLE, bucket=bucket, now=now)


def _silent_since(*, now: datetime) -> datetime:
    """Return since when it has been silent, and note that it is now."""
    row, is_new = StockSilence.objects.get_or_create(server=SERVER, defaults={"since": now, "seen_at": now})
    if is_new:
        return now
    is_another = now - row.seen_at > timedelta(seconds=FORGOTTEN_SECONDS)
    since = now if is_another else row.since
    StockSilence.objects.filter(pk=row.pk).update(since=since, seen_at=now)
    return since
