"""Orders of a sale by state, counted as often as the counting is cheap.

The count walks over the sale's orders, so its cost grows with them: 100,000 take about a tenth of a second. What was
counted is kept, for all processes, twenty times as long as it took, and one asker at a time counts; the others get the
last count with its time. So however many look, counting takes at most a twentieth of one connection.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from django.core.cache import cache

from orders.counting import orders_by_state
from orders.states import OrderState

KEPT_SECONDS_MIN = 1.0
KEPT_FACTOR = 20
# A count that died gives its turn up after this; a count nobody renews is forgotten after that.
TURN_SECONDS = 30
FORGOTTEN_SECONDS = 3_600

Counts = dict[int, dict[str, int]]


@dataclass(frozen=True, kw_only=True)
class OrderCounts:
    """Orders per item and state, as counted at ``counted_at``; None where nobody has finished a count yet."""

    counted_at: datetime | None = None
    of_item: Counts = field(default_factory=dict)


def order_counts(*, sale_id: int, items: Mapping[tuple[int, int], int], clock: Callable[[], datetime]) -> OrderCounts:
    """Return the counts of a sale; ``items`` names each item by its pool and SKU."""
    key = f"monitor:orders:{sale_id}"
    kept = cache.get(key)
    if kept is not None and time.time() < kept["good_until"]:
        return _unpacked(kept)
    with _turn(key) as is_mine:
        if not is_mine:
            return OrderCounts() if kept is None else _unpacked(kept)
        began = time.monotonic()
        counted_at, of_item = clock(), _count(items)
        good_until = time.time() + max(KEPT_SECONDS_MIN, KEPT_FACTOR * (time.monotonic() - began))
        packed = {"good_until": good_until, "counted_at": counted_at, "of_item": of_item}
        cache.set(key, packed, timeout=FORGOTTEN_SECONDS)
    return _unpacked(packed)


def _unpacked(kept: dict[str, object]) -> OrderCounts:
    return OrderCounts(counted_at=kept["counted_at"], of_item=kept["of_item"])  # type: ignore[arg-type]


@contextmanager
def _turn(key: str) -> Iterator[bool]:
    is_mine = cache.add(f"{key}:turn", 1, timeout=TURN_SECONDS)
    try:
        yield is_mine
    finally:
        if is_mine:
            cache.delete(f"{key}:turn")


def _count(items: Mapping[tuple[int, int], int]) -> Counts:
    of_item: Counts = {item_id: dict.fromkeys(OrderState.values, 0) for item_id in items.values()}
    for found in orders_by_state(prefixes=[str(pool_id) for pool_id in sorted({pool_id for pool_id, _ in items})]):
        if (item_id := items.get((int(found.prefix), found.sku_id))) is not None:
            of_item[item_id][found.state] = found.count
    return of_item
