"""Dead letters: queue entries that can be neither read nor written, kept by their stream id."""

from collections.abc import Sequence
from datetime import datetime

from seckill.gate.entries import BadEntry, QueueEntry
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_incident
from seckill.models import DeadLetter
from seckill.outcomes import PoolFacts


def split_readable(
    *, entries: Sequence[QueueEntry | BadEntry], facts: PoolFacts
) -> tuple[list[QueueEntry], list[BadEntry]]:
    """Separate what can be decided from what cannot be read, or names an item the pool has not."""
    readable: list[QueueEntry] = []
    bad: list[BadEntry] = []
    for entry in entries:
        if isinstance(entry, BadEntry):
            bad.append(entry)
        elif entry.item_id in facts.sku_ids:
            readable.append(entry)
        else:
            bad.append(as_bad(entry=entry, error="the pool has no such item"))
    return readable, bad


def as_bad(*, entry: QueueEntry, error: str) -> BadEntry:
    """Turn an entry into one to be parked."""
    fields = {name: str(getattr(entry, name)) for name in entry.__slots__}
    return BadEntry(stream_id=entry.stream_id, fields=fields, error=error)


def park(*, bucket: BucketRef, epoch: int, entries: Sequence[BadEntry], now: datetime) -> list[str]:
    """Keep entries in MySQL, once each, with an incident; return their stream ids."""
    for entry in entries:
        DeadLetter.objects.get_or_create(
            pool_id=bucket.pool_id,
            bucket_no=bucket.number,
            stream_id=entry.stream_id,
            defaults={"epoch": epoch, "fields": dict(entry.fields), "error": entry.error[:200], "created_at": now},
        )
        detail = f"{entry.stream_id}: {entry.error}"
        open_incident(kind="dead_letter", severity=Severity.CRITICAL, bucket=bucket, detail=detail, now=now)
    return [entry.stream_id for entry in entries]
