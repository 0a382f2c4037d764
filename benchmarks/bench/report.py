"""What a run has found, as JSON and as a table."""

import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.bench.figures import Figure, Findings, Goal
from benchmarks.bench.size import Size

WIDTH = 140


def write(findings: Findings, *, path: Path, size: Size, seconds: float, peers: Sequence[dict[str, Any]]) -> None:
    """Write all of it, each turn included."""
    body = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "processors": os.cpu_count(),
            "load_at_the_end": os.getloadavg()[0],
            "python": platform.python_version(),
        },
        "took_seconds": round(seconds),
        "size": vars(size),
        "figures": [figure.to_json() for figure in findings.figures],
        "goals": [goal.to_json() for goal in findings.goals],
        "peers": list(peers),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(body, ensure_ascii=False, indent=2) + "\n")


def show(findings: Findings, *, console: Console) -> None:
    """Print the figures, and below what they were to reach."""
    # As wide as the table is: a file it is written to has no width of its own.
    wide = Console(file=console.file, width=max(console.width, WIDTH), highlight=False)
    wide.print(_figures(findings.figures))
    if findings.goals:
        wide.print(_goals(findings.goals))


COUNTS = {"turns": "", "calls or rows": "count", "non-2xx": "not_2xx", "wrong": "wrong", "lost": "lost"}


def _figures(figures: Sequence[Figure]) -> Table:
    table = Table("", "what", box=None)
    table.add_column("median", justify="right")
    table.add_column("unit")
    for name in ("p50 ms", "p99 ms", *COUNTS):
        table.add_column(name, justify="right")
    for figure in figures:
        counts = [f"{figure.total(name):,}" for name in COUNTS.values() if name]
        times = number(figure.p50_ms), number(figure.p99_ms)
        row = (
            figure.part,
            figure.name,
            number(figure.value),
            figure.kind.value,
            *times,
            str(len(figure.samples)),
            *counts,
        )
        table.add_row(*row)
    return table


def _goals(goals: Sequence[Goal]) -> Table:
    table = Table("", "to reach", "is", "wanted", "", box=None)
    table.columns[2].justify = table.columns[3].justify = "right"
    for goal in goals:
        table.add_row(goal.part, goal.name, number(goal.value), goal.wanted, "reached" if goal.is_reached else "MISSED")
    return table


def number(value: float | None) -> str:
    """Write a number with as many digits as are worth reading."""
    if value is None:
        return ""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"
