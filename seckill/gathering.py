"""Gathering: who brings units to a bucket that lacks them, from where, and how many at a time.

A purchase that was refused there asks for it, and so does the sweep where a bucket is empty and another has several.
Units come from the richest bucket: as many as were asked for, and at least its share if it is divided among itself
and all empty ones, so that a big rest is spread by few transfers. What somebody has asked for and got stays where it
is for two seconds, unless others have bought a part of it meanwhile: he comes back after one second, and two who ask
for the same unit would take it from each other for ever.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from seckill.elsewhere import buckets_of_pool, units_left
from seckill.errors import GateUnavailable
from seckill.gate.keys import BucketRef
from seckill.gate.shop_window import units_shown
from seckill.models import Bucket
from seckill.states import SaleState
from seckill.transfers import transfer, units_expected
from seckill.turns import only_one

# A refused buyer is told to come back after a second, and waits up to a second longer.
STAYS = timedelta(seconds=2)
# Another gathering of the same pool takes some milliseconds per transfer.
TURN_SECONDS = 1


@dataclass(frozen=True, kw_only=True)
class Want:
    """A bucket that lacks units of an item; ``units`` is what somebody has asked it for, 0 where it is only empty."""

    bucket: BucketRef
    item_id: int
    units: int


def gather(*, want: Want, clock: Callable[[], datetime], stays: timedelta = STAYS) -> int:
    """Bring units to a bucket until it has what it ought to, or nobody has any to spare; return how many came.

    Raises ``GateUnavailable`` and ``NotPreheated``; the sweep finishes what is half made.
    """
    with only_one(work=f"gather:{want.bucket.pool_id}", wait_seconds=TURN_SECONDS) as is_mine:
        return _gather(want=want, clock=clock, stays=stays) if is_mine else 0


def buckets_to_fill(*, now: datetime) -> list[Want]:
    """Buckets of sales that are not over which are empty of an item of which another bucket has several."""
    wants = []
    rows = Bucket.objects.filter(pool__sale__state=SaleState.PREHEATED, pool__sale__closes_at__gt=now)
    places = rows.order_by("pool_id", "number").values_list("pool_id", "number")
    every = [BucketRef(pool_id=pool_id, number=number) for pool_id, number in places]
    for _pool_id, group in groupby(every, key=lambda bucket: bucket.pool_id):
        buckets = list(group)
        if len(buckets) > 1:
            wants += _empty_ones(buckets)
    return wants


def _gather(*, want: Want, clock: Callable[[], datetime], stays: timedelta) -> int:
    buckets, brought = buckets_of_pool(want.bucket.pool_id), 0
    for _ in buckets[1:]:
        left = units_left(item_id=want.item_id, buckets=buckets)
        expected = units_expected(item_id=want.item_id, since=clock() - stays)
        chosen = _richest(want=want, left=left, expected=expected)
        if chosen is None:
            break
        donor, units = chosen
        brought += transfer(
            item_id=want.item_id,
            donor=donor,
            receiver=want.bucket,
            units=units,
            clock=clock,
            units_asked=want.units,
        )
    return brought


def _richest(*, want: Want, left: Mapping[BucketRef, int], expected: Mapping[int, int]) -> tuple[BucketRef, int] | None:
    """The bucket that has most to spare, and how many units it is to give; None where nobody can, or need, give any."""
    wanted = max(1, want.units)
    lacking = wanted - left.get(want.bucket, wanted)
    spare = {b: _spare(units, expected.get(b.number, 0)) for b, units in left.items() if b != want.bucket}
    donor = max(spare, key=lambda bucket: spare[bucket], default=want.bucket)
    if lacking <= 0 or spare.get(donor, 0) <= 0:
        return None
    among = 1 + sum(1 for units in left.values() if units == 0)
    share = -(-spare[donor] // among)
    return donor, min(spare[donor], max(lacking, share))


def _spare(left: int, expected: int) -> int:
    """Units that nobody will come back for; who finds fewer than he has asked for comes in vain anyway."""
    return left - expected if left >= expected else left


def _empty_ones(buckets: list[BucketRef]) -> list[Want]:
    try:
        shown = units_shown(buckets=buckets)
    except GateUnavailable:
        return []
    most: dict[int, int] = {}
    for units in shown.values():
        for item_id, unit in units.items():
            most[item_id] = max(most.get(item_id, 0), unit.left)
    return [
        Want(bucket=bucket, item_id=item_id, units=0)
        for bucket, units in shown.items()
        for item_id, unit in units.items()
        if unit.left == 0 and most[item_id] > 1
    ]
