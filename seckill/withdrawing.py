"""Withdraw: a preheated sale in which nobody ever reserved anything becomes a draft again.

Redis decides whether anybody has: one script takes a bucket out, or leaves it as it is. A rebuild's claim
keeps sweep and rebuild away meanwhile; MySQL, where the claims still hold, then gives the units
back to the warehouse. Killed anywhere before that, the sweep brings the sale back into Redis, and withdraw
can be repeated. A purchase that comes first wins, and the sale stays on; one that comes later finds no
gate.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import DatabaseError, connection, transaction
from django.db.models import F
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inventory.adjusting import move_on_hand
from inventory.changes import ChangeState
from inventory.services import WAREHOUSE, Kind, Movement, record
from seckill.change_tables import ItemAdjustment, WindowChange
from seckill.errors import GateUnavailable, NotPreheated, RebuildRefused, SaleNotReady, SettlementError
from seckill.gate import changing
from seckill.gate.keys import BucketRef
from seckill.incidents import resolve_incident
from seckill.models import Bucket, DeadLetter, FlashSale, ItemBucket, Reservation, SalePool
from seckill.outcomes import account_of
from seckill.rebuild import bury, claim, let_go, rebuild_claimed, require_claim
from seckill.recovery import ENDED_BY_A_REBUILD
from seckill.selectors import buckets_of
from seckill.states import SaleState
from seckill.transfer_tables import Transfer
from seckill.transient import is_transient

TOUCHED = gettext_lazy("somebody has reserved something already; pause it, or let it end")


@dataclass(frozen=True, kw_only=True)
class _Claim:
    """The claim on one bucket, and its epoch."""

    token: str
    epoch: int


Claims = Mapping[BucketRef, _Claim]


def withdraw_sale(*, sale_id: int, clock: Callable[[], datetime], actor_id: int | None = None) -> None:
    """Make an untouched, preheated sale a draft again; its units are in the warehouse then.

    Raises ``SaleNotReady`` with an explanation, and ``GateUnavailable``; the sale stays on then, or comes
    back by itself within seconds.
    """
    for bucket in buckets_of(sale_id=sale_id):
        bury(bucket=bucket, now=clock())
    try:
        claims = _claim(sale_id=sale_id, now=clock())
    except DatabaseError as error:
        raise _as_not_ready(error) from error
    gone: set[BucketRef] = set()
    try:
        _take_out(claims=claims, gone=gone)
        _give_back(sale_id=sale_id, claims=claims, actor_id=actor_id, clock=clock)
    except BaseException as error:
        _bring_back(claims=claims, gone=gone, clock=clock)
        if isinstance(error, DatabaseError):
            raise _as_not_ready(error) from error
        raise
    for bucket, held in claims.items():
        let_go(bucket=bucket, token=held.token)
        for kind in ENDED_BY_A_REBUILD:
            resolve_incident(kind=kind, bucket=bucket, now=clock())


def _claim(*, sale_id: int, now: datetime) -> Claims:
    """Take the claims on a sale's buckets, if it can be withdrawn as far as MySQL knows."""
    with transaction.atomic(durable=True):
        rows = _lock(sale_id)
        try:
            return {
                BucketRef(pool_id=row.pool_id, number=row.number): _Claim(
                    token=claim(row=row, now=now), epoch=row.epoch
                )
                for row in rows
            }
        except RebuildRefused as error:
            raise SaleNotReady(_("{error}; please try again").format(error=error)) from error


