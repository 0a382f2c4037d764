"""Adjustments of units on sale: an approved delta in MySQL and Redis, once, whatever dies in between.

Numbered per bucket, one at a time. Up: MySQL first, then Redis, so that nothing is sold that is not there.
Down: Redis first, all or nothing, then MySQL. The script makes a delta only with the number after the
last one and only in the epoch the change names; a rebuild takes number and units from MySQL. So a
rebuild between the halves of an increase has made the second half itself, and one between the halves
of a decrease has undone the first: the epoch, looked at under the lock, tells, and it is made anew. Of an item
that has several buckets one is chosen, and for a decrease that is too big for it the others' units are brought.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from inventory.adjusting import move_on_hand
from inventory.changes import ChangeState, finish, locked
from inventory.errors import UnknownChange
from inventory.models import UNITS_MAX, Stock
from inventory.services import WAREHOUSE, Kind, Movement, record
from seckill.change_tables import Counterpart, ItemAdjustment
from seckill.elsewhere import buckets_of_pool, units_left
from seckill.errors import GateUnavailable, NotPreheated, SettlementError
from seckill.gate import changing
from seckill.gate.changing import Adjusted
from seckill.gate.gate import Snapshot
from seckill.gate.keys import BucketRef
from seckill.gathering import Want, gather
from seckill.models import Bucket, FlashSale, ItemBucket, ReconciliationRun
from seckill.numbering import is_free
from seckill.outcomes import account_of, lock_bucket
from seckill.states import SaleState


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Everything an adjustment touches, locked in order; bucket row and units are empty where the sale is off."""

    change: ItemAdjustment
    sale: FlashSale
    bucket: BucketRef
    row: Bucket
    unit: ItemBucket

    @property
    def is_on_sale(self) -> bool:
        """Whether the sale is in Redis; from the archive on it is not to be touched there."""
        return self.sale.state == SaleState.PREHEATED


def apply_item_adjustment(*, adjustment_id: int, clock: Callable[[], datetime]) -> ChangeState:
    """Apply an approved adjustment as far as that is possible now; return where it stands.

    Still approved: Redis is away, a rebuild is at it, or another adjustment comes first; the follow-up
    comes back. Refused ones say what would have been possible. Raises ``UnknownChange``.
    """
    _choose_bucket(adjustment_id=adjustment_id, clock=clock)
    place = _begin(adjustment_id=adjustment_id, now=clock())
    change = place.change
    if change.open_key is None or change.adj_no is None:
        return ChangeState(change.state)
    try:
        adjusted = changing.adjust(
            bucket=place.bucket, epoch=place.row.epoch, number=change.adj_no, item_id=change.item_id, delta=change.delta
        )
    except (GateUnavailable, NotPreheated):
        return ChangeState.APPROVED
    if adjusted.units_changed == 0:
        adjusted = replace(adjusted, units_left=adjusted.units_left + _units_elsewhere(place))
    return _end(adjustment_id=adjustment_id, epoch=place.row.epoch, adjusted=adjusted, now=clock())


def pending_item_adjustments() -> list[int]:
    """Approved adjustments that are not finished, those that have their number first."""
    rows = ItemAdjustment.objects.filter(state=ChangeState.APPROVED).order_by(F("adj_no").asc(nulls_last=True), "pk")
    return list(rows.values_list("pk", flat=True))


def units_under_way(*, bucket: BucketRef, snapshot: Snapshot) -> Mapping[int, int]:
    """Units per item that half of an adjustment keeps out of Redis (law 7); the bucket is locked.

    An increase that Redis was not told yet, or a decrease that MySQL does not have yet.
    """
    change = ItemAdjustment.objects.filter(open_key=str(bucket)).first()
    if change is None or change.adj_no is None:
        return {}
    if change.delta > 0:
        return {change.item_id: change.delta} if snapshot.adj_no == change.adj_no - 1 else {}
    is_made = snapshot.adj_no == change.adj_no and snapshot.epoch == change.epoch
    return {change.item_id: -snapshot.adj_applied} if is_made else {}


def link_to_adjustments(*, run: ReconciliationRun) -> None:
    """Note on adjustments of a bucket that this reconciliation was the first to count them in both stores."""
    ItemAdjustment.objects.filter(
        state=ChangeState.APPLIED,
        item__pool_id=run.pool_id,
        bucket_no=run.bucket_no,
        reconciliation__isnull=True,
        adj_no__lte=run.adj_no,
    ).update(reconciliation=run)


