"""Transfers: units move from one bucket of an item to another, once, whatever dies in between.

A transfer is a decrease of the donor and an increase of the receiver (``seckill.adjusting``) whose two halves in MySQL
are one transaction: *take* in the donor's Redis, as many as are there; *move* in MySQL, under both locks; *give* in the
receiver's Redis; *close* the row. So nothing can be bought that MySQL does not stand for. Both numbers are taken when
it is opened. A rebuild takes number and units from MySQL: of a donor before the move it undoes the take, which is
then made anew, because the epoch tells; of a receiver after the move it has given already, and the number tells.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Max, Q

from inventory.services import Kind, Movement, record
from seckill.gate import changing
from seckill.gate.gate import Snapshot
from seckill.gate.keys import BucketRef
from seckill.models import Bucket, ItemBucket, SaleItem
from seckill.numbering import is_free
from seckill.outcomes import account_of, is_on_sale
from seckill.transfer_tables import Transfer

logger = logging.getLogger(__name__)

State = Transfer.State
# Longer than it takes to look at all buckets of a shop window.
RECENTLY = timedelta(seconds=2)


def transfer(
    *,
    item_id: int,
    donor: BucketRef,
    receiver: BucketRef,
    units: int,
    clock: Callable[[], datetime],
    units_asked: int = 0,
) -> int:
    """Bring up to so many units from one bucket to another; return how many came.

    ``units_asked`` are what somebody has asked the receiver for. None come where none are there, where another change
    has one of the buckets, or a rebuild. Raises ``GateUnavailable`` and ``NotPreheated``; what is half made then is
    finished by ``finish_transfer``.
    """
    row = _open(item_id=item_id, donor=donor, receiver=receiver, units=units, now=clock(), units_asked=units_asked)
    return 0 if row is None else _carry_on(row=row, clock=clock)


def finish_transfer(*, transfer_id: int, clock: Callable[[], datetime]) -> int:
    """Take up a transfer that somebody has left half made; return the units it has moved. Raises as ``transfer``."""
    return _carry_on(row=_take_up(transfer_id), clock=clock)


def open_transfers(*, before: datetime) -> list[int]:
    """Transfers that were begun before an instant and are not finished, the oldest first."""
    rows = Transfer.objects.filter(finished_at__isnull=True, created_at__lt=before).order_by("pk")
    return list(rows.values_list("pk", flat=True))


def units_in_transit(*, bucket: BucketRef, snapshot: Snapshot) -> Mapping[int, int]:
    """Units per item that half of a transfer keeps out of a bucket's Redis (law 7); the bucket is locked.

    Those that were taken from it and are its own in MySQL still, or its own in MySQL already and not given yet.
    """
    key = str(bucket)
    if row := Transfer.objects.filter(donor_key=key, state=State.TAKING).first():
        is_taken = snapshot.adj_no == row.donor_adj_no and snapshot.epoch == row.donor_epoch
        return {row.item_id: -snapshot.adj_applied} if is_taken else {}
    if row := Transfer.objects.filter(receiver_key=key, state=State.GIVING).first():
        return {row.item_id: row.units_moved} if snapshot.adj_no == row.receiver_adj_no - 1 else {}
    return {}


def units_expected(*, item_id: int, since: datetime) -> dict[int, int]:
    """Units for which somebody will come back to a bucket, because they were brought there since an instant."""
    rows = Transfer.objects.filter(item_id=item_id, finished_at__gte=since, state=State.DONE)
    most = rows.values_list("receiver_no").annotate(units=Max("units_asked"))
    return dict(most.order_by())


def items_on_their_way(*, item_ids: Collection[int], now: datetime) -> set[int]:
    """Items of which units are between two buckets, or were a moment ago: where they are seen to be, none is left."""
    if not item_ids:
        return set()
    is_recent = Q(finished_at__isnull=True) | Q(finished_at__gte=now - RECENTLY, state=State.DONE)
    return set(Transfer.objects.filter(is_recent, item_id__in=item_ids).values_list("item_id", flat=True))


def stuck_buckets(*, now: datetime, seconds: int) -> set[BucketRef]:
    """Buckets whose transfer is open for longer than that."""
    rows = Transfer.objects.filter(finished_at__isnull=True, created_at__lt=now - timedelta(seconds=seconds))
    places = rows.values_list("pool_id", "donor_no", "receiver_no")
    return {BucketRef(pool_id=pool_id, number=number) for pool_id, *both in places for number in both}


def _carry_on(*, row: Transfer, clock: Callable[[], datetime]) -> int:
    if row.state == State.TAKING:
        row = _move(row=row, taken=_take(row), now=clock())
    if row.state == State.GIVING:
        _give(row)
        _close(row=row, now=clock())
    return row.units_moved


def _open(
    *, item_id: int, donor: BucketRef, receiver: BucketRef, units: int, now: datetime, units_asked: int = 0
) -> Transfer | None:
    """Write the transfer down, with the next number of both buckets; None where somebody else has one of them."""
    with transaction.atomic(durable=True):
        rows = _lock(pool_id=donor.pool_id, numbers=(donor.number, receiver.number))
        if not is_on_sale(donor) or not (is_free(donor) and is_free(receiver)):
            return None
        if any(row.claim_until is not None and row.claim_until > now for row in rows.values()):
            return None
        return Transfer.objects.create(
            item_id=item_id,
            pool_id=donor.pool_id,
            donor_no=donor.number,
            receiver_no=receiver.number,
            units_wanted=units,
            units_asked=units_asked,
            donor_adj_no=rows[donor.number].adj_no + 1,
            receiver_adj_no=rows[receiver.number].adj_no + 1,
            donor_epoch=rows[donor.number].epoch,
            donor_key=str(donor),
            receiver_key=str(receiver),
            created_at=now,
        )


def _take_up(transfer_id: int) -> Transfer:
    """Read a transfer that is under way; what is still to be taken is taken in the donor's present epoch."""
    row = Transfer.objects.get(pk=transfer_id)
    with transaction.atomic(durable=True):
        rows = _lock(pool_id=row.pool_id, numbers=(row.donor_no, row.receiver_no))
        row = Transfer.objects.select_for_update().get(pk=transfer_id)
        if row.state == State.TAKING:
            row.donor_epoch = rows[row.donor_no].epoch
            Transfer.objects.filter(pk=row.pk).update(donor_epoch=row.donor_epoch)
    return row


