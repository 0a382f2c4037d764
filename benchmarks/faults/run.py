"""Runs faults, each in the middle of a rush of its own, one after the other on one shop. Needs Django set up."""

import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from benchmarks.accounts import make_buyers
from benchmarks.catalogue import OpenedSale, schedule_sale
from benchmarks.faults.healing import Healing, is_lock_held
from benchmarks.faults.matrix import Fault, Size, Target, allowance_of
from benchmarks.faults.report import Row, make_row
from benchmarks.faults.strike import Servers, Strike
from benchmarks.leaving import leave_if_told
from benchmarks.opening import seconds_until_all_have_tickets
from benchmarks.plan import Plan, Progress, Result
from benchmarks.race import run_rush
from benchmarks.sale import make_shoppers, preheat
from benchmarks.screen import Screen
from benchmarks.servers import ServersError
from benchmarks.stage import Stage
from benchmarks.verdict import broken_laws, read_books

REHEARSAL_OPENS_IN = timedelta(days=1)
# Past this many seconds after the last buyer's end the shop is taken for stuck.
HEAL_SECONDS_MAX = 60.0
POLL_SECONDS = 0.05
# The demo's guess may be short on a busy machine, and a blow to the sessions' Redis bars who has no ticket yet.
TICKETS_MARGIN = 1.5
# The blow falls when this part of the units is gone: early enough that most of the rush is still to come.
STRIKES_AT = 1 / 3


def run_matrix(*, faults: Sequence[Fault], size: Size, stage: Stage, screen: Screen, directory: Path) -> Iterator[Row]:
    """Yield a row after each fault. ServersError: a part of the shop ended by itself, or did not come back."""
    with screen.step(f"Making {size.buyers:,} buyers and rehearsing"):
        users = make_buyers(size.buyers)
        opens_in = _time_for_tickets(stage=stage, users=users)
    for number, fault in enumerate(faults, start=1):
        with screen.step(f"{number} of {len(faults)}: {fault}"):
            stage.require_running()
            sale = schedule_sale(name=str(fault), units=size.units, opens_at=timezone.now() + opens_in)
            preheat(sale)
            row = FaultyRush(fault=fault, size=size, sale=sale, stage=stage, directory=directory).play(users)
        yield row


def _time_for_tickets(*, stage: Stage, users: Sequence[User]) -> timedelta:
    rehearsal = schedule_sale(name="彩排 · Rehearsal", units=1, opens_at=timezone.now() + REHEARSAL_OPENS_IN)
    preheat(rehearsal)
    shoppers = make_shoppers(users)
    seconds = seconds_until_all_have_tickets(url=stage.shop.url, item_id=rehearsal.item_id, shoppers=shoppers)
    return timedelta(seconds=seconds) * TICKETS_MARGIN


class FaultyRush:
    """One rush with one fault in it."""

    def __init__(self, *, fault: Fault, size: Size, sale: OpenedSale, stage: Stage, directory: Path) -> None:
        self._fault = fault
        self._size = size
        self._sale = sale
        self._url = stage.shop.url
        self._log = directory / "shop" / "buyers.log"
        self._healing = Healing(sale.bucket)
        self._strike = Strike(
            fault=fault,
            servers=_servers(stage),
            stock_redis_data=(directory / "servers").resolve() / "stock-redis",
            is_lock_held=partial(is_lock_held, sale.bucket),
        )

    def play(self, users: Sequence[User]) -> Row:
        """Let the buyers in, strike, wait until all is well, and hold the books against what buyers were told."""
        plan = Plan(
            url=self._url,
            item_id=self._sale.item_id,
            opens_at=self._sale.opens_at.timestamp(),
            shoppers=make_shoppers(users),
            reaction_seconds=self._size.reaction_seconds,
        )
        result = run_rush(plan, log=self._log, on_progress=self._look)
        connection.close()  # The server may be another by now, or have ended a session that was silent for so long.
        self._wait_until_healed()
        return self._judge(result)

    def _look(self, progress: Progress) -> None:
        is_the_time = progress.accepted >= self._sale.units * STRIKES_AT and progress.tickets == self._size.buyers
        if is_the_time and not self._strike.has_begun:
            self._strike.begin()
        self._go_on()

    def _go_on(self) -> None:
        leave_if_told()
        self._strike.require_others_running()
        self._strike.go_on()
        if self._strike.back_at is not None:
            self._healing.look()

    def _wait_until_healed(self) -> None:
        if not self._strike.has_begun:
            raise ServersError(f"{self._fault}: the rush ended before the fault could begin")
        give_up_at = time.monotonic() + HEAL_SECONDS_MAX
        while self._healing.healed_at is None and time.monotonic() < give_up_at:
            self._go_on()
            time.sleep(POLL_SECONDS)

    def _judge(self, result: Result) -> Row:
        queued = self._healing.queue_length()
        books = read_books(bucket=self._sale.bucket, item_id=self._sale.item_id)
        allowance = allowance_of(self._fault, buyers=self._size.buyers)
        return make_row(
            fault=self._fault,
            strike=self._strike,
            healed_at=self._healing.healed_at,
            queued=queued,
            result=result,
            books=books,
            broken=broken_laws(books=books, result=result, allowance=allowance),
        )


def _servers(stage: Stage) -> Servers:
    return {
        Target.WEB: stage.shop.web,
        Target.WORKER: stage.shop.worker,
        Target.BEAT: stage.shop.beat,
        Target.BROKER: stage.servers.cache_redis,
        Target.STOCK_REDIS: stage.servers.stock_redis,
        Target.MYSQL: stage.servers.database,
    }
