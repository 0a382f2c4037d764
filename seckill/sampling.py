"""Sampling: once a second, what is to be seen of each item on sale, so that the last hour can be drawn.

One pipelined read of the stock Redis for all buckets, one of the tallies, three SELECTs and one INSERT. An item of
which nothing has changed has a row each half minute only, which tells that somebody still looks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Max

from seckill.errors import GateUnavailable
from seckill.gate.keys import BucketRef
from seckill.gate.pulse import Pulse, pulses
from seckill.gate.tallies import read_tallies
from seckill.models import ItemBucket
from seckill.sample_tables import ItemSample
from seckill.states import SaleState
from seckill.tally import ACCEPTED, ANSWERS, SETTLED, SOLD_OUT, WAITED_MS
from seckill.turns import only_one

QUIET_SECONDS = 30
# Of two looks that follow each other at once, the second has nothing to add; after so long without one it was quiet.
SECONDS_BETWEEN_MIN = timedelta(seconds=0.5)
QUIET_AFTER = timedelta(seconds=1.9)
KEPT_HOURS = 24
# Rows thrown away by one look: more than are written meanwhile, and few enough to hold up nobody.
PRUNED_MAX = 5_000
TOTALS = ("accepted", "sold_out", "refused", "settled", "waited_ms")
OTHER_ANSWERS = sorted(ANSWERS - {ACCEPTED, SOLD_OUT})


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What was seen of an item over all its buckets; totals since the preheat, units now. None: could not be seen."""

    left: int | None
    queued: int | None
    oldest_ms: int | None
    sold: int
    accepted: int | None
    sold_out: int | None
    refused: int | None
    settled: int | None
    waited_ms: int | None


@dataclass(frozen=True, kw_only=True)
class Part:
    """An item's units in one bucket, as MySQL has them."""

    item_id: int
    bucket: BucketRef
    allocated: int
    sold: int


def take_samples(*, clock: Callable[[], datetime]) -> int:
    """Write a sample of each item on sale that has changed; return how many rows were written."""
    with only_one(work="samples") as is_mine:
        if not is_mine:
            return 0
        _throw_away(before=clock() - timedelta(hours=KEPT_HOURS))
        return _take(clock=clock)


def parts_of(**which: object) -> list[Part]:
    """The units of all items that belong to the buckets chosen by a lookup on ``ItemBucket``."""
    rows = ItemBucket.objects.filter(**which).order_by("item_id", "bucket__number")
    names = ("item_id", "bucket__pool_id", "bucket__number", "allocated", "sold")
    return [
        Part(item_id=item_id, bucket=BucketRef(pool_id=pool_id, number=number), allocated=allocated, sold=sold)
        for item_id, pool_id, number, allocated, sold in rows.values_list(*names)
    ]


def look(*, parts: Sequence[Part]) -> tuple[dict[int, Seen], Mapping[BucketRef, Pulse]]:
    """See the items of some parts: Redis and the tallies are asked once for all; who is away leaves gaps."""
    buckets = list(dict.fromkeys(part.bucket for part in parts))
    felt: Mapping[BucketRef, Pulse] = {}
    with suppress(GateUnavailable):
        felt = pulses(buckets=buckets)
    tallies: Mapping[int, Mapping[str, int]] | None = None
    with suppress(GateUnavailable):
        tallies = read_tallies(pool_ids={bucket.pool_id for bucket in buckets})
    return _seen(parts=parts, felt=felt, tallies=tallies), felt


def _seen(
    *, parts: Sequence[Part], felt: Mapping[BucketRef, Pulse], tallies: Mapping[int, Mapping[str, int]] | None
) -> dict[int, Seen]:
    of_item: dict[int, list[Part]] = {}
    for part in parts:
        of_item.setdefault(part.item_id, []).append(part)
    return {
        item_id: _one(
            item_id=item_id, parts=mine, felt=felt, tally=None if tallies is None else tallies.get(item_id, {})
        )
        for item_id, mine in of_item.items()
    }


