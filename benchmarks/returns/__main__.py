"""Measure returns on a running shop: ``python -m benchmarks.returns``; the numbers are in ``var/bench/returns.json``.

Orders are cancelled one by one, then thousands expire at once with cancels in between. It ends with 0 when 99 of 100
units were buyable within 10 s of their order's closing, 1 when not or when a step failed, 128 + n after signal n.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

from rich.table import Table

from benchmarks.screen import Screen
from benchmarks.stage import Stage, run_on_stage, running_shop

DIRECTORY = Path("var/bench")
REPORT = DIRECTORY / "returns.json"
ALLOWED_SECONDS = 10.0
CANCELS = 20  # In the middle of the wave.


def main() -> int:
    """Measure; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.returns", description=__doc__)
    parser.add_argument("--singles", type=int, default=40, help="orders cancelled one by one (40)")
    parser.add_argument("--wave", type=int, default=10_000, help="orders that expire at once (10000)")
    arguments = parser.parse_args()
    return run_on_stage("measurement", partial(_run, singles=arguments.singles, wave=arguments.wave))


def _run(screen: Screen, *, singles: int, wave: int) -> int:
    REPORT.unlink(missing_ok=True)
    with running_shop(directory=DIRECTORY, screen=screen, is_fresh=True) as stage:
        return _measure(singles=singles, wave=wave, stage=stage, screen=screen)


def _measure(*, singles: int, wave: int, stage: Stage, screen: Screen) -> int:
    from django.utils import timezone  # What follows needs Django, which the stage has set up by now.

    from benchmarks.accounts import make_buyers
    from benchmarks.catalogue import schedule_sale
    from benchmarks.returns.measure import all_at_once, one_by_one
    from benchmarks.returns.till import Till
    from benchmarks.sale import preheat

    def open_till(units: int) -> Till:
        sale = schedule_sale(name="退货 · Returns", units=units, opens_at=timezone.now() - timedelta(minutes=1))
        preheat(sale)
        return Till.of(sale.item_id)

    with screen.step(f"Making {wave + CANCELS:,} buyers"):
        ids = [buyer.pk for buyer in make_buyers(max(wave + CANCELS, 2 * singles))]
    with screen.step(f"Cancelling {singles} orders one by one"):
        till = open_till(singles)
        numbers = till.sell(ids[:singles])
        one = one_by_one(
            till=till, orders=list(zip(numbers, ids, strict=False)), next_buyers=ids[singles : 2 * singles]
        )
    with screen.step(f"Selling {wave + CANCELS:,} units"):
        till = open_till(wave + CANCELS)
        numbers = till.sell(ids[: wave + CANCELS])
    with screen.step(f"Letting {wave:,} orders expire at once"):
        many = all_at_once(till=till, to_cancel=list(zip(numbers, ids, strict=False))[:CANCELS])
    stage.require_running()
    return _report(
        {
            "cancelled one by one": one,
            f"{len(many.expired):,} expired at once": many.expired,
            "… counted from the due time": many.expired_from_due,
            "cancelled while they return": many.cancelled,
        },
        screen=screen,
    )


def _report(measured: dict[str, Sequence[float]], *, screen: Screen) -> int:
    from benchmarks.report import percentile

    table = Table("from the closing until buyable", box=None)
    for name in ("orders", "p50 s", "p99 s", "longest s"):
        table.add_column(name, justify="right")
    rows = {}
    for name, seconds in measured.items():
        ordered = sorted(seconds)
        p50, p99 = percentile(ordered, 0.50), percentile(ordered, 0.99)
        rows[name] = {"orders": len(ordered), "p50_seconds": p50, "p99_seconds": p99, "longest_seconds": ordered[-1]}
        table.add_row(name, f"{len(ordered):,}", f"{p50:.1f}", f"{p99:.1f}", f"{ordered[-1]:.1f}")
    REPORT.write_text(json.dumps(rows, ensure_ascii=False, indent=2) + "\n")
    screen.console.print(table)
    return 0 if all((row["p99_seconds"] or 0) <= ALLOWED_SECONDS for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