def _choose_bucket(*, adjustment_id: int, clock: Callable[[], datetime]) -> None:
    """Say which of several buckets an adjustment is for, as long as it has no number.

    More units go to the poorest. Fewer come from the richest, to which units are brought before where it has too few
    and all together have enough. Raises nothing: what cannot be seen or brought now, the adjustment itself says.
    """
    change = ItemAdjustment.objects.select_related("item__pool").filter(pk=adjustment_id, adj_no__isnull=True).first()
    if change is None or change.state != ChangeState.APPROVED:
        return
    buckets = buckets_of_pool(change.item.pool_id)
    left = units_left(item_id=change.item_id, buckets=buckets) if len(buckets) > 1 else {}
    if not left:
        return
    chosen = (min if change.delta > 0 else max)(left, key=lambda bucket: left[bucket])
    with transaction.atomic(durable=True):
        FlashSale.objects.select_for_update().get(pk=change.item.pool.sale_id)
        unnumbered = ItemAdjustment.objects.filter(pk=adjustment_id, adj_no__isnull=True, state=ChangeState.APPROVED)
        unnumbered.update(bucket_no=chosen.number)
    if left[chosen] < -change.delta <= sum(left.values()):
        with suppress(GateUnavailable, NotPreheated):
            want = Want(bucket=chosen, item_id=change.item_id, units=-change.delta)
            gather(want=want, clock=clock, stays=timedelta(0))


def _units_elsewhere(place: _Place) -> int:
    """Units that the item's other buckets have left."""
    others = [bucket for bucket in buckets_of_pool(place.bucket.pool_id) if bucket != place.bucket]
    return sum(units_left(item_id=place.change.item_id, buckets=others).values())


def _begin(*, adjustment_id: int, now: datetime) -> _Place:
    """Give an approved adjustment its number, and make the half of an increase that MySQL makes."""
    with transaction.atomic(durable=True):
        place = _lock(adjustment_id)
        if place.change.state != ChangeState.APPROVED:
            return place
        if not place.is_on_sale:
            _end_off_sale(place=place, now=now)
        elif place.change.open_key is not None:
            _update(place.change, epoch=place.row.epoch)
        elif is_free(place.bucket):
            _take_number(place=place, now=now)
    return place


def _take_number(*, place: _Place, now: datetime) -> None:
    change, row = place.change, place.row
    if change.delta > 0 and not _raise_allocated(place=place, now=now):
        return
    number = row.adj_no + 1
    if change.delta > 0:
        Bucket.objects.filter(pk=row.pk).update(adj_no=number)
    _update(change, adj_no=number, epoch=row.epoch, open_key=str(place.bucket))


def _raise_allocated(*, place: _Place, now: datetime) -> bool:
    """Make an increase in MySQL; False when there are too few units for it, and the change is refused."""
    change, sku_id = place.change, place.change.item.sku_id
    units_possible = UNITS_MAX - place.unit.allocated
    if change.counterpart == Counterpart.WAREHOUSE:
        on_hand = Stock.objects.select_for_update().values_list("on_hand", flat=True).filter(sku_id=sku_id).first()
        units_possible = min(units_possible, on_hand or 0)
    if units_possible < change.delta:
        _refuse(place=place, units_possible=units_possible, now=now)
        return False
    if change.counterpart == Counterpart.WAREHOUSE:
        _move_on_hand(place=place)
    _change_allocated(place=place)
    _record(place=place, now=now)
    return True


def _end(*, adjustment_id: int, epoch: int, adjusted: Adjusted, now: datetime) -> ChangeState:
    """Finish what the script has answered to, in the epoch in which it was asked."""
    with transaction.atomic(durable=True):
        place = _lock(adjustment_id)
        change = place.change
        if change.state != ChangeState.APPROVED:
            return ChangeState(change.state)
        if not place.is_on_sale:
            _end_off_sale(place=place, now=now)
        elif change.delta > 0:
            _finish(place=place, state=ChangeState.APPLIED, outcome=f"number {change.adj_no}", now=now)
        elif place.row.epoch == epoch:
            _end_decrease(place=place, adjusted=adjusted, now=now)
    return ChangeState(change.state)


