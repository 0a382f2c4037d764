"""A rush that goes on while nodes die: buyers who repeat on "unavailable", and the sweep as beat and workers run it."""

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

from django.db import connection
from django.utils import timezone

from seckill.errors import GateUnavailable, PurchaseRefused, RebuildRefused
from seckill.purchase import purchase
from seckill.recovery import rebuild_automatically
from seckill.settlement import settle_bucket
from seckill.sweep import look_over

BUYERS_AT_ONCE = 8
SWEEP_SECONDS = 0.3
PATIENCE_SECONDS = 30


class Rush:
    """Buyers, each with his ticket, and what each was told in the end, with the time."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}
        self.accepted_at: list[float] = []
        self.unavailable = 0

    def buy(self, ticket: str) -> str:
        """Repeat as a client does, with a short rest, until there is an answer other than "unavailable"."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                answer = purchase(ticket=ticket, quantity=1).order_no
                self.accepted_at.append(time.monotonic())
            except GateUnavailable:
                self.unavailable += 1
                time.sleep(0.05)
                continue
            except PurchaseRefused as refusal:
                answer = type(refusal).__name__
            self.answers[ticket] = answer
            return answer
        raise AssertionError("the gate stayed unavailable")

    @contextmanager
    def of(self, tickets: Sequence[str], *, pause: float = 0.0) -> Iterator[None]:
        """Let all buy, a few at a time, for as long as the block takes and until the last has his answer."""

        def buy(ticket: str) -> None:
            try:
                time.sleep(pause)
                self.buy(ticket)
            finally:
                connection.close()

        with ThreadPoolExecutor(BUYERS_AT_ONCE) as pool:
            futures = [pool.submit(buy, ticket) for ticket in tickets]
            yield
            for future in futures:
                future.result()

    def seconds_without(self, *, since: float) -> float:
        """Return how long after ``since`` the first purchase was accepted again after the longest rest."""
        times = [since, *sorted(at for at in self.accepted_at if at > since)]
        return max(later - sooner for sooner, later in pairwise(times))


@contextmanager
def sweeping() -> Iterator[None]:
    """Sweep, rebuild and settle in a thread, as beat and the workers do."""
    is_over = threading.Event()

    def sweep() -> None:
        try:
            while not is_over.wait(SWEEP_SECONDS):
                sweep_once()
        finally:
            connection.close()

    thread = threading.Thread(target=sweep)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def sweep_once() -> None:
    """Do what one tick of the sweep brings about."""
    found = look_over(now=timezone.now())
    for bucket in found.to_rebuild:
        try:
            rebuild_automatically(bucket=bucket, clock=timezone.now)
        except (GateUnavailable, RebuildRefused):
            continue  # The next tick tries again.
    for bucket in found.to_settle:
        try:
            settle_bucket(bucket=bucket, clock=timezone.now)
        except GateUnavailable:
            continue
