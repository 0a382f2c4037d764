"""All sales stopped at once, without a log-in and without MySQL, which hears of it as soon as it is back.

An item that is stopped is paused, with a mark that says that MySQL has to be told. Whoever can tells it: this command,
or the sweep. From then on it is a pause as any other, which a rebuild keeps; ``resume_stopped`` takes back what was
stopped, and no pause that an operator had made before.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from django.db import DatabaseError, transaction
from django.db.utils import InterfaceError

from seckill.errors import GateUnavailable
from seckill.gate import gate
from seckill.gate.gate import PauseMark
from seckill.gate.keys import BucketRef
from seckill.gate.roll_call import items_in_redis, stopped_items
from seckill.models import Bucket, SaleItem
from seckill.pausing import resume_item


@dataclass(frozen=True, kw_only=True)
class Stopped:
    """What a stop has done: items paused in Redis, per bucket, and whether MySQL knows of them."""

    items: dict[BucketRef, tuple[int, ...]]
    is_known: bool


def stop_sales(*, pool_ids: Collection[int] | None, now: datetime) -> Stopped:
    """Pause every item that Redis sells, or those of some pools; then tell MySQL, if it can be told.

    Raises ``GateUnavailable`` when Redis does not answer; what it has paused until then stays paused.
    """
    items = {}
    for bucket, item_ids in items_in_redis():
        if pool_ids is None or bucket.pool_id in pool_ids:
            items[bucket] = tuple(item for item in item_ids if _stop(bucket=bucket, item_id=item))
    return Stopped(items=items, is_known=_tell_mysql(items=items, now=now))


def adopt_stops(*, bucket: BucketRef, now: datetime) -> None:
    """Let MySQL know what was stopped without it before a rebuild asks it. Raises ``GateUnavailable``."""
    item_ids = stopped_items(bucket=bucket)
    if item_ids:
        adopt(bucket=bucket, item_ids=item_ids, now=now)


def adopt(*, bucket: BucketRef, item_ids: Iterable[int], now: datetime) -> None:
    """Write into MySQL what was stopped without it, and take the mark away. Raises ``GateUnavailable``."""
    wanted = sorted(item_ids)
    with transaction.atomic(durable=True):
        list(Bucket.objects.select_for_update().filter(pool_id=bucket.pool_id).order_by("number"))
        SaleItem.objects.filter(pool_id=bucket.pool_id, pk__in=wanted, is_paused=False).update(
            is_paused=True, stopped_at=now
        )
    for item_id in wanted:
        gate.pause(bucket=bucket, item_id=item_id)


def resume_stopped(*, pool_ids: Collection[int] | None, tell: Callable[[int], None]) -> int:
    """Sell again what was stopped; return how many items. ``tell`` hears each. Needs MySQL.

    Raises ``SaleNotReady``; an item whose Redis could not be told is sold again as soon as the sweep has told it.
    """
    stopped = SaleItem.objects.filter(stopped_at__isnull=False).order_by("pk")
    chosen = stopped if pool_ids is None else stopped.filter(pool_id__in=pool_ids)
    item_ids = list(chosen.values_list("pk", flat=True))
    for item_id in item_ids:
        with suppress(GateUnavailable):
            resume_item(item_id=item_id)
        tell(item_id)
    return len(item_ids)


def _stop(*, bucket: BucketRef, item_id: int) -> bool:
    return gate.pause(bucket=bucket, item_id=item_id, mark=PauseMark.STOP)


def _tell_mysql(*, items: dict[BucketRef, tuple[int, ...]], now: datetime) -> bool:
    try:
        for bucket, item_ids in items.items():
            adopt(bucket=bucket, item_ids=item_ids, now=now)
    except (DatabaseError, InterfaceError):
        return False
    return True
