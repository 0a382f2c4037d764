"""The demo: a shop on this machine, and far more buyers than units, all at the same instant, over HTTP.

It ends with 0 when every law held, 1 when one is broken or a step failed, 128 + n after signal n. The report is
``var/demo/report.json``.
"""

import argparse
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path

from benchmarks.screen import Screen
from benchmarks.stage import Stage, run_on_stage, running_shop

DIRECTORY = Path("var/demo")
# Longer than any demo: the sale that tickets are rehearsed with never opens.
REHEARSAL_OPENS_IN = timedelta(hours=1)


def main() -> int:
    """Run the demo; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.demo", description=__doc__)
    parser.add_argument("--buyers", type=int, default=2_000, help="how many want to buy (2000)")
    parser.add_argument("--units", type=int, default=100, help="how many units there are (100)")
    arguments = parser.parse_args()
    if arguments.buyers < 1 or arguments.units < 1:
        parser.error("there must be a buyer and a unit")
    return run_on_stage("demo", partial(_demo, buyers=arguments.buyers, units=arguments.units))


def _demo(screen: Screen, *, buyers: int, units: int) -> int:
    (DIRECTORY / "report.json").unlink(missing_ok=True)  # Of an earlier run: it would be taken for this one's.
    with running_shop(directory=DIRECTORY, screen=screen, is_fresh=True) as stage:
        return _sell(buyers=buyers, units=units, stage=stage, screen=screen)


def _sell(*, buyers: int, units: int, stage: Stage, screen: Screen) -> int:
    from django.utils import timezone  # What follows needs Django, which the stage has set up by now.

    from benchmarks.accounts import make_buyers
    from benchmarks.catalogue import schedule_sale
    from benchmarks.opening import seconds_until_all_have_tickets
    from benchmarks.plan import Plan
    from benchmarks.report import print_report, write_report
    from benchmarks.sale import make_shoppers, play, preheat

    with screen.step(f"Logging in {buyers:,} buyers"):
        shoppers = make_shoppers(make_buyers(buyers))
    with screen.step("Rehearsing, to know when all can have a ticket"):
        rehearsal = schedule_sale(name="彩排 · Rehearsal", units=1, opens_at=timezone.now() + REHEARSAL_OPENS_IN)
        preheat(rehearsal)
        seconds = seconds_until_all_have_tickets(url=stage.shop.url, item_id=rehearsal.item_id, shoppers=shoppers)
    with screen.step(f"Preheating {units:,} units"):
        opens_at = timezone.now() + timedelta(seconds=seconds)
        sale = schedule_sale(name="限时秒杀 · Flash sale", units=units, opens_at=opens_at)
        preheat(sale)
    plan = Plan(url=stage.shop.url, item_id=sale.item_id, opens_at=opens_at.timestamp(), shoppers=shoppers)
    report = play(sale=sale, plan=plan, stage=stage, screen=screen, log=DIRECTORY / "shop" / "buyers.log")
    write_report(report, DIRECTORY / "report.json")
    print_report(report, screen.console)
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
