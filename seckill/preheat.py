"""Preheat: units from the warehouse to the sale in MySQL, then every bucket into Redis by the rebuild door."""

from collections.abc import Callable
from datetime import datetime

from django.db import transaction
from django.db.models import F

from inventory.errors import NotEnoughOnHand
from inventory.services import allocate
from seckill.errors import SaleNotReady
from seckill.gate.keys import BucketRef
from seckill.models import Bucket, FlashSale, ItemBucket, SaleItem
from seckill.outcomes import account_of
from seckill.rebuild import rebuild_bucket
from seckill.states import SALE_TRANSITIONS, SaleState


def preheat_sale(*, sale_id: int, clock: Callable[[], datetime]) -> None:
    """Allocate a sale's units and open its buckets in Redis; buying begins when the window does.

    Raises ``SaleNotReady`` with an explanation when the sale cannot be preheated (also when it
    already was: a live balance is never raised again), and changes nothing then. Raises
    ``GateUnavailable`` when Redis is away: the sale is preheated all the same, and the sweep brings
    it into Redis as soon as it is back.
    """
    buckets = _allocate_sale(sale_id=sale_id, now=clock())
    for bucket in buckets:
        rebuild_bucket(bucket=bucket, clock=clock)


def _allocate_sale(*, sale_id: int, now: datetime) -> list[BucketRef]:
    with transaction.atomic(durable=True):
        sale = FlashSale.objects.select_for_update().filter(pk=sale_id).first()
        if sale is None:
            raise SaleNotReady(f"there is no sale {sale_id}")
        items = list(SaleItem.objects.filter(pool__sale_id=sale_id).order_by("pool_id", "pk"))
        _require_ready(sale=sale, items=items, now=now)
        buckets = [_allocate_item(item=item, now=now) for item in items]
        FlashSale.objects.filter(pk=sale_id).update(state=SaleState.PREHEATED)
    return list(dict.fromkeys(buckets))


def _require_ready(*, sale: FlashSale, items: list[SaleItem], now: datetime) -> None:
    if SaleState.PREHEATED not in SALE_TRANSITIONS[SaleState(sale.state)]:
        raise SaleNotReady(f"the sale is {sale.get_state_display()} already; its balance is not touched again")
    if not items:
        raise SaleNotReady("the sale has no items")
    if sale.closes_at <= now:
        raise SaleNotReady("the sale's window is over")


def _allocate_item(*, item: SaleItem, now: datetime) -> BucketRef:
    """Move an item's units into bucket 0 of its pool."""
    row, _ = Bucket.objects.get_or_create(pool_id=item.pool_id, number=0)
    bucket = BucketRef(pool_id=item.pool_id, number=0)
    try:
        allocate(
            sku_id=item.sku_id,
            units=item.units,
            account=account_of(item_id=item.pk, bucket=bucket),
            reference=f"allocate:{item.pk}:{bucket.number}:{row.epoch}",
            now=now,
        )
    except NotEnoughOnHand as error:
        raise SaleNotReady(f"{item.sku.code} needs {error.asked} units, the warehouse has {error.on_hand}") from error
    ItemBucket.objects.get_or_create(bucket_id=row.pk, item_id=item.pk)
    ItemBucket.objects.filter(bucket_id=row.pk, item_id=item.pk).update(allocated=F("allocated") + item.units)
    return bucket
