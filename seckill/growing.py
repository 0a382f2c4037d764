"""Growing: a pool that is on sale gets more buckets, while it sells.

No buyer's mark moves: a limit key stays in the bucket of its first ticket (``seckill.placing``), so the limit is exact
in one place before, meanwhile and afterwards, and old tickets work as they did. Only units move, and by transfers as
ever. Every gate is told of the new number before a unit can be in a new bucket: it must not say "sold out" for it.
See decision record "A pool grows by new keys alone".
"""

from collections.abc import Callable
from datetime import datetime

from django.db import transaction

from seckill.elsewhere import buckets_of_pool
from seckill.errors import GateUnavailable, NotPreheated, RebuildRefused, SaleNotReady
from seckill.gate import changing
from seckill.gate.keys import BucketRef
from seckill.models import Bucket, FlashSale, ItemBucket, SaleItem, SalePool
from seckill.rebuild import claim
from seckill.rebuilds_in_turn import rebuild_in_turn
from seckill.spreading import BUCKETS_MAX
from seckill.states import SaleState


def grow_pool(*, pool_id: int, buckets: int, clock: Callable[[], datetime]) -> None:
    """Give a pool on sale more buckets; units come to them by themselves within seconds.

    Raises ``SaleNotReady`` with an explanation, and ``GateUnavailable``: where a gate could not be told before, nothing
    is changed; where a new bucket could not be opened, the sweep opens it.
    """
    for bucket in buckets_of_pool(pool_id):
        _tell(bucket=bucket, buckets=buckets)
    claims = _write(pool_id=pool_id, buckets=buckets, now=clock())
    # Again: a rebuild that swapped in between has read the old number. What is missed here the sweep sees.
    for bucket in buckets_of_pool(pool_id):
        if bucket not in claims:
            _tell(bucket=bucket, buckets=buckets)
    try:
        rebuild_in_turn(claims=claims, clock=clock)
    except (GateUnavailable, RebuildRefused) as error:
        raise GateUnavailable(f"a new bucket is not open yet: {error}") from error


def _tell(*, bucket: BucketRef, buckets: int) -> None:
    try:
        changing.widen(bucket=bucket, buckets=buckets)
    except NotPreheated as error:
        raise GateUnavailable(f"bucket {bucket} is not in Redis") from error


def _write(*, pool_id: int, buckets: int, now: datetime) -> dict[BucketRef, str]:
    """Write the new buckets into MySQL, empty, each with a rebuild's claim; return the claims.

    The pool's row is locked, and with it every ticket that is being written: see ``tickets.new_ticket``.
    """
    with transaction.atomic(durable=True):
        sale = FlashSale.objects.select_for_update().filter(pools=pool_id).first()
        if sale is None or sale.state != SaleState.PREHEATED:
            raise SaleNotReady("only a pool that is on sale can grow; before, its number of buckets is edited")
        have = Bucket.objects.filter(pool_id=pool_id).count()
        if not have < buckets <= BUCKETS_MAX:
            raise SaleNotReady(f"the pool has {have} buckets; it can have {have + 1} to {BUCKETS_MAX}")
        SalePool.objects.select_for_update().get(pk=pool_id)
        SalePool.objects.filter(pk=pool_id).update(bucket_count=buckets)
        rows = [Bucket.objects.create(pool_id=pool_id, number=number) for number in range(have, buckets)]
        item_ids = SaleItem.objects.filter(pool_id=pool_id).order_by("pk").values_list("pk", flat=True)
        ItemBucket.objects.bulk_create(ItemBucket(bucket=row, item_id=pk) for pk in item_ids for row in rows)
        return {BucketRef(pool_id=pool_id, number=row.number): claim(row=row, now=now) for row in rows}
