"""Returns: units of closed orders come back, once, whatever doors race.

Under the bucket's lock, and never while a rebuild holds its claim (the rebuild's staging would be
stale): reservation ``SETTLED`` to ``RETURNED``, ``sold - n``, a ledger row, commit. Then one script
makes the units buyable and the buyers free, then the debt is crossed off. Killed in between, the
next run finds the debt and pays it; ``sold`` is never too low meanwhile. A page with a row that cannot
be taken back is halved until that row is alone; it is an incident, and steps aside for a minute: however many
such rows there are, those behind them come next.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import DatabaseError, connection, transaction
from django.db.models import F

from inventory.errors import InventoryError
from inventory.services import Kind as MovementKind
from inventory.services import Movement, put_into_warehouse, record
from orders.selectors import DueReturn, closing_times, numbers_put_off, pages_of_due_returns
from orders.services import put_off_units, units_taken_back
from orders.states import UnitsTo
from seckill.conf import LIMITS
from seckill.errors import GateUnavailable, NotPreheated, SettlementError, UnknownOrder
from seckill.gate import gate
from seckill.gate.gate import Restock
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_buckets, open_incident, resolve_incident
from seckill.models import Bucket, ItemBucket, Reservation, SalePool
from seckill.order_numbers import bucket_of
from seckill.outcomes import account_of, is_on_sale, lock_bucket, pool_facts
from seckill.states import ReservationState
from seckill.transient import is_about_a_row, is_transient
from seckill.work_counts import count_returns

logger = logging.getLogger(__name__)

STUCK = "returns_stuck"
# Bad rows of a bucket that one run singles out: each costs some transactions, every two seconds.
BAD_ROWS_MAX = 50
# What was singled out is not tried again before this.
RETRY_SECONDS = 60


def return_closed_orders(*, clock: Callable[[], datetime]) -> int:
    """Take back the units of closed orders and pay what Redis is owed; return how many orders were taken back.

    A bucket that cannot be dealt with now (rebuild, lock, Redis away) is left for the next run; it
    never holds up the others.
    """
    taken, stuck = 0, _pay_what_can_be_paid(except_for=set(), clock=clock)
    bad: dict[BucketRef, list[_Bad]] = defaultdict(list)
    for page in pages_of_due_returns(now=clock(), page_size=LIMITS.batch_size):
        for bucket, due in _by_bucket(page).items():
            if bucket in stuck:
                continue
            try:
                taken += _take_back_what_can_be(bucket=bucket, due=due, bad=bad[bucket], now=clock())
            except _Stuck as error:
                bad[bucket] += [_Bad(detail=str(error))] if error.is_alarming else []
                stuck.add(bucket)
        stuck |= _pay_what_can_be_paid(except_for=stuck, clock=clock)
    for found in bad.values():
        _put_off(found, until=clock() + timedelta(seconds=RETRY_SECONDS))
    _report(bad=bad, stuck=stuck, now=clock())
    return taken


@dataclass(frozen=True, kw_only=True)
class _Bad:
    """What an incident is to say; ``number`` is the order that cannot be taken back, where it is about one."""

    detail: str
    number: str = ""


class _Stuck(Exception):
    """Raised within a run when a bucket's returns have to wait for the next."""

    def __init__(self, explanation: str, *, is_alarming: bool) -> None:
        super().__init__(explanation)
        self.is_alarming = is_alarming


def _take_back_what_can_be(*, bucket: BucketRef, due: Sequence[DueReturn], bad: list[_Bad], now: datetime) -> int:
    """Take orders back, halving around those that cannot be, which ``bad`` collects; return how many were.

    Raises ``_Stuck`` when it is about no row, or there are too many bad ones to single out in one run.
    """
    try:
        return take_back(bucket=bucket, due=due, now=now)
    except DatabaseError as error:
        connection.close_if_unusable_or_obsolete()
        if not is_about_a_row(error):
            raise _Stuck(str(error), is_alarming=not is_transient(error)) from error
        detail = str(error)
    except (SettlementError, InventoryError) as error:
        detail = str(error)
    except Bucket.DoesNotExist as error:
        raise _Stuck(str(error), is_alarming=True) from error
    if len(due) == 1:
        bad.append(_Bad(number=due[0].number, detail=f"order {due[0].number}: {detail}"))
        if len(bad) >= BAD_ROWS_MAX:
            raise _Stuck(f"{len(bad)} orders cannot be taken back", is_alarming=True)
        return 0
    middle = len(due) // 2
    halves = (due[:middle], due[middle:])
    return sum(_take_back_what_can_be(bucket=bucket, due=half, bad=bad, now=now) for half in halves)


