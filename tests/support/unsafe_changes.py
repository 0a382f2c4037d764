"""Adjusting units on sale as a shop does that has not read the cases: no number, and the stores in the wrong order."""

from django.db.models import F

from seckill.gate.connection import raw_client
from seckill.models import FlashSale, ItemBucket, Reservation
from tests.support.shop import Shop

# The delta, and the store that is changed first: where the worker of the unsafe version dies after it.
MYSQL_FIRST = {-4: "mysql"}
REDIS_FIRST = {+5: "redis"}


def adjust_unnumbered(shop: Shop, *, delta: int, store: str) -> None:
    """Change one store, and die before the other."""
    if store == "mysql":
        ItemBucket.objects.filter(item_id=shop.item.pk).update(allocated=F("allocated") + delta)
    else:
        raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", delta)


def unsafe_withdraw(shop: Shop) -> None:
    """Withdraw as MySQL sees it: no reservation there, so the keys are removed."""
    assert not Reservation.objects.filter(pool_id=shop.pool.pk).exists()
    FlashSale.objects.filter(pk=shop.sale.pk).update(state="DRAFT")
    raw_client().delete(*shop.bucket.keys)
