"""Run the matrix: ``python -m benchmarks.faults [--small] [--only worker]``; the report is ``var/faults/report.json``.

It ends with 0 when every law held through every fault, 1 when one is broken, something is stuck or a step failed,
128 + n after signal n.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.faults.matrix import FULL, MATRIX, SMALL, Fault, Size
from benchmarks.screen import Screen
from benchmarks.stage import Stage, run_on_stage, running_shop

DIRECTORY = Path("var/faults")


def main() -> int:
    """Run the matrix; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--small", action="store_true", help=f"{SMALL.units} units, {SMALL.buyers} buyers")
    parser.add_argument("--only", default="", help="only faults whose name contains this, such as worker or SIGKILL")
    arguments = parser.parse_args()
    faults = [fault for fault in MATRIX if arguments.only.lower() in str(fault).lower()]
    if not faults:
        parser.error(f"no fault is called {arguments.only}; there are {', '.join(map(str, MATRIX))}")
    size = SMALL if arguments.small else FULL
    return run_on_stage("fault matrix", partial(_run, faults=faults, size=size))


def _run(screen: Screen, *, faults: Sequence[Fault], size: Size) -> int:
    (DIRECTORY / "report.json").unlink(missing_ok=True)  # Of an earlier run: it would be taken for this one's.
    with running_shop(directory=DIRECTORY, screen=screen, is_fresh=True) as stage:
        return _strike_all(faults=faults, size=size, stage=stage, screen=screen)


def _strike_all(*, faults: Sequence[Fault], size: Size, stage: Stage, screen: Screen) -> int:
    from benchmarks.faults.report import Row, print_report, write_report  # Needs Django, which is set up by now.
    from benchmarks.faults.run import run_matrix

    rows: list[Row] = []
    try:
        for row in run_matrix(faults=faults, size=size, stage=stage, screen=screen, directory=DIRECTORY):
            rows.append(row)  # noqa: PERF402  what was measured is reported even if a later fault ends the run
    finally:
        if rows:
            write_report(rows, DIRECTORY / "report.json", size=size)
            print_report(rows, screen.console, size=size)
    if not all(row.is_good for row in rows):
        return 1
    screen.console.print("Every law held through every fault, and the shop healed by itself.", style="bold green")
    return 0


if __name__ == "__main__":
    sys.exit(main())