def _put_off(bad: Sequence[_Bad], *, until: datetime) -> None:
    """Have bad rows step aside, one by one: a row that not even this can be written to keeps no other in front."""
    for found in bad:
        try:
            put_off_units(numbers=[found.number], until=until)
        except DatabaseError as error:
            connection.close_if_unusable_or_obsolete()
            logger.error("order %s cannot be put off: %s", found.number, error)  # noqa: TRY400  the trace says no more


def _report(*, bad: Mapping[BucketRef, Sequence[_Bad]], stuck: set[BucketRef], now: datetime) -> None:
    """Have an incident open exactly while a bucket has orders that cannot be taken back."""
    for bucket, found in bad.items():
        details = [one.detail for one in found]
        if details and SalePool.objects.filter(pk=bucket.pool_id).exists():
            detail = "; ".join(details[:3])
            units = len(details)
            open_incident(kind=STUCK, severity=Severity.CRITICAL, bucket=bucket, detail=detail, now=now, units=units)
        elif details:
            logger.error("returns of bucket %s are stuck: %s", bucket, details[0])
    still_open = open_buckets(kind=STUCK) - stuck
    waiting = {bucket_of(number) for number in numbers_put_off()} if still_open else set()
    for bucket in still_open - waiting:
        if not bad.get(bucket):
            resolve_incident(kind=STUCK, bucket=bucket, now=now)


def _pay_what_can_be_paid(*, except_for: set[BucketRef], clock: Callable[[], datetime]) -> set[BucketRef]:
    """Pay every bucket's debts but for some; return those that could not be paid now."""
    unpaid = set()
    for bucket in buckets_in_debt():
        if bucket in except_for:
            continue
        try:
            pay_debts(bucket=bucket, now=clock())
        except (GateUnavailable, NotPreheated) as error:
            logger.warning("bucket %s cannot be restocked yet: %s", bucket, error)
            unpaid.add(bucket)
    return unpaid


def take_back(*, bucket: BucketRef, due: Sequence[DueReturn], now: datetime) -> int:
    """Count the units of closed orders as returned, in one transaction; return how many orders.

    Nothing happens while a rebuild holds the claim.
    """
    with transaction.atomic(durable=True):
        row = lock_bucket(bucket)
        if row.claim_until is not None:
            if row.claim_until > now:
                return 0
            # Void it: its holder may be alive, by a clock behind ours, with a staging that knows nothing of this.
            Bucket.objects.filter(pk=row.pk).update(claim_until=None)
        wishes = {order.number: order.units_to for order in due}
        rows = list(
            Reservation.objects.filter(order_no__in=wishes, state=ReservationState.SETTLED).order_by("item_id", "pk")
        )
        is_live = is_on_sale(bucket)
        by_fate: dict[tuple[int, UnitsTo], list[Reservation]] = defaultdict(list)
        for reservation in rows:
            wish = wishes[reservation.order_no]
            fate = wish if is_live or wish is not UnitsTo.ON_SALE else UnitsTo.WAREHOUSE
            by_fate[reservation.item_id, fate].append(reservation)
        skus = pool_facts(pool_id=bucket.pool_id).sku_ids
        for (item_id, fate), returned in sorted(by_fate.items()):
            _count_back(row=row, bucket=bucket, sku_id=skus[item_id], fate=fate, returned=returned, now=now)
            _mark(returned=returned, fate=fate, is_live=is_live, now=now)
        units_taken_back(numbers=list(wishes))
    return len(rows)


def buckets_in_debt() -> list[BucketRef]:
    """Buckets that owe units or buyer marks to Redis."""
    rows = Reservation.objects.filter(owed_at__isnull=False).values_list("pool_id", "bucket_no").distinct()
    return [BucketRef(pool_id=pool_id, number=number) for pool_id, number in rows]


