"""The archive of a million buyers, and what it costs buyers of another item: ``make bench-archive``.

An archiving process and a buying process run against private servers. By turns nothing else runs, the archive goes on
at each of the settings that are to be compared, and a process burns as much CPU as the archive takes and does nothing
else: what that costs the buyers is not the archive's doing but the machine's. The purchases of the turns are compared
within one run. The result is ``var/bench/archive.json``. It ends with 1 when a target is missed at the first of the
settings: memory grows by less than 100 MB, p99 of the purchases by less than 20 %, no unit is lost.
"""

import argparse
import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import django
from rich.console import Console
from rich.table import Table

from benchmarks.servers import PrivateServers

if TYPE_CHECKING:
    from benchmarks.catalogue import OpenedSale

DIRECTORY = Path("var/bench")
MEMORY_GROWTH_MB_MAX = 100
P99_LOSS_PERCENT_MAX = 20
TURN_SECONDS = 2.0
PURCHASES_PER_SECOND = 200
# A turn that was cut short says little.
TURN_PURCHASES_MIN = 100
SLOW_MICROSECONDS = 5_000
SLOW_CALLS_MAX = 20_000
# What the control works before it rests as the archive does: about as long as a step.
BURN_SECONDS = 0.02
ALONE, BURNING = "nothing else", "CPU alone"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How an archive is made: members read from Redis by one call, its rest in parts of its work, its niceness."""

    piece: int
    rest: float
    nice: int = 0

    def __str__(self) -> str:
        return f"pieces of {self.piece}, rest {self.rest:g}, nice {self.nice}"


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.archive", description=__doc__)
    parser.add_argument("--buyers", type=int, default=1_000_000, help="how many have bought (1000000)")
    parser.add_argument("--slow-us", type=int, default=SLOW_MICROSECONDS, help="Redis calls to be told of (5000)")
    parser.add_argument("settings", nargs="*", help="piece:rest:nice, such as 50:3:10; the shop's own by default")
    arguments = parser.parse_args()
    with PrivateServers(directory=DIRECTORY / "servers", is_fresh=True, environ={}) as servers:
        os.environ.update(servers.environment(), DJANGO_SETTINGS_MODULE="config.settings", LOG_LEVEL="ERROR")
        django.setup()
        settings = [_setting(text) for text in arguments.settings] or [_own_setting()]
        report = _measure(
            buyers=arguments.buyers, settings=settings, slow_microseconds=arguments.slow_us, console=Console()
        )
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    (DIRECTORY / "archive.json").write_text(json.dumps(report, indent=2) + "\n")
    _print(report)
    return 1 if report["missed"] else 0


def _setting(text: str) -> Setting:
    given = text.split(":")
    piece, rest, nice = given + ["1", "0"][len(given) - 1 :]
    return Setting(piece=int(piece), rest=float(rest), nice=int(nice))


def _own_setting() -> Setting:
    from seckill.archive import Pace
    from seckill.conf import LIMITS

    return Setting(piece=LIMITS.archive_piece_size, rest=Pace.REST_FACTOR)


def _measure(*, buyers: int, settings: Sequence[Setting], slow_microseconds: int, console: Console) -> dict[str, Any]:
    from benchmarks import catalogue
    from benchmarks.crowd import fill
    from seckill.gate.connection import raw_client

    catalogue.migrate()
    catalogue.stock_catalogue()
    ended, other = _sale(name="ended", units=buyers + 1_000), _sale(name="other", units=500_000)
    begun = time.monotonic()
    for done in fill(bucket=ended.bucket, item_id=ended.item_id, buyers=buyers):
        if done % 100_000 == 0:
            console.print(f"{done:,} buyers are there", highlight=False)
    console.print(f"filled in {time.monotonic() - begun:.0f} s", highlight=False)
    _end(ended)
    raw_client().config_set("slowlog-log-slower-than", slow_microseconds)
    raw_client().config_set("slowlog-max-len", SLOW_CALLS_MAX)
    raw_client().slowlog_reset()
    return _by_turns(ended=ended, other=other, buyers=buyers, settings=settings, console=console)


def _sale(*, name: str, units: int) -> "OpenedSale":
    from django.utils import timezone

    from benchmarks.catalogue import schedule_sale
    from benchmarks.sale import preheat
    from seckill.models import SalePool

    sale = schedule_sale(name=name, units=units, opens_at=timezone.now())
    SalePool.objects.filter(pk=sale.bucket.pool_id).update(max_queue=units)
    preheat(sale)
    return sale


def _end(sale: "OpenedSale") -> None:
    from django.utils import timezone

    from seckill.gate.connection import raw_client
    from seckill.gate.staging import milliseconds
    from seckill.models import FlashSale

    before = timezone.now() - timedelta(seconds=1)
    window = {"opens_at": before - timedelta(hours=1), "closes_at": before}
    FlashSale.objects.filter(pk=sale.sale_id).update(**window)
    told = {"opens_ms": milliseconds(window["opens_at"]), "closes_ms": milliseconds(window["closes_at"])}
    raw_client().hset(sale.bucket.keys[1], mapping=told)


def _by_turns(
    *, ended: "OpenedSale", other: "OpenedSale", buyers: int, settings: Sequence[Setting], console: Console
) -> dict[str, Any]:
    """Let the archive go on and stand still by turns until it is done, while purchases are timed."""
    from django.db import connections

    connections.close_all()  # A fork must not share them.
    context = multiprocessing.get_context("spawn")
    may_run, may_burn, is_over = context.Event(), context.Event(), context.Event()
    turn: Any = context.Value("i", 0)
    told: Any = context.Queue()
    archiving = context.Process(target=_archive, args=(ended.sale_id, may_run, turn, settings, told))
    burning = context.Process(target=_burn, args=(may_burn, settings[0].rest), daemon=True)
    buying = context.Process(target=_buy, args=(other.item_id, other.bucket.pool_id, turn, is_over, told))
    for process in (archiving, burning, buying):
        process.start()
    started = time.monotonic()
    # Turn 0 is nobody's, 1 the control's, and the others are the settings'.
    for number in cycle(range(2 + len(settings))):
        if not archiving.is_alive():
            break
        turn.value = number
        (may_burn.set if number == 1 else may_burn.clear)()
        (may_run.set if number > 1 else may_run.clear)()
        archiving.join(TURN_SECONDS)
    is_over.set()
    answers = dict(told.get(timeout=120) for _ in range(2))
    for process in (archiving, buying):
        process.join()
    burning.terminate()
    console.print(f"archived in {time.monotonic() - started:.0f} s, standing still included", highlight=False)
    return _report(answers=answers, buyers=buyers, settings=settings)


def _burn(may_run: Event, rest: float) -> None:
    """The control: as much CPU as the archive with database and Redis takes, one after the other, and nothing else."""
    while may_run.wait():
        until = time.monotonic() + BURN_SECONDS
        while time.monotonic() < until:
            pass
        time.sleep(rest * BURN_SECONDS)


def _set_up() -> None:
    django.setup()


def _archive(sale_id: int, may_run: Event, turn: Any, settings: Sequence[Setting], told: Any) -> None:
    """The archiving process: as a worker does it, but that it stands still while it is told to."""
    _set_up()
    from django.utils import timezone

    from seckill.archive import advance, finish_sale, runs_of
    from seckill.archive_begin import Accepted, begin
    from seckill.conf import LIMITS

    begin(sale_id=sale_id, accepted=Accepted(), now=timezone.now())
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (run,) = runs_of(sale_id=sale_id)
    worked, steps, at = 0.0, 0, time.monotonic()
    stages: dict[str, float] = {}
    setting = settings[0]

    def has_time() -> bool:
        nonlocal worked, steps, at, setting
        step_seconds = time.monotonic() - at
        time.sleep(setting.rest * step_seconds)  # As the pace does it, which would take the wait for a step.
        worked, steps = worked + step_seconds, steps + 1
        may_run.wait()
        setting = settings[max(0, turn.value - 2)]
        vars(LIMITS)["archive_piece_size"] = setting.piece
        os.setpriority(os.PRIO_PROCESS, 0, setting.nice)
        at = time.monotonic()
        return True

    def tell(now: Any) -> None:
        stages.setdefault(now.stage, worked)

    advance(run=run, clock=timezone.now, has_time=has_time, tell=tell)
    finish_sale(sale_id=sale_id)
    (run,) = runs_of(sale_id=sale_id)
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    answer = {"stage": run.stage, "manifest": run.manifest, "seconds": worked, "steps": steps, "reached": stages}
    told.put(("archive", answer | {"grown_mb": grown_kb / 1024}))


def _buy(item_id: int, pool_id: int, turn: Any, is_over: Event, told: Any) -> None:
    """The buying process: purchases of another item at an even pace, timed one by one."""
    _set_up()
    from seckill.gate.keys import BucketRef
    from seckill.models import SaleItem
    from seckill.order_numbers import new_order_number
    from seckill.purchase import purchase
    from seckill.tickets import sign_ticket

    item = SaleItem.objects.select_related("pool__sale").get(pk=item_id)
    bucket = BucketRef(pool_id=pool_id, number=0)
    timed: dict[int, list[list[float]]] = {}
    last = -1
    number, due = 0, time.monotonic()
    while not is_over.is_set():
        number, due = number + 1, due + 1 / PURCHASES_PER_SECOND
        ticket = sign_ticket(order_no=new_order_number(bucket), item=item, buyer_id=number, key=str(number))
        time.sleep(max(0.0, due - time.monotonic()))
        now, at = turn.value, time.perf_counter()
        purchase(ticket=ticket, quantity=1)
        if now != last:
            timed.setdefault(now, []).append([])
            last = now
        timed[now][-1].append(1_000 * (time.perf_counter() - at))
    told.put(("buying", timed))


def _report(*, answers: dict[str, Any], buyers: int, settings: Sequence[Setting]) -> dict[str, Any]:
    from seckill.archive_tables import BuyerArchive
    from seckill.gate.connection import raw_client

    done, bought = answers["archive"], answers["buying"]
    names = [ALONE, BURNING, *map(str, settings)]
    purchases = {names[turn]: _spread(turns, alone=bought[0]) for turn, turns in sorted(bought.items())}
    loss = purchases[str(settings[0])]["p99_loss_percent"]
    slow = [entry["duration"] / 1_000 for entry in raw_client().slowlog_get(SLOW_CALLS_MAX)]
    missed = []
    if done["stage"] != "DONE" or BuyerArchive.objects.count() != buyers or done["manifest"]["buyers"]["differing"]:
        missed.append("not archived as it ought to be")
    if done["grown_mb"] >= MEMORY_GROWTH_MB_MAX:
        missed.append("memory")
    if loss >= P99_LOSS_PERCENT_MAX:
        missed.append("p99")
    return {
        "buyers": buyers,
        "archive_seconds": round(done["seconds"], 1),
        "reached_after_seconds": {stage: round(seconds, 1) for stage, seconds in done["reached"].items()},
        "steps": done["steps"],
        "memory_growth_mb": round(done["grown_mb"], 1),
        "purchases": purchases,
        "slow_redis_calls": len(slow),
        "redis_slowest_ms": max(slow, default=0),
        "missed": missed,
        "manifest": {name: done["manifest"].get(name) for name in ("buyers", "receipts", "leftovers")},
    }


def _spread(turns: Sequence[Sequence[float]], *, alone: Sequence[Sequence[float]]) -> dict[str, float]:
    """What purchases of one kind of turn took, and how much more that is than with nothing else running.

    Of each turn the p50 and the p99 are taken, and of those the medians: a turn in which the machine had other work
    to do counts once, however bad it was.
    """
    found: dict[str, float] = {"turns": len(turns), "purchases": sum(map(len, turns))}
    for name, part in PARTS.items():
        found[f"{name}_ms"] = round(_typical(turns, part), 3)
        found[f"{name}_loss_percent"] = round(100 * (_typical(turns, part) / _typical(alone, part) - 1), 1)
    return found


def _typical(turns: Sequence[Sequence[float]], part: float) -> float:
    whole = [sorted(turn) for turn in turns if len(turn) >= TURN_PURCHASES_MIN] or [sorted(turns[0])]
    return median(turn[min(len(turn) - 1, int(len(turn) * part))] for turn in whole)


PARTS = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def _print(report: dict[str, Any]) -> None:
    kinds = report["purchases"]
    table = Table("purchases of another item", *kinds, title=f"{report['buyers']:,} buyers archived")
    for name in kinds[ALONE]:
        table.add_row(name.replace("_", " "), *(str(kind[name]) for kind in kinds.values()))
    console = Console()
    console.print(table)
    console.print(
        f"archive {report['archive_seconds']} s of work, memory +{report['memory_growth_mb']} MB,"
        f" {report['slow_redis_calls']} slow Redis calls (slowest {report['redis_slowest_ms']} ms)\n"
        f"missed: {', '.join(report['missed']) or 'nothing'}",
        highlight=False,
    )


if __name__ == "__main__":
    sys.exit(main())
