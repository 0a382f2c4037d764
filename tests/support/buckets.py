"""Looking at an item that is spread over several buckets."""

from collections import Counter
from itertools import count

from django.db.models import Sum
from django.utils import timezone

from inventory.selectors import balance
from seckill.gate import gate
from seckill.gate.connection import raw_client
from seckill.gate.keys import BucketRef
from seckill.models import ItemBucket, Reservation
from seckill.outcomes import account_of
from seckill.placing import bucket_for
from seckill.reconciliation import compare_now
from seckill.settlement import settle_bucket
from tests.support.shop import Shop


def key_in(shop: Shop, number: int, *, after: int = 0) -> str:
    """A limit key that is counted in a bucket; another one for each ``after``."""
    found = (
        key
        for key in (f"{after}.{n}" for n in count())
        if bucket_for(pool_id=shop.pool.pk, key=key, buckets=shop.pool.bucket_count).number == number
    )
    return next(found)


def settle_all(shop: Shop) -> None:
    """Settle every bucket."""
    for bucket in shop.buckets:
        settle_bucket(bucket=bucket, clock=timezone.now)


def left_in(shop: Shop) -> list[int]:
    """Units of the first item that Redis has left, by bucket."""
    return [gate.snapshot(bucket=bucket, entries_max=0).left[shop.item.pk] for bucket in shop.buckets]


def allocated_in(shop: Shop) -> list[int]:
    """Units of the first item that MySQL has allocated, by bucket."""
    rows = ItemBucket.objects.filter(item_id=shop.item.pk).order_by("bucket__number")
    return list(rows.values_list("allocated", flat=True))


def assert_spread_state(shop: Shop, *, sold: int, units: int | None = None) -> None:
    """Assert the whole state of a quiet shop with several buckets: each bucket's law 7, and the item's sums."""
    rows = ItemBucket.objects.filter(item_id=shop.item.pk).select_related("bucket")
    held: dict[BucketRef, Counter[str]] = {bucket: Counter() for bucket in shop.buckets}
    settled = Reservation.objects.filter(pool_id=shop.pool.pk, state="SETTLED")
    for number, key, quantity in settled.values_list("bucket_no", "limit_key", "quantity"):
        held[BucketRef(pool_id=shop.pool.pk, number=number)][key] += quantity
    assert (settled.aggregate(units=Sum("quantity"))["units"] or 0) == sold
    assert sum(row.sold for row in rows) == sold
    assert sum(row.allocated for row in rows) == (shop.item.units if units is None else units)
    for bucket in shop.buckets:
        assert [balance.drift for balance in compare_now(bucket=bucket).items] == [0] * len(shop.items)
        marks = {k.decode(): int(v) for k, v in raw_client().hgetall(bucket.keys[2]).items() if k != b"#epoch"}
        assert marks == dict(held[bucket])
        unit = next(row for row in rows if row.bucket.number == bucket.number)
        assert balance(account=account_of(item_id=shop.item.pk, bucket=bucket)) == unit.allocated - unit.sold
    assert all(units <= shop.pool.limit_per_buyer for counter in held.values() for units in counter.values())
    keys = [key for counter in held.values() for key in counter]
    assert len(keys) == len(set(keys))
