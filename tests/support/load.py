"""Buyers in a process of their own, so that they share no interpreter with what is tested.

Run as ``python -m tests.support.load PARENT ITEM BUYER BUYER CANCELLER``: two buy all the time, one cancels what
he bought a moment ago. It ends with its parent.
"""

import sys
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

import django

from benchmarks.servers.process import end_with_parent

if TYPE_CHECKING:
    from benchmarks.returns.till import Till

PAUSE_SECONDS = 0.03
CANCELS_EVERY_SECONDS = 0.05
# So many purchases later he changes his mind; by then the order is there, unless the worker stands still.
CHANGES_HIS_MIND_AFTER = 20


def main() -> None:
    """Buy until killed."""
    end_with_parent(int(sys.argv[1]))
    django.setup()

    from benchmarks.returns.till import Till

    item_id, *buyers = map(int, sys.argv[2:])
    till = Till.of(item_id)

    def buy(buyer_id: int) -> None:
        while True:
            till.buy(buyer_id)
            time.sleep(PAUSE_SECONDS)

    *steady, canceller = buyers
    for buyer_id in steady:
        threading.Thread(target=buy, args=(buyer_id,), daemon=True).start()
    cancel_all_the_time(till=till, buyer_id=canceller)


def cancel_all_the_time(*, till: "Till", buyer_id: int) -> None:
    """Buy and cancel; what is not settled yet stays bought."""
    from django.utils import timezone

    from orders.errors import TransitionRefused
    from orders.services import cancel_order

    bought = deque[str | None]()
    while True:
        bought.append(till.buy(buyer_id))
        time.sleep(CANCELS_EVERY_SECONDS)
        order_no = bought.popleft() if len(bought) > CHANGES_HIS_MIND_AFTER else None
        if order_no is not None:
            with suppress(TransitionRefused):
                cancel_order(number=order_no, buyer_id=buyer_id, now=timezone.now())


if __name__ == "__main__":
    main()
