"""The other way to make orders of reservations, to set beside settlement: a task and a transaction for each."""

from decimal import Decimal

from celery import shared_task
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from inventory.inserting import insert_rows
from orders.services import NewOrder, place_orders
from seckill.models import ItemBucket, Reservation, SaleItem
from seckill.order_numbers import bucket_of
from seckill.states import ReservationState

QUEUE = "bench"


@shared_task(name="bench.settle_one")
def settle_one(order_no: str, item_id: int, buyer_id: int, epoch: int, seq: int, price: str) -> None:
    """Write one reservation and its order and count the unit, in one transaction of its own.

    No more statements than that takes: what settlement asks of a batch besides is left out.
    """
    now, bucket = timezone.now(), bucket_of(order_no)
    item = _item(item_id)
    with transaction.atomic(durable=True):
        insert_rows(
            [
                Reservation(
                    order_no=order_no,
                    pool_id=bucket.pool_id,
                    bucket_no=bucket.number,
                    item_id=item_id,
                    buyer_id=buyer_id,
                    limit_key=str(buyer_id),
                    quantity=1,
                    unit_price=Decimal(price),
                    epoch=epoch,
                    seq=seq,
                    state=ReservationState.SETTLED,
                    created_at=now,
                )
            ]
        )
        order = NewOrder(
            number=order_no, buyer_id=buyer_id, sku_id=item.sku_id, quantity=1, unit_price=Decimal(price), pay_by_at=now
        )
        place_orders(new_orders=[order], now=now)
        counted = ItemBucket.objects.filter(
            bucket__pool_id=bucket.pool_id, item_id=item_id, allocated__gte=F("sold") + 1
        )
        if counted.update(sold=F("sold") + 1) != 1:
            raise RuntimeError("sold out")


_items: dict[int, SaleItem] = {}


def _item(item_id: int) -> SaleItem:
    if item_id not in _items:
        _items[item_id] = SaleItem.objects.get(pk=item_id)
    return _items[item_id]
