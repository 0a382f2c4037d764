"""Run the tests on each stack, one after the other; the exit status is 1 when any has failed, or could not run."""

import argparse
import json
import os
import subprocess
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
    rows = []
    for tried in chosen:
        rows.append(_try(screen, tried=tried, arguments=arguments))
        _report(rows)
    _print(screen, rows)
    return 0 if all(row["is_good"] for row in rows) else 1


def _try(screen: Screen, *, tried: Tried, arguments: Sequence[str]) -> dict[str, Any]:
    """Run the tests and the demo on a stack; return its row of the report."""
    with screen.step(f"Finding the servers of {tried.name}"):
        stack = tried.stack()
        found = versions(stack)
    environment, log = tried.environment(stack), DIRECTORY / f"{tried.name}.log"
    with screen.step(f"Testing on {' and '.join(found)}; tail -f {log} tells more"):
        results = DIRECTORY / f"{tried.name}.xml"
        outcome = run_suite(environment=environment, results=results, log=log, arguments=arguments, tell=screen.line)
    _tell(screen, outcome=outcome, log=log)
    log = DIRECTORY / f"{tried.name}-demo.log"
    with screen.step(f"Selling out on {' and '.join(found)}; the table is in {log}"):
        is_sold_out = run_demo(environment=environment, log=log)
    row = _row(tried, found=found, outcome=outcome, arguments=arguments)
    return {**row, "demo": is_sold_out, "is_good": outcome.is_good and is_sold_out}


def _row(tried: Tried, *, found: Sequence[str], outcome: Outcome, arguments: Sequence[str]) -> dict[str, Any]:
    database, store = found
    at, commit = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), _commit()
    facts = {"database": database, "store": store, "at": at, "commit": commit, "pytest": list(arguments)}
    return {"stack": tried.name, **facts, **vars(outcome)}


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _tell(screen: Screen, *, outcome: Outcome, log: Path) -> None:
    screen.line(f"{outcome.passed} of {outcome.tests} tests passed in {outcome.seconds:.0f} s")
    for name in outcome.failed[:FAILED_SHOWN_MAX]:
        screen.line(f"failed: {name}")
    if not outcome.is_good:
        screen.line(f"pytest ended with {outcome.status}, see {log}")


def _report(rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows of this run over those of earlier ones; stacks that it leaves out keep theirs."""
    path = DIRECTORY / "report.json"
    kept = {row["stack"]: row for row in json.loads(path.read_text())["stacks"]} if path.exists() else {}
    kept |= {row["stack"]: row for row in rows}
    stacks = [kept[tried.name] for tried in STACKS if tried.name in kept]
    path.write_text(json.dumps({"cores": os.cpu_count(), "stacks": stacks}, indent=2) + "\n")


def _print(screen: Screen, rows: Sequence[dict[str, Any]]) -> None:
    table = Table("database", "store", "tests", "passed", "failed", "seconds", "make demo")
    for row in rows:
        counts = (row["tests"], row["passed"], len(row["failed"]), round(row["seconds"]))
        table.add_row(row["database"], row["store"], *map(str, counts), "well" if row["demo"] else "failed")
    screen.console.print(table)


if __name__ == "__main__":
    sys.exit(main())
