"""Dead letters: queue entries that can be neither read nor written, kept by their stream id."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q

from seckill.errors import ArchiveBlocked
from seckill.gate.entries import BadEntry, QueueEntry, raw_fields
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_incident
from seckill.models import Bucket, DeadLetter
from seckill.outcomes import PoolFacts

DEAD_LETTER = "dead_letter"


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
    if not entries:
        return []
    letters = DeadLetter.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number)
    ids = [entry.stream_id for entry in entries]
    known = set(letters.filter(epoch=epoch, stream_id__in=ids).values_list("stream_id", flat=True))
    DeadLetter.objects.bulk_create(
        DeadLetter(
            pool_id=bucket.pool_id,
            bucket_no=bucket.number,
            epoch=epoch,
            stream_id=entry.stream_id,
            fields=dict(entry.fields),
            error=entry.error[:200],
            created_at=now,
        )
        for entry in entries
        if entry.stream_id not in known
    )
    if undecided := letters.filter(concluded_at=None).count():
        first, severity = entries[0], Severity.CRITICAL
        detail = f"{undecided} to be decided, the latest: {first.stream_id}: {first.error}"
        open_incident(kind=DEAD_LETTER, severity=severity, bucket=bucket, detail=detail, now=now, units=undecided)
    return ids


def count_parked(*, bucket: BucketRef) -> int:
    """How many entries of a bucket are parked and may still become orders.

    Those are the undecided ones, of which a rebuild has forgotten those before it, and whatever was
    decided and is still to be carried out.
    """
    epoch = Bucket.objects.values_list("epoch", flat=True).get(pool_id=bucket.pool_id, number=bucket.number)
    open_ones = DeadLetter.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number, concluded_at=None)
    return open_ones.filter(Q(epoch__gte=epoch) | ~Q(decision="")).count()


def require_no_dead_letters(*, bucket: BucketRef, is_accepted: bool) -> None:
    """Raise ``ArchiveBlocked`` while parked entries may still become orders."""
    parked = count_parked(bucket=bucket)
    if parked and not is_accepted:
        raise ArchiveBlocked(
            f"{parked} dead letters of bucket {bucket} are parked: replay or refuse them by manage.py"
            f" decide_deadletter, or give them up by manage.py archive --accept-dead-letters"
        )
