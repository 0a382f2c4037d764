"""Dead letters: queue entries that can be neither read nor written, kept by their stream id."""

from collections.abc import Sequence
from datetime import datetime

from seckill.errors import ArchiveBlocked
from seckill.gate.entries import BadEntry, QueueEntry, raw_fields
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_incident
from seckill.models import Bucket, DeadLetter
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
    return BadEntry(stream_id=entry.stream_id, fields=raw_fields(entry), error=error)


def park(*, bucket: BucketRef, epoch: int, entries: Sequence[BadEntry], now: datetime) -> list[str]:
    """Keep entries in MySQL, once each, with an incident; return their stream ids.

    ``epoch`` is that of the queue they are in: one that is parked by settlement and again by a rebuild is one letter.
    """
    for entry in entries:
        DeadLetter.objects.get_or_create(
            pool_id=bucket.pool_id,
            bucket_no=bucket.number,
            epoch=epoch,
            stream_id=entry.stream_id,
            defaults={"fields": dict(entry.fields), "error": entry.error[:200], "created_at": now},
        )
        detail = f"{entry.stream_id}: {entry.error}"
        open_incident(kind="dead_letter", severity=Severity.CRITICAL, bucket=bucket, detail=detail, now=now)
    return [entry.stream_id for entry in entries]


def count_parked(*, bucket: BucketRef) -> int:
    """How many entries of a bucket are parked and may still become orders; a rebuild has forgotten those before it."""
    epoch = Bucket.objects.values_list("epoch", flat=True).get(pool_id=bucket.pool_id, number=bucket.number)
    return DeadLetter.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number, epoch__gte=epoch).count()


def require_no_dead_letters(*, bucket: BucketRef, is_accepted: bool) -> None:
    """Raise ``ArchiveBlocked`` while parked entries may still become orders."""
    parked = count_parked(bucket=bucket)
    if parked and not is_accepted:
        raise ArchiveBlocked(
            f"{parked} dead letters of bucket {bucket} are parked: replay or reject them, or give them up by"
            f" manage.py archive --accept-dead-letters"
        )
