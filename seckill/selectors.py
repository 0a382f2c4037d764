"""Reads of the flash sales that span MySQL and Redis."""

from seckill.errors import GateUnavailable, NotPreheated
from seckill.gate import gate
from seckill.gate.gate import Snapshot
from seckill.gate.keys import BucketRef
from seckill.models import Bucket
from seckill.states import SaleState


def buckets_on_sale() -> list[BucketRef]:
    """All buckets that ought to be in Redis."""
    rows = Bucket.objects.filter(pool__sale__state=SaleState.PREHEATED).order_by("pool_id", "number")
    return [BucketRef(pool_id=pool_id, number=number) for pool_id, number in rows.values_list("pool_id", "number")]


def buckets_of(*, sale_id: int) -> list[BucketRef]:
    """A sale's buckets."""
    rows = Bucket.objects.filter(pool__sale_id=sale_id).order_by("pool_id", "number")
    return [BucketRef(pool_id=pool_id, number=number) for pool_id, number in rows.values_list("pool_id", "number")]


def gate_numbers(*, bucket: BucketRef) -> Snapshot | None:
    """The bucket's numbers in Redis, or None when Redis cannot be asked or is not sound."""
    try:
        return gate.snapshot(bucket=bucket, entries_max=0)
    except (GateUnavailable, NotPreheated):
        return None
