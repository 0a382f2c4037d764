"""Placing: in which of a pool's buckets a limit key is counted.

It is one bucket for as long as the pool lives, whatever becomes of the number of buckets: that of the key's first
ticket. So the limit is exact in one place, and no mark of a buyer ever has to move.
"""

import zlib

from seckill.gate.keys import BucketRef
from seckill.models import Bucket, SalePool, Ticket
from seckill.order_numbers import bucket_of


def place_of(*, pool_id: int, key: str) -> BucketRef:
    """Return the bucket of a limit key: where its first ticket was issued for, else by a stable hash."""
    if Bucket.objects.filter(pool_id=pool_id).count() <= 1:
        return BucketRef(pool_id=pool_id, number=0)
    first = Ticket.objects.filter(pool_id=pool_id, limit_key=key).order_by("pk").values_list("order_no", flat=True)
    number = first.first()
    if number is not None:
        return bucket_of(number)
    return bucket_for(pool_id=pool_id, key=key, buckets=bucket_count(pool_id))


def bucket_count(pool_id: int) -> int:
    """How many buckets new keys are spread over."""
    return SalePool.objects.values_list("bucket_count", flat=True).get(pk=pool_id)


def bucket_for(*, pool_id: int, key: str, buckets: int) -> BucketRef:
    """Return the bucket of a limit key that has no ticket yet: a stable hash, the same in every process."""
    return BucketRef(pool_id=pool_id, number=zlib.crc32(key.encode()) % max(1, buckets))
