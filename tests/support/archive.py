"""Ending a sale and archiving it, and whether every unit is somewhere exactly once."""

from datetime import timedelta

from django.db.models import Sum
from django.utils import timezone

from inventory.models import Stock, StockMovement
from inventory.selectors import balance
from orders.models import Order
from orders.states import CLOSED
from seckill.archive import archive_sale
from seckill.archive_begin import Accepted
from seckill.archive_tables import ArchiveRun, BuyerArchive
from seckill.gate.connection import raw_client
from seckill.gate.staging import milliseconds
from seckill.models import FlashSale, ItemBucket, Reservation
from tests.support.shop import Shop


def end(shop: Shop, *, ago: timedelta = timedelta(seconds=1)) -> None:
    """Let the sale's window be over, in both stores."""
    closes_at = timezone.now() - ago
    opens_at = closes_at - timedelta(hours=1)
    FlashSale.objects.filter(pk=shop.sale.pk).update(opens_at=opens_at, closes_at=closes_at)
    window = {"opens_ms": milliseconds(opens_at), "closes_ms": milliseconds(closes_at)}
    for bucket in shop.buckets:
        if raw_client().exists(bucket.keys[1]):
            raw_client().hset(bucket.keys[1], mapping=window)


def archive(shop: Shop, accepted: Accepted | None = None, *, ahead: timedelta = timedelta()) -> ArchiveRun:
    """Archive the sale now, as the command does, maybe on a machine whose clock is ahead; return its run."""
    (run,) = archive_sale(
        sale_id=shop.sale.pk,
        accepted=accepted or Accepted(),
        clock=lambda: timezone.now() + ahead,
        has_time=lambda: True,
    )
    return run


def copied(shop: Shop) -> dict[str, int]:
    """The archived buyers and their units."""
    return dict(BuyerArchive.objects.filter(pool=shop.pool).values_list("limit_key", "units"))


def assert_archived(shop: Shop, *, sold: int, written_off: int = 0) -> None:
    """Assert that a one-item sale is archived and sold so many units: the rest is in the warehouse, nothing in Redis.

    The ledger says the same of every account, orders and reservations agree.
    """
    unit = ItemBucket.objects.get(item_id=shop.item.pk)
    on_hand = Stock.objects.get(sku=shop.item.sku).on_hand
    assert FlashSale.objects.get(pk=shop.sale.pk).state == "ARCHIVED"
    assert raw_client().exists(*shop.bucket.keys) == 0
    assert (unit.allocated, unit.sold, on_hand) == (sold, sold, shop.item.units - sold - written_off)
    assert balance(account=f"item:{shop.item.pk}:0") == 0
    assert balance(account="warehouse", sku_id=shop.item.sku_id) == on_hand
    ledger = StockMovement.objects.filter(sku=shop.item.sku).aggregate(units=Sum("units"))["units"]
    assert ledger == shop.item.units - sold - written_off
    settled = Reservation.objects.filter(pool=shop.pool, state="SETTLED")
    assert (settled.aggregate(units=Sum("quantity"))["units"] or 0) == sold
    alive = Order.objects.filter(sku=shop.item.sku).exclude(state__in=CLOSED)
    assert set(settled.values_list("order_no", flat=True)) == set(alive.values_list("number", flat=True))
    assert not Reservation.objects.filter(owed_at__isnull=False).exists()
    assert not Order.objects.filter(units_due_at__isnull=False).exists()
