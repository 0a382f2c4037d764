"""A sale from its preheat to its report: buyers rush it, and the books are read. Needs Django set up."""

import random
import time
from collections.abc import Sequence
from pathlib import Path

from django.contrib.auth.models import User
from django.utils import timezone

from benchmarks.accounts import log_in
from benchmarks.catalogue import OpenedSale
from benchmarks.leaving import leave_if_told
from benchmarks.plan import Habit, Plan, Progress, Result, Shopper
from benchmarks.race import run_rush
from benchmarks.report import Report, make_report
from benchmarks.screen import Screen
from benchmarks.stage import Stage
from benchmarks.verdict import broken_laws, orders_of, read_books
from seckill.gate.keys import BucketRef
from seckill.preheat import preheat_sale
from seckill.selectors import gate_numbers

# Which part of the buyers has which habit; the others are plain.
HABITS = {Habit.CLICKS_TWICE: 0.05, Habit.COMES_EARLY: 0.02, Habit.SENDS_NONSENSE: 0.01}
# The shop settles a queue within a second or two; what is not there by then is not coming.
SETTLE_TIMEOUT_SECONDS = 20
POLL_SECONDS = 0.05


def make_shoppers(users: Sequence[User]) -> tuple[Shopper, ...]:
    """Log the users in and give them habits at random, each habit to at least one."""
    habits = [habit for habit, part in HABITS.items() for _ in range(max(1, round(part * len(users))))][: len(users)]
    habits += [Habit.PLAIN] * (len(users) - len(habits))
    random.shuffle(habits)
    return tuple(
        Shopper(buyer_id=login.user_id, session=login.session, csrf=login.csrf, habit=habit)
        for login, habit in zip(log_in(users), habits, strict=True)
    )


def preheat(sale: OpenedSale) -> None:
    """Bring the sale into Redis."""
    preheat_sale(sale_id=sale.sale_id, clock=timezone.now)


class OrderWatch:
    """Counts a sale's orders in MySQL and keeps the time at which the last one was first seen."""

    def __init__(self, bucket: BucketRef) -> None:
        self._bucket = bucket
        self.orders = 0
        self.last_order_at = 0.0

    def look(self) -> int:
        """Return how many orders there are now."""
        if (orders := orders_of(self._bucket).count()) > self.orders:
            self.orders, self.last_order_at = orders, time.time()
        return self.orders

    def wait_until_settled(self) -> None:
        """Return once the queue is empty, or after SETTLE_TIMEOUT_SECONDS: the books will tell what is missing."""
        give_up_at = time.monotonic() + SETTLE_TIMEOUT_SECONDS
        while time.monotonic() < give_up_at:
            snapshot = gate_numbers(bucket=self._bucket)
            self.look()
            if snapshot is not None and snapshot.queue_length == 0:
                return
            time.sleep(POLL_SECONDS)


def play(*, sale: OpenedSale, plan: Plan, stage: Stage, screen: Screen, log: Path) -> Report:
    """Let the buyers of the plan in, wait for the last order, and hold the books against what they were told.

    ServersError: one of the shop's processes or the buyers' process ended before its time.
    """
    watch = OrderWatch(sale.bucket)
    result = rush(plan=plan, units=sale.units, watch=watch, stage=stage, screen=screen, log=log)
    with screen.step("Waiting for the last order"):
        watch.wait_until_settled()
    with screen.step("Reading the books of MySQL and Redis"):
        books = read_books(bucket=sale.bucket, item_id=sale.item_id)
    return make_report(
        item=sale.item_name,
        plan=plan,
        result=result,
        books=books,
        last_order_at=watch.last_order_at,
        broken=broken_laws(books=books, result=result),
    )


def rush(*, plan: Plan, units: int, watch: OrderWatch, stage: Stage, screen: Screen, log: Path) -> Result:
    """Let the buyers of the plan in and show how they and the orders fare.

    ServersError as with `play`.
    """
    with screen.rush(plan, units=units) as show:

        def look(progress: Progress) -> None:
            leave_if_told()
            stage.require_running()
            show(progress, watch.look())

        return run_rush(plan, log=log, on_progress=look)
