"""Measure the shop: ``make bench``, ``make bench-full``; all of it is in ``var/bench/report.json``.

Parts: a accepted purchases, b sold-out answers, c polls, e orders settled, f a long queue drained, l a thousand
connections at once; in full also d other ways to sell a unit, g reconcile, h rebuild, i archive, j memory, k purchases
while archive and reconcile run. README.md says how to read what is printed. It ends with 0 when all was measured,
whatever the figures are; 1 when a step failed, or calls were answered as they ought not to be.
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
QUICK, FULL = "abcefl", "abcdefghijkl"


def main() -> int:
    """Measure; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="all parts, which takes an hour (a, b, c, e, f, l)")
    parser.add_argument("--only", default="", help="some parts, as a,b")
    parser.add_argument("--small", action="store_true", help="small sizes: to see that it runs, not for its figures")
    parser.add_argument("--report", type=Path, default=REPORT, help="where the figures go (var/bench/report.json)")
    parser.add_argument(
        "--peers", type=Path, help="a program that loads peers by turns with part a, where there is one"
    )
    arguments = parser.parse_args()
    size = SMALL if arguments.small else NORMAL
    parts = [part for part in arguments.only.split(",") if part] or list(FULL if arguments.full else QUICK)
    if unknown := set(parts) - set(FULL):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    return run_on_stage(
        "measurement", partial(_run, parts=parts, size=size, path=arguments.report, peers=arguments.peers)
    )


def _run(screen: Screen, *, parts: list[str], size: Size, path: Path, peers: Path | None) -> int:
    path.unlink(missing_ok=True)
    began = time.monotonic()
    findings, told = Findings(), list[dict[str, Any]]()
    with running_house(screen=screen, size=size) as house:
        for part in parts:
            findings += _parts()[part](house)
            if part == "a" and (program := _peers_of(peers)) is not None:
                told = _parts_peers(house, program)
            house.require_running()
            # Written after each part: what was measured is kept, whatever becomes of the next one.
            report.write(findings, path=path, size=size, seconds=time.monotonic() - began, peers=told)
    report.show(findings, console=screen.console)
    for one in told:
        screen.line(f"Peers, one round: {one}")
    screen.line(f"All of it is in {path}.")
    return 1 if any(figure.total("wrong") for figure in findings.figures) else 0


def _peers_of(named: Path | None) -> Path | None:
    from benchmarks.bench.peers import USUAL_PLACE

    program = USUAL_PLACE if named is None else named
    return program.absolute() if named is not None or program.exists() else None


def _parts_peers(house: House, program: Path) -> list[dict[str, Any]]:
    from benchmarks.bench.peers import compared

    return compared(house, program=program)


def _parts() -> Mapping[str, Callable[[House], Findings]]:
    """What there is; these need Django, which the house has set up by now."""
    from benchmarks.bench import big, comparing, purchases, settling

    return {
        "a": purchases.accepted,
        "b": purchases.sold_out,
        "c": purchases.polled,
        "d": comparing.compared,
        "e": settling.settled,
        "f": settling.drained,
        "g": big.reconciled,
        "h": big.rebuilt,
        "i": big.archived,
        "j": big.remembered,
        "k": big.undisturbed,
        "l": purchases.volley,
    }


if __name__ == "__main__":
    sys.exit(main())
