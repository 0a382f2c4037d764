"""The archive of a million buyers, and what it costs buyers of another item: ``make bench-archive``.

An archiving process and a buying process run against private servers. The archive goes on and stands still by turns,
and the purchases of both kinds of turns are compared. The result is ``var/bench/archive.json``. It ends with 1 when a
target is missed: memory grows by less than 100 MB, p99 of the purchases by less than 20 %, no unit is lost.
"""

import argparse
import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from multiprocessing.synchronize import Event
from pathlib import Path
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
SLOW_MICROSECONDS = 5_000


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.archive", description=__doc__)
    parser.add_argument("--buyers", type=int, default=1_000_000, help="how many have bought (1000000)")
    arguments = parser.parse_args()
    with PrivateServers(directory=DIRECTORY / "servers", is_fresh=True, environ={}) as servers:
        os.environ.update(servers.environment(), DJANGO_SETTINGS_MODULE="config.settings", LOG_LEVEL="ERROR")
        django.setup()
        report = _measure(buyers=arguments.buyers, console=Console())
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    (DIRECTORY / "archive.json").write_text(json.dumps(report, indent=2) + "\n")
    _print(report)
    return 1 if report["missed"] else 0


def _measure(*, buyers: int, console: Console) -> dict[str, Any]:
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
    raw_client().config_set("slowlog-log-slower-than", SLOW_MICROSECONDS)
    raw_client().slowlog_reset()
    return _by_turns(ended=ended, other=other, buyers=buyers, console=console)


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
    from seckill.models import FlashSale

    before = timezone.now() - timedelta(seconds=1)
    FlashSale.objects.filter(pk=sale.sale_id).update(opens_at=before - timedelta(hours=1), closes_at=before)
    raw_client().hset(sale.bucket.keys[1], "closes_ms", int(before.timestamp() * 1000))


def _by_turns(*, ended: "OpenedSale", other: "OpenedSale", buyers: int, console: Console) -> dict[str, Any]:
    """Let the archive go on and stand still by turns until it is done, while purchases are timed."""
    from django.db import connections

    connections.close_all()  # A fork must not share them.
    context = multiprocessing.get_context("spawn")
    may_run, is_archiving, is_over = context.Event(), context.Event(), context.Event()
    told: Any = context.Queue()
    archiving = context.Process(target=_archive, args=(ended.sale_id, may_run, told))
    buying = context.Process(target=_buy, args=(other.item_id, other.bucket.pool_id, is_archiving, is_over, told))
    archiving.start()
    buying.start()
    started = time.monotonic()
    while archiving.is_alive():
        for gate, seconds in ((False, TURN_SECONDS), (True, TURN_SECONDS)):
            (may_run.set if gate else may_run.clear)()
            (is_archiving.set if gate else is_archiving.clear)()
            archiving.join(seconds)
    is_over.set()
    answers = dict(told.get(timeout=120) for _ in range(2))
    archiving.join()
    buying.join()
    console.print(f"archived in {time.monotonic() - started:.0f} s, standing still included", highlight=False)
    return _report(answers=answers, buyers=buyers)


def _set_up() -> None:
    django.setup()


def _archive(sale_id: int, may_run: Event, told: Any) -> None:
    """The archiving process: as a worker does it, but that it stands still while it is told to."""
    _set_up()
    from django.utils import timezone

    from seckill.archive import Pace, advance, finish_sale, runs_of
    from seckill.archive_begin import Accepted, begin

    begin(sale_id=sale_id, accepted=Accepted(), now=timezone.now())
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (run,) = runs_of(sale_id=sale_id)
    worked, steps, at = 0.0, 0, time.monotonic()
    stages: dict[str, float] = {}

    def has_time() -> bool:
        nonlocal worked, steps, at
        step_seconds = time.monotonic() - at
        time.sleep(Pace.REST_FACTOR * step_seconds)  # As the pace does it, which would take the wait for a step.
        worked, steps = worked + step_seconds, steps + 1
        may_run.wait()
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


def _buy(item_id: int, pool_id: int, is_archiving: Event, is_over: Event, told: Any) -> None:
    """The buying process: purchases of another item at an even pace, timed one by one."""
    _set_up()
    from seckill.gate.keys import BucketRef
    from seckill.models import SaleItem
    from seckill.order_numbers import new_order_number
    from seckill.purchase import purchase
    from seckill.tickets import sign_ticket

    item = SaleItem.objects.select_related("pool__sale").get(pk=item_id)
    bucket = BucketRef(pool_id=pool_id, number=0)
    timed: dict[bool, list[float]] = {False: [], True: []}
    number, due = 0, time.monotonic()
    while not is_over.is_set():
        number, due = number + 1, due + 1 / PURCHASES_PER_SECOND
        ticket = sign_ticket(order_no=new_order_number(bucket), item=item, buyer_id=number, key=str(number))
        time.sleep(max(0.0, due - time.monotonic()))
        kind, at = is_archiving.is_set(), time.perf_counter()
        purchase(ticket=ticket, quantity=1)
        timed[kind].append(1_000 * (time.perf_counter() - at))
    told.put(("buying", {"without": timed[False], "with": timed[True]}))


def _report(*, answers: dict[str, Any], buyers: int) -> dict[str, Any]:
    from seckill.archive_tables import BuyerArchive
    from seckill.gate.connection import raw_client

    done, bought = answers["archive"], answers["buying"]
    without, with_it = _spread(bought["without"]), _spread(bought["with"])
    loss = 100 * (with_it["p99_ms"] / without["p99_ms"] - 1)
    slow = [entry["duration"] / 1_000 for entry in raw_client().slowlog_get(1_000)]
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
        "purchases_without": without,
        "purchases_with": with_it,
        "p99_loss_percent": round(loss, 1),
        "redis_calls_over_5_ms": len(slow),
        "redis_slowest_ms": max(slow, default=0),
        "missed": missed,
        "manifest": {name: done["manifest"].get(name) for name in ("buyers", "receipts", "leftovers")},
    }


def _spread(milliseconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(milliseconds)
    at = {name: ordered[min(len(ordered) - 1, int(len(ordered) * part))] for name, part in PARTS.items()}
    return {"count": len(ordered), **{name: round(value, 3) for name, value in at.items()}}


PARTS = {"p50_ms": 0.5, "p99_ms": 0.99, "p999_ms": 0.999, "worst_ms": 1.0}


def _print(report: dict[str, Any]) -> None:
    table = Table("", "without the archive", "with it", title=f"{report['buyers']:,} buyers archived")
    for name in ("count", *PARTS):
        table.add_row(name, str(report["purchases_without"][name]), str(report["purchases_with"][name]))
    console = Console()
    console.print(table)
    console.print(
        f"archive {report['archive_seconds']} s of work, memory +{report['memory_growth_mb']} MB, p99"
        f" {report['p99_loss_percent']:+} %, {report['redis_calls_over_5_ms']} Redis calls over 5 ms (slowest"
        f" {report['redis_slowest_ms']} ms)\nmissed: {', '.join(report['missed']) or 'nothing'}",
        highlight=False,
    )


if __name__ == "__main__":
    sys.exit(main())
