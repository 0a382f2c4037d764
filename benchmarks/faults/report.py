"""The matrix in numbers, as JSON and as a table."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.faults.matrix import Fault, Size
from benchmarks.faults.strike import Strike
from benchmarks.plan import End, Result
from benchmarks.verdict import Books, lost_orders


@dataclass(frozen=True, kw_only=True)
class Row:
    """One fault and what it led to.

    `away_seconds` is how long the part was gone or still, `answered_seconds` how long after the blow the last purchase
    call went without an answer or with a 5xx one until the next was answered (0 when none did), `heal_seconds` until
    all of it was over: the part back, purchases answered, the queue settled, reconciliation balanced. None is never.
    `forgotten` are accepted buyers told that there is no trace of their purchase; `stuck` buyers without a definite end
    and entries left in the queue.
    """

    target: str
    kind: str
    oversold: int
    duplicates: int
    lost_orders: int
    stuck: int
    drift: int
    forgotten: int
    away_seconds: float | None
    answered_seconds: float | None
    heal_seconds: float | None
    accepted: int
    orders: int
    calls_in_trouble: int
    incidents: list[str]
    broken: list[str]

    @property
    def is_good(self) -> bool:
        """Whether every law held and everything came to an end."""
        return not self.broken and self.heal_seconds is not None


def make_row(
    *,
    fault: Fault,
    strike: Strike,
    healed_at: float | None,
    queued: int,
    result: Result,
    books: Books,
    broken: list[str],
) -> Row:
    """Count what happened; `queued` is what is left in the queue, `broken` the sentences of the verdict."""
    struck_at = strike.struck_at or 0.0
    is_in_trouble = result.trouble_at is not None and result.trouble_at >= struck_at
    well_at = result.well_again_at if is_in_trouble else struck_at
    ends = [at for at in (strike.back_at, well_at, healed_at) if at is not None]
    return Row(
        target=fault.target.value,
        kind=fault.kind.value,
        oversold=books.oversold,
        duplicates=books.duplicate_orders,
        lost_orders=len(lost_orders(books=books, outcomes=result.outcomes)),
        stuck=queued + sum(1 for outcome in result.outcomes if outcome.end is End.FAILED),
        drift=books.law_7.drift,
        forgotten=sum(1 for outcome in result.outcomes if outcome.was_forgotten),
        away_seconds=_seconds(struck_at, strike.back_at),
        answered_seconds=_seconds(struck_at, well_at),
        heal_seconds=_seconds(struck_at, max(ends)) if len(ends) == 3 else None,
        accepted=sum(1 for outcome in result.outcomes if outcome.was_accepted),
        orders=len(books.owners),
        calls_in_trouble=sum(n for code, n in result.answers.items() if code in {"no_answer", "busy", "unavailable"}),
        incidents=[incident.kind for incident in books.incidents],
        broken=broken,
    )


def _seconds(begin: float, end: float | None) -> float | None:
    return None if end is None else round(end - begin, 2)


def _text(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.1f}"


def write_report(rows: Sequence[Row], path: Path, *, size: Size) -> None:
    """Write the rows as JSON, with the size of the rush and of the machine."""
    body = {"buyers": size.buyers, "units": size.units, "machine": machine(), "rows": [asdict(row) for row in rows]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(body, ensure_ascii=False, indent=2) + "\n")


def machine() -> dict[str, str | int]:
    """Say what this ran on: numbers mean little without it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cores": os.cpu_count() or 0, "memory_gib": round(memory / 2**30), "python": platform.python_version()}


PRINTED_WIDTH = 140  # Where no terminal has a width of its own.
COLUMNS = ("oversold", "duplicates", "lost_orders", "stuck", "drift", "forgotten")


def print_report(rows: Sequence[Row], console: Console, *, size: Size) -> None:
    """Print the table, and a sentence for whatever is broken."""
    table = Table(
        title=f"{size.buyers:,} buyers, {size.units:,} units, one fault in the middle of each rush",
        title_justify="left",
    )
    table.add_column("fault", no_wrap=True)
    for name in (*COLUMNS, "away s", "answer s", "heal s"):
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        counts = (str(getattr(row, name)) for name in COLUMNS)
        seconds = (_text(row.away_seconds), _text(row.answered_seconds), _text(row.heal_seconds))
        table.add_row(f"{row.target} {row.kind}", *counts, *seconds, style="" if row.is_good else "bold red")
    (console if console.is_terminal else Console(width=PRINTED_WIDTH)).print(table)
    for row in rows:
        for sentence in row.broken:
            console.print(
                f"BROKEN  {row.target} {row.kind}: {sentence}", style="bold red", markup=False, soft_wrap=True
            )
