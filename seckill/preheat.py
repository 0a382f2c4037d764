"""Preheat: units from the warehouse to the sale in MySQL, then every bucket into Redis by the rebuild door."""

from collections.abc import Callable, Sequence
from datetime import datetime

from django.db import DatabaseError, transaction
from django.db.models import F
from django.utils.translation import gettext as _

from inventory.errors import NotEnoughOnHand
from inventory.services import allocate
from seckill.errors import AlreadyPreheated, SaleNotReady
from seckill.gate.keys import BucketRef
from seckill.models import Bucket, FlashSale, ItemBucket, SaleItem, SalePool
from seckill.outcomes import account_of
from seckill.rebuild import claim
from seckill.rebuilds_in_turn import rebuild_in_turn
from seckill.spreading import shares
from seckill.states import SALE_TRANSITIONS, SaleState
from seckill.transient import is_transient


def _anyhow() -> bool:
    return True


def preheat_sale(*, sale_id: int, clock: Callable[[], datetime], is_as_seen: Callable[[], bool] = _anyhow) -> None:
    """Allocate a sale's units and open its buckets in Redis; buying begins when the window does.

    Raises ``SaleNotReady`` with an explanation when the sale cannot be preheated (also when it
    already was: a live balance is never raised again), and changes nothing then; so it does when
    ``is_as_seen``, asked while the sale is locked, says that it is not what somebody has seen. Raises
    ``GateUnavailable`` when Redis is away: the sale is preheated all the same, and the sweep brings
    it into Redis as soon as it is back.
    """
    try:
        claims = _allocate_sale(sale_id=sale_id, now=clock(), is_as_seen=is_as_seen)
    except DatabaseError as error:
        if not is_transient(error):
            raise
        raise SaleNotReady(_("the database is busy with these units; nothing was changed, please try again")) from error
    rebuild_in_turn(claims=claims, clock=clock)


def _allocate_sale(*, sale_id: int, now: datetime, is_as_seen: Callable[[], bool] = _anyhow) -> dict[BucketRef, str]:
    """Write everything preheat means in MySQL; return the claims on the buckets, so that no sweep comes between."""
    with transaction.atomic(durable=True):
        sale = FlashSale.objects.select_for_update().filter(pk=sale_id).first()
        if sale is None:
            raise SaleNotReady(_("there is no sale {sale_id}").format(sale_id=sale_id))
        if not is_as_seen():
            raise SaleNotReady(_("the sale was changed since you looked at it; nothing was done, please look again"))
        items = list(
            SaleItem.objects.filter(pool__sale_id=sale_id).select_related("sku", "pool").order_by("pool_id", "pk")
        )
        _require_ready(sale=sale, items=items, now=now)
        rows = _lock_buckets(pool_ids=sorted({item.pool_id for item in items}))
        _raise_allocated(items=items, rows=rows)
        _take_from_warehouse(items=items, rows=rows, now=now)
        FlashSale.objects.filter(pk=sale_id).update(state=SaleState.PREHEATED)
        every = [row for of_pool in rows.values() for row in of_pool]
        return {BucketRef(pool_id=row.pool_id, number=row.number): claim(row=row, now=now) for row in every}


def _require_ready(*, sale: FlashSale, items: Sequence[SaleItem], now: datetime) -> None:
    if SaleState.PREHEATED not in SALE_TRANSITIONS[SaleState(sale.state)]:
        raise AlreadyPreheated(
            _("the sale is {state} already; its balance is not touched again").format(state=sale.get_state_display())
        )
    if not items:
        raise SaleNotReady(_("the sale has no items"))
    if sale.closes_at <= now:
        raise SaleNotReady(_("the sale's window is over"))
    if ItemBucket.objects.filter(item__in=items, allocated__gt=0).exists():
        raise SaleNotReady(_("the sale has allocated units already; its balance is not touched again"))


def _lock_buckets(*, pool_ids: Sequence[int]) -> dict[int, list[Bucket]]:
    """Make and lock the buckets of each pool, in order; return them by pool.

    Where a sale was withdrawn and has fewer buckets now, the others are opened all the same, without units: tickets
    issued for them are still about.
    """
    for pool in SalePool.objects.filter(pk__in=pool_ids).order_by("pk"):
        for number in range(pool.bucket_count):
            Bucket.objects.get_or_create(pool_id=pool.pk, number=number)
    rows: dict[int, list[Bucket]] = {pool_id: [] for pool_id in pool_ids}
    for row in Bucket.objects.select_for_update().filter(pool_id__in=pool_ids).order_by("pool_id", "number"):
        rows[row.pool_id].append(row)
    return rows


def _shares(*, item: SaleItem, rows: Sequence[Bucket]) -> list[tuple[Bucket, int]]:
    """Each bucket of an item's pool with the units it gets."""
    units = shares(units=item.units, buckets=item.pool.bucket_count)
    return [(row, units[row.number] if row.number < len(units) else 0) for row in rows]


def _raise_allocated(*, items: Sequence[SaleItem], rows: dict[int, list[Bucket]]) -> None:
    for item in sorted(items, key=lambda item: item.pk):
        for row, units in _shares(item=item, rows=rows[item.pool_id]):
            ItemBucket.objects.get_or_create(bucket_id=row.pk, item_id=item.pk)
            ItemBucket.objects.filter(bucket_id=row.pk, item_id=item.pk).update(allocated=F("allocated") + units)


def _take_from_warehouse(*, items: Sequence[SaleItem], rows: dict[int, list[Bucket]], now: datetime) -> None:
    """Move the units through the ledger; stock rows last and by SKU, see Note [Lock order]."""
    for item in sorted(items, key=lambda item: item.sku_id):
        taken = 0
        for row, units in _shares(item=item, rows=rows[item.pool_id]):
            if not units:
                continue
            bucket = BucketRef(pool_id=row.pool_id, number=row.number)
            try:
                allocate(
                    sku_id=item.sku_id,
                    units=units,
                    account=account_of(item_id=item.pk, bucket=bucket),
                    reference=f"allocate:{item.pk}:{bucket.number}:{row.epoch}",
                    now=now,
                )
            except NotEnoughOnHand as error:
                on_hand = error.on_hand + taken
                raise SaleNotReady(
                    _("{code} needs {units} units, the warehouse has {on_hand}").format(
                        code=item.sku.code, units=item.units, on_hand=on_hand
                    )
                ) from error
            taken += units