def _take(row: Transfer) -> int:
    """Take from the donor what is there of it; the same number takes once."""
    return changing.take(
        bucket=_donor(row),
        epoch=row.donor_epoch,
        number=row.donor_adj_no,
        item_id=row.item_id,
        units=row.units_wanted,
    )


def _move(*, row: Transfer, taken: int, now: datetime) -> Transfer:
    """Make both halves in MySQL at once, if the donor was not rebuilt since it was asked; return the row as it is now.

    The donor's number is used, whatever came of it; the receiver's only where units come.
    """
    with transaction.atomic(durable=True):
        rows = _lock(pool_id=row.pool_id, numbers=(row.donor_no, row.receiver_no))
        asked_in, row = row.donor_epoch, Transfer.objects.select_for_update().get(pk=row.pk)
        if row.state != State.TAKING or rows[row.donor_no].epoch != asked_in:
            return row
        donor, receiver = rows[row.donor_no], rows[row.receiver_no]
        Bucket.objects.filter(pk=donor.pk).update(adj_no=row.donor_adj_no)
        if not taken or not _change(bucket_id=donor.pk, row=row, delta=-taken):
            _finish(row=row, state=State.NOTHING, now=now)
            return row
        Bucket.objects.filter(pk=receiver.pk).update(adj_no=row.receiver_adj_no)
        _change(bucket_id=receiver.pk, row=row, delta=taken)
        row.state, row.units_moved = State.GIVING, taken
        Transfer.objects.filter(pk=row.pk).update(state=row.state, units_moved=taken)
        _record(row=row, now=now)
    return row


def _give(row: Transfer) -> None:
    """Let the receiver sell what is its own in MySQL; the same number gives once."""
    receiver = _receiver(row)
    epoch = Bucket.objects.values_list("epoch", flat=True).get(pool_id=receiver.pool_id, number=receiver.number)
    changing.adjust(
        bucket=receiver, epoch=epoch, number=row.receiver_adj_no, item_id=row.item_id, delta=row.units_moved
    )


def _close(*, row: Transfer, now: datetime) -> None:
    """Let both buckets' next numbers go."""
    with transaction.atomic(durable=True):
        _lock(pool_id=row.pool_id, numbers=(row.donor_no, row.receiver_no))
        if Transfer.objects.select_for_update().get(pk=row.pk).state == State.GIVING:
            _finish(row=row, state=State.DONE, now=now)


def _finish(*, row: Transfer, state: Transfer.State, now: datetime) -> None:
    row.state, row.finished_at, row.donor_key, row.receiver_key = state, now, None, None
    Transfer.objects.filter(pk=row.pk).update(state=state, finished_at=now, donor_key=None, receiver_key=None)


def _lock(*, pool_id: int, numbers: tuple[int, int]) -> dict[int, Bucket]:
    """Lock both buckets in the order of Note [Lock order]; return their rows by number."""
    rows = Bucket.objects.select_for_update().filter(pool_id=pool_id, number__in=numbers).order_by("pool_id", "number")
    return {row.number: row for row in rows}


def _change(*, bucket_id: int, row: Transfer, delta: int) -> bool:
    """Change what a bucket is allocated; False where that would be fewer than are sold."""
    units = ItemBucket.objects.filter(bucket_id=bucket_id, item_id=row.item_id)
    return units.filter(allocated__gte=F("sold") + max(0, -delta)).update(allocated=F("allocated") + delta) == 1


def _record(*, row: Transfer, now: datetime) -> None:
    sku_id = SaleItem.objects.values_list("sku_id", flat=True).get(pk=row.item_id)
    sides = ((_donor(row), -row.units_moved, "out"), (_receiver(row), row.units_moved, "in"))
    record(
        movements=[
            Movement(
                sku_id=sku_id,
                account=account_of(item_id=row.item_id, bucket=bucket),
                kind=Kind.ALLOCATION,
                units=units,
                reference=f"transfer:{row.pk}:{side}",
                reason=f"from bucket {row.donor_no} to bucket {row.receiver_no}",
            )
            for bucket, units, side in sides
        ],
        now=now,
    )


def _donor(row: Transfer) -> BucketRef:
    return BucketRef(pool_id=row.pool_id, number=row.donor_no)


def _receiver(row: Transfer) -> BucketRef:
    return BucketRef(pool_id=row.pool_id, number=row.receiver_no)
