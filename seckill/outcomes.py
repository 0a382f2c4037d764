"""Reading and writing the fates of reservations, under the bucket's lock.

# Note [Lock order]
A transaction locks a sale row first, then bucket rows by (pool, number), then an archive run's row,
then item buckets by item id, then one change by hand or transfer, then stock rows by SKU, then incidents. A
settle attempt and the deliveries of alerts are locked by transactions of their own that lock nothing
else but an incident after them. Orders are written last of all; what locks an order first takes none of
these (Note [Locks of the orders] in orders/services/moves.py). Nothing else is locked.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, Min, QuerySet, Sum

from inventory.inserting import insert_rows
from inventory.services import Kind as MovementKind
from inventory.services import Movement, record
from orders.services import NewOrder, place_orders
from seckill.decisions import Decision, Fate, decide
from seckill.errors import CommitsLost, QueueForked, SettlementError
from seckill.gate.entries import QueueEntry
from seckill.gate.keys import BucketRef
from seckill.models import Bucket, FlashSale, ItemBucket, Reservation, SaleItem, SalePool
from seckill.states import ReservationState, SaleState


@dataclass(frozen=True, kw_only=True)
class PoolFacts:
    """What settlement needs of a pool; none of it changes after preheat."""

    limit: int
    pay_window: timedelta
    sku_ids: Mapping[int, int]


def lock_bucket(bucket: BucketRef) -> Bucket:
    """Lock the bucket's row for this transaction, waiting as long as the session allows."""
    return Bucket.objects.select_for_update().get(pool_id=bucket.pool_id, number=bucket.number)


def is_on_sale(bucket: BucketRef) -> bool:
    """Tell whether Redis ought to have the bucket; no archive can begin while its row is locked."""
    return FlashSale.objects.filter(pools=bucket.pool_id, state=SaleState.PREHEATED).exists()


def pool_facts(*, pool_id: int) -> PoolFacts:
    """Read a pool's limit, pay window and the SKU of each of its items."""
    pool = SalePool.objects.select_related("sale").get(pk=pool_id)
    return PoolFacts(
        limit=pool.limit_per_buyer,
        pay_window=timedelta(minutes=pool.sale.pay_window_minutes),
        sku_ids=dict(SaleItem.objects.filter(pool_id=pool_id).values_list("pk", "sku_id")),
    )


def highest_seq(bucket: BucketRef) -> int:
    """The last number given in the bucket; numbers only grow, also from epoch to epoch."""
    return in_order(bucket).reverse().values_list("seq", flat=True).first() or 0


def in_order(bucket: BucketRef) -> QuerySet[Reservation]:
    """A bucket's reservations in the order of their unique index, so that chunks cost the same at any size."""
    rows = Reservation.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number)
    return rows.order_by("pool_id", "bucket_no", "epoch", "seq")


def next_numbers(bucket: BucketRef, *, epoch: int, after: int, count_max: int) -> tuple[int, int] | None:
    """Between which two numbers of an epoch a chunk of rows lies, both given and both in it; None behind the last row.

    It begins at a row, so that a gap between numbers, however wide a hand has made it, costs one look.
    """
    first = in_order(bucket).order_by().filter(epoch=epoch, seq__gt=after).aggregate(first=Min("seq"))["first"]
    return None if first is None else (first, first + count_max - 1)


def require_all_commits(*, bucket: BucketRef, settled_seq: int) -> None:
    """Raise ``CommitsLost`` when MySQL knows less than Redis was told; the bucket is locked."""
    known = highest_seq(bucket)
    if known < settled_seq:
        raise CommitsLost(
            f"Redis was told that reservations up to {settled_seq} are in MySQL, which has them up to {known}"
        )


def account_of(*, item_id: int, bucket: BucketRef) -> str:
    """Name of the ledger account of an item's units in a bucket."""
    return f"item:{item_id}:{bucket.number}"


def decide_entries(
    *, row: Bucket, bucket: BucketRef, entries: Sequence[QueueEntry], facts: PoolFacts
) -> list[Decision]:
    """Decide what becomes of entries, from what MySQL has; the bucket is locked.

    Raises ``QueueForked`` when a sequence number of this epoch was already used by another order.
    """
    known = known_fates(order_numbers=[entry.order_no for entry in entries])
    new = [entry for entry in entries if entry.order_no not in known]
    _require_unused_numbers(bucket=bucket, epoch=row.epoch, entries=new)
    return decide(
        entries=entries,
        known=known,
        limit=facts.limit,
        held=units_held(pool_id=bucket.pool_id, limit_keys={entry.limit_key for entry in new}),
        room=units_unsold(row=row),
    )


