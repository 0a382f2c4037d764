"""What one bucket does not have may be in another: how many units of an item all its buckets have left.

Asked only for a purchase that one of several buckets has refused. "None" is said only where every bucket was seen to
be empty while no unit was on its way: no transfer was open before the buckets were looked at, and none began until
after. What was seen is kept for a quarter of a second, so a crowd that comes too late costs a look, not a look each.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError, connection

from seckill.errors import GateUnavailable, NotPreheated
from seckill.gate import gate
from seckill.gate.keys import BucketRef, bucket_ref
from seckill.models import Bucket
from seckill.transfer_tables import Transfer

# Together with the half second of ``shut`` less than the second after which a unit that came back is to be had.
KEPT_SECONDS = 0.25
# More items than any shop has on sale at a time; a full table is emptied, which costs each item one look.
KEPT_MAX = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """Units left in all buckets of an item, None where that cannot be told now; and whether it was just looked at."""

    units: int | None
    is_fresh: bool


class Memory:
    """What was seen of items, and until when it counts; threads may share it."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int | None, float]] = {}

    def look_up(self, item_id: int) -> Seen | None:
        """Return what was seen of the item within the last quarter of a second."""
        units, until = self._seen.get(item_id, (None, 0.0))
        return Seen(units=units, is_fresh=False) if time.monotonic() < until else None

    def note(self, item_id: int, units: int | None) -> None:
        """Keep what was just seen of an item."""
        if len(self._seen) >= KEPT_MAX:
            self._seen.clear()
        self._seen[item_id] = units, time.monotonic() + KEPT_SECONDS

    def forget(self) -> None:
        """Begin anew, as a test wants."""
        self._seen.clear()


memory = Memory()


def units_of_item(*, pool_id: int, item_id: int) -> Seen:
    """Tell how many units of an item its pool's buckets have left. Raises nothing: who cannot tell says so."""
    if (known := memory.look_up(item_id)) is not None:
        return known
    units = _look(pool_id=pool_id, item_id=item_id)
    memory.note(item_id, units)
    return Seen(units=units, is_fresh=True)


def units_left(*, item_id: int, buckets: Sequence[BucketRef]) -> dict[BucketRef, int]:
    """Units of an item that each bucket would sell; one that is frozen, sealed or cannot be seen is left out."""
    left = {}
    for bucket in buckets:
        try:
            snapshot = gate.snapshot(bucket=bucket, entries_max=0)
        except (GateUnavailable, NotPreheated):
            continue
        if item_id in snapshot.left and not snapshot.is_frozen and not snapshot.is_sealed:
            left[bucket] = snapshot.left[item_id]
    return left


def _look(*, pool_id: int, item_id: int) -> int | None:
    try:
        buckets = buckets_of_pool(pool_id)
        newest = _newest_transfer(item_id)
        if Transfer.objects.filter(item_id=item_id, finished_at__isnull=True).exists():
            return None
        left = units_left(item_id=item_id, buckets=buckets)
        if len(left) < len(buckets) or _newest_transfer(item_id) != newest:
            return None
    except (DatabaseError, InterfaceError):
        connection.close_if_unusable_or_obsolete()
        return None
    return sum(left.values())


def buckets_of_pool(pool_id: int) -> list[BucketRef]:
    """All buckets of a pool, by number; MySQL says which, since a gate may not have heard of the newest yet."""
    numbers = Bucket.objects.filter(pool_id=pool_id).order_by("number").values_list("number", flat=True)
    return [bucket_ref(pool_id, number) for number in numbers]


def _newest_transfer(item_id: int) -> int | None:
    return Transfer.objects.filter(item_id=item_id).order_by("-pk").values_list("pk", flat=True).first()
