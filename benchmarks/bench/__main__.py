"""Measure the shop: ``make bench``; all of it is in ``var/bench/report.json``.

Parts: a accepted purchases, b sold-out answers, c polls, e orders settled, f a long queue drained, l a thousand
connections at once. README.md says how to read what is printed. It ends with 0 when all was measured, whatever the
figures are; 1 when a step failed, or calls were answered as they ought not to be.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.bench import report
from benchmarks.bench.figures import Findings
from benchmarks.bench.house import DIRECTORY, House, running_house
from benchmarks.bench.size import NORMAL, SMALL, Size
from benchmarks.screen import Screen
from benchmarks.stage import run_on_stage

REPORT = DIRECTORY / "report.json"
QUICK = "abcefl"


def main() -> int:
    """Measure; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__)
    parser.add_argument("--only", default="", help="some parts, as a,b")
    parser.add_argument("--small", action="store_true", help="small sizes: to see that it runs, not for its figures")
    parser.add_argument("--report", type=Path, default=REPORT, help="where the figures go (var/bench/report.json)")
    arguments = parser.parse_args()
    size = SMALL if arguments.small else NORMAL
    parts = [part for part in arguments.only.split(",") if part] or list(QUICK)
    if unknown := set(parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    return run_on_stage("measurement", partial(_run, parts=parts, size=size, path=arguments.report))


def _run(screen: Screen, *, parts: list[str], size: Size, path: Path) -> int:
    path.unlink(missing_ok=True)
    began = time.monotonic()
    findings, peers = Findings(), dict[str, Any]()
    with running_house(screen=screen, size=size) as house:
        for part in parts:
            findings += PARTS[part](house)
            house.require_running()
            # Written after each part: what was measured is kept, whatever becomes of the next one.
            report.write(findings, path=path, size=size, seconds=time.monotonic() - began, peers=peers)
    report.show(findings, console=screen.console)
    screen.line(f"All of it is in {path}.")
    return 1 if any(figure.total("wrong") for figure in findings.figures) else 0


def _accepted(house: House) -> Findings:
    from benchmarks.bench.purchases import accepted  # These need Django, which the house has set up by now.

    return accepted(house)


def _sold_out(house: House) -> Findings:
    from benchmarks.bench.purchases import sold_out

    return sold_out(house)


def _polled(house: House) -> Findings:
    from benchmarks.bench.purchases import polled

    return polled(house)


def _volley(house: House) -> Findings:
    from benchmarks.bench.purchases import volley

    return volley(house)


def _compared(house: House) -> Findings:
    from benchmarks.bench.comparing import compared

    return compared(house)


def _settled(house: House) -> Findings:
    from benchmarks.bench.settling import settled

    return settled(house)


def _drained(house: House) -> Findings:
    from benchmarks.bench.settling import drained

    return drained(house)


PARTS: Mapping[str, Callable[[House], Findings]] = {
    "a": _accepted,
    "b": _sold_out,
    "c": _polled,
    "d": _compared,
    "e": _settled,
    "f": _drained,
    "l": _volley,
}

if __name__ == "__main__":
    sys.exit(main())
