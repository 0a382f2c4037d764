"""Sells units straight through the gate, past the web server: what is measured begins when an order closes."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from django.db.models import QuerySet
from django.utils import timezone

from benchmarks.leaving import leave_if_told
from benchmarks.verdict import orders_of
from orders.models import Order
from seckill import wakeups
from seckill.gate import gate
from seckill.gate.codes import ReserveCode
from seckill.gate.connection import raw_client
from seckill.gate.keys import BucketRef
from seckill.gate.receipts import ReceiptState
from seckill.models import SaleItem
from seckill.order_numbers import new_order_number

POLL_SECONDS = 0.05
SETTLE_SECONDS_MAX = 120.0
TICKET_LASTS_MS = 3_600_000


class TooLate(Exception):
    """Raised when something that ought to happen by itself does not."""


class NotSold(Exception):
    """Raised when a purchase is refused for a reason that has nothing to do with stock."""


@dataclass(frozen=True, kw_only=True)
class Till:
    """Where one item is bought, one unit a buyer."""

    bucket: BucketRef
    item_id: int
    price: str

    @classmethod
    def of(cls, item_id: int) -> Self:
        """Stand at the till of an item in its pool's only bucket."""
        item = SaleItem.objects.get(pk=item_id)
        return cls(bucket=BucketRef(pool_id=item.pool_id, number=0), item_id=item_id, price=str(item.price))

    def buy(self, buyer_id: int) -> str | None:
        """Reserve a unit; return the order number, or None when there is none now. ``NotSold`` for another refusal."""
        order_no = new_order_number(self.bucket)
        reply = gate.reserve(
            bucket=self.bucket,
            order_no=order_no,
            item_id=self.item_id,
            buyer_id=buyer_id,
            limit_key=str(buyer_id),
            quantity=1,
            price=self.price,
            ticket_expires_ms=int(timezone.now().timestamp() * 1000) + TICKET_LASTS_MS,
        )
        if reply.is_wake_up_wanted:
            wakeups.request(self.bucket)
        if reply.code not in {ReserveCode.RESERVED, ReserveCode.SOLD_OUT, ReserveCode.BUSY}:
            raise NotSold(reply.code.name)
        return order_no if reply.code is ReserveCode.RESERVED else None

    def sell(self, buyer_ids: Sequence[int]) -> list[str]:
        """Sell a unit to each; return the order numbers once the worker has made all orders."""
        numbers = [number for buyer_id in buyer_ids if (number := self.buy(buyer_id)) is not None]
        if len(numbers) != len(buyer_ids):
            raise TooLate(f"{len(buyer_ids)} buyers found only {len(numbers)} units")
        wanted = self.orders.count() + gate.snapshot(bucket=self.bucket, entries_max=0).queue_length
        wait_until(lambda: self.orders.count() >= wanted, seconds=SETTLE_SECONDS_MAX, what="the orders")
        return numbers

    @property
    def orders(self) -> QuerySet[Order]:
        """The orders of this sale."""
        return orders_of(self.bucket)


class BuyableWatch:
    """Sees when a returned unit can be bought: the script that says "returned" raises the stock in the same instant.

    `seen_at` has that by order number, in seconds since 1970, late by at most the time between two looks.
    """

    def __init__(self, bucket: BucketRef) -> None:
        self._receipts = bucket.keys[3]
        self.seen_at: dict[str, float] = {}

    def look(self) -> int:
        """Look; return how many units have come back since the beginning."""
        receipts = raw_client().hgetall(self._receipts)
        now = time.time()
        for order_no, receipt in receipts.items():
            if receipt.startswith(ReceiptState.RETURNED.value.encode()):
                self.seen_at.setdefault(order_no.decode(), now)
        return len(self.seen_at)


def wait_until(is_there: Callable[[], bool], *, seconds: float, what: str) -> None:
    """Return as soon as it is there; ``TooLate`` after so many seconds."""
    give_up_at = time.monotonic() + seconds
    while not is_there():
        leave_if_told()
        if time.monotonic() > give_up_at:
            raise TooLate(f"still waiting for {what} after {seconds:.0f} s")
        time.sleep(POLL_SECONDS)