def _one(
    *, item_id: int, parts: Sequence[Part], felt: Mapping[BucketRef, Pulse], tally: Mapping[str, int] | None
) -> Seen:
    """Add up an item. The gate's own numbering tells nothing here: it knows no items, and leaps with each rebuild."""
    known = [felt[part.bucket] for part in parts if part.bucket in felt and item_id in felt[part.bucket].units]
    is_whole = len(known) == len(parts)
    return Seen(
        left=sum(pulse.units[item_id].left for pulse in known) if is_whole else None,
        queued=sum(pulse.units[item_id].queued for pulse in known) if is_whole else None,
        oldest_ms=max((pulse.oldest_ms for pulse in known), default=None),
        sold=sum(part.sold for part in parts),
        accepted=_tallied(tally, ACCEPTED),
        sold_out=_tallied(tally, SOLD_OUT),
        refused=_tallied(tally, *OTHER_ANSWERS),
        settled=_tallied(tally, SETTLED),
        waited_ms=_tallied(tally, WAITED_MS),
    )


def _tallied(tally: Mapping[str, int] | None, *names: str) -> int | None:
    return None if tally is None else sum(tally.get(name, 0) for name in names)


def _take(*, clock: Callable[[], datetime]) -> int:
    parts = parts_of(bucket__pool__sale__state=SaleState.PREHEATED)
    seen, _ = look(parts=parts)
    at = clock()  # when it was seen, not when somebody was told to look
    last = _last_samples(item_ids=seen, since=at - timedelta(seconds=2 * QUIET_SECONDS))
    rows: list[ItemSample] = []
    for item_id, now_seen in seen.items():
        rows += _rows(item_id=item_id, seen=now_seen, last=last.get(item_id), at=at)
    ItemSample.objects.bulk_create(rows)
    return len(rows)


def _rows(*, item_id: int, seen: Seen, last: ItemSample | None, at: datetime) -> list[ItemSample]:
    """The rows to be written of an item.

    After a quiet while the last quiet second is written as well: a burst is not spread over the quiet before it.
    """
    age = None if last is None else at - last.at
    if last is None or age is None:
        return [_row(item_id=item_id, at=at, values=vars(seen))]
    before = {name: getattr(last, name) for name in vars(seen)}
    # What could not be seen is as it was: totals must not fall to nothing and jump up again.
    values = vars(seen) | {name: before[name] for name in TOTALS if getattr(seen, name) is None}
    if age < SECONDS_BETWEEN_MIN or (values == before and age < timedelta(seconds=QUIET_SECONDS)):
        return []
    row = _row(item_id=item_id, at=at, values=values)
    if values != before and age > QUIET_AFTER:
        return [_row(item_id=item_id, at=at - timedelta(seconds=1), values=before), row]
    return [row]


def _row(*, item_id: int, at: datetime, values: Mapping[str, int | None]) -> ItemSample:
    return ItemSample(item_id=item_id, at=at, **{**values, **{name: values[name] or 0 for name in TOTALS}})


def _last_samples(*, item_ids: Iterable[int], since: datetime) -> dict[int, ItemSample]:
    newest = (
        ItemSample.objects.filter(item_id__in=list(item_ids), at__gte=since)
        .values("item_id")
        .annotate(newest=Max("pk"))
        .values("newest")
    )
    return {row.item_id: row for row in ItemSample.objects.filter(pk__in=list(newest.values_list("newest", flat=True)))}


def _throw_away(*, before: datetime) -> None:
    """Delete the oldest samples, some at a time, by number: they are written in the order of time."""
    old = ItemSample.objects.filter(at__lt=before).order_by("at").values_list("pk", flat=True)[:PRUNED_MAX]
    if numbers := list(old):
        ItemSample.objects.filter(pk__in=numbers).delete()