def pay_debts(*, bucket: BucketRef, now: datetime) -> int:
    """Tell Redis about returned reservations until none is owed; return how many were paid.

    Raises ``GateUnavailable`` or ``NotPreheated``; then the rest stays owed.
    """
    paid = 0
    while debts := debts_of(bucket=bucket, count_max=LIMITS.batch_size):
        epoch = Bucket.objects.values_list("epoch", flat=True).get(pool_id=bucket.pool_id, number=bucket.number)
        done = gate.restock(bucket=bucket, epoch=epoch, restocks=[_restock_of(debt) for debt in debts])
        Reservation.objects.filter(order_no__in=done, owed_at__isnull=False).update(owed_at=None, units_returned_at=now)
        paid += len(done)
        count_returns(closed_at=closing_times(numbers=done).values(), now=now)
        if len(done) < len(debts):
            break
    return paid


def write_off_debts(*, bucket: BucketRef, now: datetime) -> None:
    """Forget what a Redis that is gone was owed, under the bucket's lock; MySQL counts those units as unsold."""
    Reservation.objects.filter(owed_at__isnull=False, pool_id=bucket.pool_id, bucket_no=bucket.number).update(
        owed_at=None, units_returned_at=now
    )


def debts_of(*, bucket: BucketRef, count_max: int) -> list[Reservation]:
    """Returned reservations that Redis was not told about yet, the oldest first."""
    rows = Reservation.objects.filter(owed_at__isnull=False, pool_id=bucket.pool_id, bucket_no=bucket.number).order_by(
        "owed_at"
    )
    return list(rows[:count_max])


def _by_bucket(due: Sequence[DueReturn]) -> Mapping[BucketRef, list[DueReturn]]:
    found: dict[BucketRef, list[DueReturn]] = defaultdict(list)
    for order in due:
        try:
            found[bucket_of(order.number)].append(order)
        except UnknownOrder:
            logger.error("closed order %s belongs to no bucket", order.number)  # noqa: TRY400  the trace says no more
    return found


def _count_back(
    *, row: Bucket, bucket: BucketRef, sku_id: int, fate: UnitsTo, returned: Sequence[Reservation], now: datetime
) -> None:
    """Lower ``sold``, and ``allocated`` where the units leave the sale, with their ledger rows."""
    units, item_id = sum(reservation.quantity for reservation in returned), returned[0].item_id
    leaving = 0 if fate is UnitsTo.ON_SALE else units
    counted = ItemBucket.objects.filter(bucket_id=row.pk, item_id=item_id, sold__gte=units).update(
        sold=F("sold") - units, allocated=F("allocated") - leaving
    )
    if counted != 1:
        raise SettlementError(f"item {item_id} has not sold the {units} units that come back")
    account = account_of(item_id=item_id, bucket=bucket)
    reference = f"return:{returned[0].order_no}:{item_id}"
    record(
        movements=[
            Movement(sku_id=sku_id, account=account, kind=MovementKind.RETURN, units=units, reference=reference)
        ],
        now=now,
    )
    if leaving:
        put_into_warehouse(
            sku_id=sku_id,
            units=leaving,
            account=account,
            is_written_off=fate is UnitsTo.WRITTEN_OFF,
            reference=f"{reference}:off",
            now=now,
        )


def _mark(*, returned: Sequence[Reservation], fate: UnitsTo, is_live: bool, now: datetime) -> None:
    """Write the reservations' new state, with the debt to Redis while the sale is in Redis."""
    is_back = is_live and fate is UnitsTo.ON_SALE
    marked = Reservation.objects.filter(
        pk__in=[reservation.pk for reservation in returned], state=ReservationState.SETTLED
    ).update(
        state=ReservationState.RETURNED,
        units_owed=F("quantity") if is_back else 0,
        owed_at=now if is_live else None,
        units_returned_at=None if is_live else now,
    )
    if marked != len(returned):
        raise SettlementError("a reservation was returned by somebody else, under the bucket's lock")


def _restock_of(debt: Reservation) -> Restock:
    return Restock(
        order_no=debt.order_no,
        item_id=debt.item_id,
        quantity=debt.quantity,
        limit_key=debt.limit_key,
        units_back=debt.units_owed,
    )