def _lock(sale_id: int) -> list[Bucket]:
    """Lock sale and buckets; raise ``SaleNotReady`` where it cannot be withdrawn as far as MySQL knows."""
    sale = FlashSale.objects.select_for_update().filter(pk=sale_id).first()
    if sale is None:
        raise SaleNotReady(_("there is no sale {sale_id}").format(sale_id=sale_id))
    if sale.state != SaleState.PREHEATED:
        raise SaleNotReady(_("the sale is {state}, not preheated").format(state=sale.get_state_display()))
    pool_ids = list(SalePool.objects.filter(sale_id=sale_id).values_list("pk", flat=True))
    rows = list(Bucket.objects.select_for_update().filter(pool_id__in=pool_ids).order_by("pool_id", "number"))
    touched = Reservation.objects.filter(pool_id__in=pool_ids), DeadLetter.objects.filter(pool_id__in=pool_ids)
    if any(reserved.exists() for reserved in touched):
        raise SaleNotReady(str(TOUCHED))
    approved = ItemAdjustment.objects.filter(item__pool_id__in=pool_ids), WindowChange.objects.filter(sale_id=sale_id)
    if any(changes.filter(state=ChangeState.APPROVED).exists() for changes in approved):
        raise SaleNotReady(_("an approved change is being applied; please try again"))
    if Transfer.objects.filter(pool_id__in=pool_ids, finished_at__isnull=True).exists():
        raise SaleNotReady(_("units are on their way from one bucket to another; please try again"))
    return rows


def _take_out(*, claims: Claims, gone: set[BucketRef]) -> None:
    for bucket, held in claims.items():
        gone.add(bucket)  # before the call: its answer may be lost
        if not changing.withdraw(bucket=bucket, epoch=held.epoch):
            gone.discard(bucket)
            raise SaleNotReady(str(TOUCHED))


def _give_back(*, sale_id: int, claims: Claims, actor_id: int | None, clock: Callable[[], datetime]) -> None:
    """Give the units back in MySQL, where every claim still holds: nobody can have brought a bucket back."""
    with transaction.atomic(durable=True):
        rows = _lock(sale_id)
        now = clock()
        for row in rows:
            bucket = BucketRef(pool_id=row.pool_id, number=row.number)
            try:
                require_claim(row=row, token=claims[bucket].token, now=now)
            except (RebuildRefused, KeyError) as error:
                raise SaleNotReady(_("it took too long; please try again")) from error
        units = ItemBucket.objects.select_for_update().filter(bucket_id__in=[row.pk for row in rows])
        by_bucket = {row.pk: row for row in rows}
        for unit in sorted(units.order_by("item_id"), key=lambda unit: unit.item.sku_id):
            _empty(unit=unit, row=by_bucket[unit.bucket_id], actor_id=actor_id, now=now)
        # Entries in the ledger are named by it, and a sale that never came into Redis would keep it.
        Bucket.objects.filter(pk__in=by_bucket).update(epoch=F("epoch") + 1)
        FlashSale.objects.filter(pk=sale_id).update(state=SaleState.DRAFT)


def _empty(*, unit: ItemBucket, row: Bucket, actor_id: int | None, now: datetime) -> None:
    """Put an item's units into the warehouse and remove its row: the item can be edited again, or taken away."""
    if unit.sold or (unit.allocated and not move_on_hand(sku_id=unit.item.sku_id, delta=unit.allocated)):
        raise SettlementError(f"the {unit.allocated} units of item {unit.item_id} cannot go back")
    account = account_of(item_id=unit.item_id, bucket=BucketRef(pool_id=row.pool_id, number=row.number))
    record(
        movements=[
            Movement(
                sku_id=unit.item.sku_id,
                account=name,
                kind=Kind.ALLOCATION,
                units=units,
                reference=f"withdraw:{unit.item_id}:{row.number}:{row.epoch}:{side}",
                reason="the sale was withdrawn",
                actor_id=actor_id,
            )
            for name, units, side in ((account, -unit.allocated, "out"), (WAREHOUSE, unit.allocated, "in"))
            if units
        ],
        now=now,
    )
    ItemBucket.objects.filter(pk=unit.pk).delete()


def _bring_back(*, claims: Claims, gone: set[BucketRef], clock: Callable[[], datetime]) -> None:
    """Open the buckets again that were taken out already; what cannot be opened now, the sweep opens."""
    connection.close_if_unusable_or_obsolete()
    for bucket, held in claims.items():
        if bucket not in gone:
            let_go(bucket=bucket, token=held.token)
            continue
        try:
            rebuild_claimed(bucket=bucket, token=held.token, clock=clock)
        except (GateUnavailable, NotPreheated, RebuildRefused, SettlementError, DatabaseError):
            continue


def _as_not_ready(error: DatabaseError) -> SaleNotReady:
    if not is_transient(error):
        raise error
    return SaleNotReady(_("the database is busy with these units; please try again"))
