"""Looking at everything: the five keys byte for byte, and the laws as numbers."""

from collections import Counter

from django.db.models import Sum

from inventory.selectors import balance
from orders.models import Order
from seckill.gate import gate
from seckill.gate.connection import raw_client
from seckill.gate.gate import Snapshot
from seckill.gate.keys import BucketRef
from seckill.models import ItemBucket, Reservation
from seckill.outcomes import account_of
from tests.support.shop import Shop


def dump(bucket: BucketRef) -> list[bytes | None]:
    """The five keys as Redis serialises them; None for a missing one."""
    return [raw_client().dump(key) for key in bucket.keys]


def numbers(shop: Shop) -> Snapshot:
    """The bucket's numbers in Redis."""
    return gate.snapshot(bucket=shop.bucket, entries_max=0)


def sold_units(shop: Shop) -> int:
    """Units MySQL counts as sold of the first item."""
    return ItemBucket.objects.get(item_id=shop.item.pk).sold


def assert_settled_state(shop: Shop, *, sold: int) -> None:
    """Assert the whole state of a quiet one-item shop that sold so many units.

    Redis and MySQL agree, the queue is empty, every settled reservation has its order, nobody
    holds more than the limit, and the ledger adds up.
    """
    unit = ItemBucket.objects.get(item_id=shop.item.pk)
    snapshot = numbers(shop)
    settled = Reservation.objects.filter(pool_id=shop.pool.pk, state="SETTLED")
    assert unit.sold == sold
    assert unit.allocated == shop.item.units
    assert snapshot.left == {shop.item.pk: unit.allocated - sold}
    assert snapshot.queued == {shop.item.pk: 0}
    assert snapshot.queue_length == 0
    assert (settled.aggregate(units=Sum("quantity"))["units"] or 0) == sold
    assert set(settled.values_list("order_no", flat=True)) == set(Order.objects.values_list("number", flat=True))
    assert (Order.objects.aggregate(units=Sum("quantity"))["units"] or 0) == sold
    held = Counter[str]()
    for key, quantity in settled.values_list("limit_key", "quantity"):
        held[key] += quantity
    assert max(held.values(), default=0) <= shop.pool.limit_per_buyer
    buyers = {k.decode(): int(v) for k, v in raw_client().hgetall(shop.bucket.keys[2]).items() if k != b"#epoch"}
    assert buyers == dict(held)
    assert balance(account=account_of(item_id=shop.item.pk, bucket=shop.bucket)) == unit.allocated - sold
