"""Run the tests on each stack, one after the other; the exit status is 1 when any has failed, or could not run."""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.matrix.stacks import DIRECTORY, STACKS, Tried, versions
from benchmarks.matrix.suite import Outcome, run_demo, run_suite
from benchmarks.screen import Screen
from benchmarks.stage import run_on_stage

FAILED_SHOWN_MAX = 20


def main() -> int:
    """Run what the command line chooses; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.matrix", description=__doc__)
    names = [tried.name for tried in STACKS]
    parser.add_argument("--stack", action="append", choices=names, help="only this one; may be given again")
    parser.add_argument("pytest", nargs="*", help="after --: what pytest is given, such as -k settle")
    arguments = parser.parse_args()
    chosen = [tried for tried in STACKS if not arguments.stack or tried.name in arguments.stack]
    return run_on_stage("matrix", lambda screen: _run(screen, chosen=chosen, arguments=arguments.pytest))


def _run(screen: Screen, *, chosen: Sequence[Tried], arguments: Sequence[str]) -> int:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    rows, is_good = [], True
    for tried in chosen:
        with screen.step(f"Finding the servers of {tried.name}"):
            stack = tried.stack()
            found = versions(stack)
        log = DIRECTORY / f"{tried.name}.log"
        with screen.step(f"Testing on {' and '.join(found)}; tail -f {log} tells more"):
            outcome = run_suite(
                environment=tried.environment(stack),
                results=DIRECTORY / f"{tried.name}.xml",
                log=log,
                arguments=arguments,
                tell=screen.line,
            )
        _tell(screen, outcome=outcome, log=log)
        log = DIRECTORY / f"{tried.name}-demo.log"
        with screen.step(f"Selling out on {' and '.join(found)}; the table is in {log}"):
            is_sold_out = run_demo(environment=tried.environment(stack), log=log)
        rows.append({**_row(tried, found=found, outcome=outcome), "demo": is_sold_out})
        is_good = is_good and outcome.is_good and is_sold_out
        _report(rows, arguments=arguments)
    _print(screen, rows)
    return 0 if is_good else 1


def _row(tried: Tried, *, found: Sequence[str], outcome: Outcome) -> dict[str, Any]:
    database, store = found
    return {"stack": tried.name, "database": database, "store": store, **vars(outcome)}


def _tell(screen: Screen, *, outcome: Outcome, log: Path) -> None:
    screen.line(f"{outcome.passed} of {outcome.tests} tests passed in {outcome.seconds:.0f} s")
    for name in outcome.failed[:FAILED_SHOWN_MAX]:
        screen.line(f"failed: {name}")
    if not outcome.is_good:
        screen.line(f"pytest ended with {outcome.status}, see {log}")


def _report(rows: Sequence[dict[str, Any]], *, arguments: Sequence[str]) -> None:
    report = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "cores": os.cpu_count(), "stacks": rows}
    (DIRECTORY / "report.json").write_text(json.dumps({**report, "pytest": arguments}, indent=2) + "\n")


def _print(screen: Screen, rows: Sequence[dict[str, Any]]) -> None:
    table = Table("database", "store", "tests", "passed", "failed", "seconds", "make demo")
    for row in rows:
        counts = (row["tests"], row["passed"], len(row["failed"]), round(row["seconds"]))
        table.add_row(row["database"], row["store"], *map(str, counts), "well" if row["demo"] else "failed")
    screen.console.print(table)


if __name__ == "__main__":
    sys.exit(main())
