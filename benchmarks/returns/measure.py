"""Closes orders in two ways and measures how long their units take until they can be bought. Needs Django set up."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from benchmarks.returns.till import BuyableWatch, Till, wait_until
from orders.services import cancel_order
from orders.states import OrderState

RETURN_SECONDS_MAX = 120.0
# Between two cancels, at random: without it each would come just after the return job's tick, and wait the longest.
PAUSE_SECONDS_MAX = 2.0
# Orders that shall expire together get their due time this much before it comes.
DUE_IN = timedelta(seconds=2)


def one_by_one(*, till: Till, orders: Sequence[tuple[str, int]], next_buyers: Sequence[int]) -> list[float]:
    """Cancel orders, given as number and buyer, of a sale that is sold out, each once the last is bought again.

    Return for each the seconds from its closing until the next buyer, who tries all the time, had its unit.
    """
    seconds = []
    for (number, buyer_id), next_buyer in zip(orders, next_buyers, strict=True):
        time.sleep(random.random() * PAUSE_SECONDS_MAX)
        cancel_order(number=number, buyer_id=buyer_id, now=timezone.now())
        closed_at = time.monotonic()
        wait_until(lambda buyer=next_buyer: till.buy(buyer) is not None, seconds=RETURN_SECONDS_MAX, what="a unit")  # type: ignore[misc]
        seconds.append(time.monotonic() - closed_at)
    return seconds


@dataclass(frozen=True, kw_only=True)
class Wave:
    """Orders that were due at one instant: seconds until each unit was buyable, from its closing and from the due time.

    `cancelled` are the seconds of the orders that were cancelled meanwhile.
    """

    expired: list[float]
    expired_from_due: list[float]
    cancelled: list[float]


def all_at_once(*, till: Till, to_cancel: Sequence[tuple[str, int]]) -> Wave:
    """Let all orders of the sale expire at once but for those to cancel, one now and then while the others return."""
    due_at = timezone.now() + DUE_IN
    kept = [number for number, _ in to_cancel]
    wave = till.orders.filter(state=OrderState.PENDING_PAYMENT).exclude(number__in=kept)
    expected = wave.update(pay_by_at=due_at)
    watch, cancelled_at = BuyableWatch(till.bucket), dict[str, float]()
    rest = list(to_cancel)

    def is_over() -> bool:
        returned = watch.look()
        if rest and returned > expected * (len(to_cancel) - len(rest)) / (len(to_cancel) + 1):
            number, buyer_id = rest.pop()
            cancel_order(number=number, buyer_id=buyer_id, now=timezone.now())
            cancelled_at[number] = time.time()
        return returned == expected + len(to_cancel)

    wait_until(is_over, seconds=RETURN_SECONDS_MAX, what="all units")
    return _wave(till=till, watch=watch, cancelled_at=cancelled_at, due_at=due_at)


def _wave(*, till: Till, watch: BuyableWatch, cancelled_at: dict[str, float], due_at: datetime) -> Wave:
    closed = till.orders.filter(state=OrderState.EXPIRED, number__in=watch.seen_at).values_list("number", "closed_at")
    closed_at = {number: at.timestamp() for number, at in closed if at is not None}
    return Wave(
        expired=sorted(watch.seen_at[number] - at for number, at in closed_at.items()),
        expired_from_due=sorted(watch.seen_at[number] - due_at.timestamp() for number in closed_at),
        cancelled=sorted(watch.seen_at[number] - at for number, at in cancelled_at.items()),
    )