def known_fates(*, order_numbers: Sequence[str]) -> dict[str, Fate]:
    """Read the fates of those order numbers that have one."""
    rows = Reservation.objects.filter(order_no__in=order_numbers)
    return {
        row.order_no: Fate(
            item_id=row.item_id,
            buyer_id=row.buyer_id,
            quantity=row.quantity,
            state=ReservationState(row.state),
            reason=row.reason,
            units_owed=row.units_owed,
            seq=row.seq,
        )
        for row in rows
    }


def units_held(*, pool_id: int, limit_keys: set[str]) -> dict[str, int]:
    """Sum the settled units of each limit key (law 2)."""
    rows = Reservation.objects.filter(
        pool_id=pool_id, limit_key__in=limit_keys, state=ReservationState.SETTLED
    ).values_list("limit_key")
    return dict(rows.annotate(units=Sum("quantity")).order_by())


def units_unsold(*, row: Bucket) -> dict[int, int]:
    """Allocated minus sold, per item of a locked bucket."""
    return {unit.item_id: unit.allocated - unit.sold for unit in ItemBucket.objects.filter(bucket_id=row.pk)}


def ticket_prices(*, pool_id: int) -> dict[int, str]:
    """Price per item, as tickets and the gate spell it: the two are compared as text."""
    return {item.pk: str(item.price) for item in SaleItem.objects.filter(pool_id=pool_id)}


def write_decisions(
    *, row: Bucket, bucket: BucketRef, decisions: Sequence[Decision], facts: PoolFacts, now: datetime
) -> None:
    """Write the new ones: reservations, orders, sold units and the ledger.

    Raises ``SettlementError`` when an item's guarded update finds no room (law 1), and what the
    database says of a bad row. Then the whole transaction must fail.
    """
    new = [decision for decision in decisions if decision.is_new]
    if not new:
        return
    write_reservations(bucket=bucket, decisions=new, now=now)
    settled = [d for d in new if d.state is ReservationState.SETTLED]
    place_orders(
        new_orders=[
            NewOrder(
                number=d.entry.order_no,
                buyer_id=d.entry.buyer_id,
                sku_id=facts.sku_ids[d.entry.item_id],
                quantity=d.entry.quantity,
                unit_price=d.entry.price,
                pay_by_at=now + facts.pay_window,
            )
            for d in settled
        ],
        now=now,
    )
    _count_sold(row=row, bucket=bucket, settled=settled, facts=facts, now=now)


def write_reservations(*, bucket: BucketRef, decisions: Sequence[Decision], now: datetime) -> None:
    """Insert the fates of new decisions with one statement; needs no foreign key to hold."""
    insert_rows([_reservation(bucket=bucket, decision=d, now=now) for d in decisions])


def _count_sold(
    *, row: Bucket, bucket: BucketRef, settled: Sequence[Decision], facts: PoolFacts, now: datetime
) -> None:
    units: dict[int, int] = defaultdict(int)
    first_seq: dict[int, int] = {}
    for decision in settled:
        units[decision.entry.item_id] += decision.entry.quantity
        first_seq.setdefault(decision.entry.item_id, decision.entry.seq)
    for item_id in sorted(units):
        counted = ItemBucket.objects.filter(
            bucket_id=row.pk, item_id=item_id, allocated__gte=F("sold") + units[item_id]
        ).update(sold=F("sold") + units[item_id])
        if counted != 1:
            raise SettlementError(f"item {item_id} has no room for {units[item_id]} units")
    record(
        movements=[
            Movement(
                sku_id=facts.sku_ids[item_id],
                account=account_of(item_id=item_id, bucket=bucket),
                kind=MovementKind.SALE,
                units=-units[item_id],
                reference=f"sale:{bucket}:{row.epoch}:{first_seq[item_id]}:{item_id}",
            )
            for item_id in sorted(units)
        ],
        now=now,
    )


def _reservation(*, bucket: BucketRef, decision: Decision, now: datetime) -> Reservation:
    entry = decision.entry
    return Reservation(
        order_no=entry.order_no,
        pool_id=bucket.pool_id,
        bucket_no=bucket.number,
        item_id=entry.item_id,
        buyer_id=entry.buyer_id,
        limit_key=entry.limit_key,
        quantity=entry.quantity,
        unit_price=entry.price,
        epoch=entry.epoch,
        seq=entry.seq,
        state=decision.state,
        reason=decision.reason,
        units_owed=decision.units_owed,
        created_at=now,
    )


def _require_unused_numbers(*, bucket: BucketRef, epoch: int, entries: Sequence[QueueEntry]) -> None:
    numbers = list({entry.order_no: entry.seq for entry in entries}.values())
    taken = Reservation.objects.filter(
        pool_id=bucket.pool_id, bucket_no=bucket.number, epoch=epoch, seq__in=numbers
    ).values_list("seq", flat=True)
    used_twice = [number for number, times in Counter(numbers).items() if times > 1] or list(taken[:3])
    if used_twice:
        raise QueueForked(f"sequence numbers {used_twice[:3]} of epoch {epoch} belong to more than one order")