def _end_decrease(*, place: _Place, adjusted: Adjusted, now: datetime) -> None:
    """Make a decrease in MySQL that Redis has made, or refuse it; the number is used either way."""
    change = place.change
    Bucket.objects.filter(pk=place.row.pk).update(adj_no=change.adj_no)
    if adjusted.units_changed == change.delta and _change_allocated(place=place):
        if change.counterpart == Counterpart.WAREHOUSE:
            _move_on_hand(place=place)
        _record(place=place, now=now)
        _finish(place=place, state=ChangeState.APPLIED, outcome=f"number {change.adj_no}", now=now)
        return
    left = adjusted.units_left - adjusted.units_changed
    rows = ItemBucket.objects.filter(item_id=change.item_id).values_list("allocated", "sold")
    unsold = sum(allocated - sold for allocated, sold in rows)
    _refuse(place=place, units_possible=-min(left, unsold), now=now)


def _end_off_sale(*, place: _Place, now: datetime) -> None:
    """End a change whose sale has left Redis: what MySQL has made stands, everything else is not made any more."""
    words = f"the sale is {place.sale.get_state_display()}"
    is_made = place.change.delta > 0 and place.change.open_key is not None
    _finish(place=place, state=ChangeState.APPLIED if is_made else ChangeState.REFUSED, outcome=words, now=now)


def _lock(adjustment_id: int) -> _Place:
    """Lock in the order of Note [Lock order]: sale, bucket, units, change."""
    change = ItemAdjustment.objects.select_related("item__pool").filter(pk=adjustment_id).first()
    if change is None:
        raise UnknownChange
    sale = FlashSale.objects.select_for_update().get(pk=change.item.pool.sale_id)
    # Anew: which bucket it is for may have been chosen, or chosen otherwise, until the sale was locked.
    number = ItemAdjustment.objects.values_list("bucket_no", flat=True).get(pk=adjustment_id)
    bucket = BucketRef(pool_id=change.item.pool_id, number=number)
    row, unit = Bucket(), ItemBucket()
    if sale.state == SaleState.PREHEATED:
        row = lock_bucket(bucket)
        unit = ItemBucket.objects.select_for_update().get(bucket_id=row.pk, item_id=change.item_id)
    change = locked(table=ItemAdjustment, change_id=adjustment_id)
    return _Place(change=change, sale=sale, bucket=bucket, row=row, unit=unit)


def _change_allocated(*, place: _Place) -> bool:
    """Change what is allocated; False where that would be fewer than are sold."""
    delta = place.change.delta
    rows = ItemBucket.objects.filter(pk=place.unit.pk, allocated__gte=F("sold") + max(0, -delta))
    return rows.update(allocated=F("allocated") + delta) == 1


def _move_on_hand(*, place: _Place) -> None:
    if not move_on_hand(sku_id=place.change.item.sku_id, delta=-place.change.delta):
        raise SettlementError(f"the warehouse cannot be changed by {-place.change.delta:+d} units")


def _record(*, place: _Place, now: datetime) -> None:
    change = place.change
    accounts = {account_of(item_id=change.item_id, bucket=place.bucket): change.delta}
    if change.counterpart == Counterpart.WAREHOUSE:
        accounts[WAREHOUSE] = -change.delta
    record(
        movements=[
            Movement(
                sku_id=change.item.sku_id,
                account=account,
                kind=Kind.ADJUSTMENT,
                units=units,
                reference=f"item-adjustment:{change.pk}:{account}",
                reason=change.ledger_reason,
                actor_id=change.requested_by_id,
            )
            for account, units in accounts.items()
        ],
        now=now,
    )


def _refuse(*, place: _Place, units_possible: int, now: datetime) -> None:
    words = f"possible now: {units_possible:+d}"
    _finish(place=place, state=ChangeState.REFUSED, outcome=words, now=now, units_possible=units_possible)


def _finish(
    *, place: _Place, state: ChangeState, outcome: str, now: datetime, units_possible: int | None = None
) -> None:
    finish(change=place.change, state=state, outcome=outcome, now=now, open_key=None, units_possible=units_possible)


def _update(change: ItemAdjustment, **fields: int | str) -> None:
    for name, value in fields.items():
        setattr(change, name, value)
    ItemAdjustment.objects.filter(pk=change.pk).update(**fields)
