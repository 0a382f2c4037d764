"""The report of a rush: the numbers a shop owner wants, as JSON and as a table."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.plan import End, Outcome, Plan, Result
from benchmarks.verdict import Books, law_7_text

_COUNTED_ANSWERS = frozenset({"accepted", "not_started", "bad_request"})
_COUNTED_ENDS = frozenset({"confirmed", "sold_out", "limit_reached", "failed"})


@dataclass(frozen=True, kw_only=True)
class Report:
    """One rush in numbers.

    Buyers are counted by what they were told in the end: `accepted` with a confirmed order, `sold_out`,
    `limit_reached`, `other_ends` by reason, `failed` without a definite end. `not_started`, `bad_request` and
    `repeated` (busy, throttled or unanswered, by code) count answers instead, since those buyers came back.
    Latencies are from the click to the answer, of all purchase calls answered after the opening.
    """

    item: str
    units: int
    buyers: int
    accepted: int
    sold_out: int
    limit_reached: int
    other_ends: dict[str, int]
    failed: int
    not_started: int
    bad_request: int
    repeated: dict[str, int]
    orders: int
    oversold: int
    duplicate_orders: int
    left_in_redis: int | None
    left_in_mysql: int
    law_7: str
    drift: int
    purchase_p50_ms: float | None
    purchase_p99_ms: float | None
    purchases_per_second: float | None
    settle_seconds: float | None
    connections: int
    broken: list[str]


def make_report(
    *, item: str, plan: Plan, result: Result, books: Books, last_order_at: float, broken: list[str]
) -> Report:
    """Count what happened; `last_order_at` is when the last order was seen in MySQL."""
    ends = Counter(_end(outcome) for outcome in result.outcomes)
    answers = Counter(result.answers)
    definite = {*_COUNTED_ANSWERS, *(o.reason for o in result.outcomes if o.end is End.TURNED_AWAY)}
    return Report(
        item=item,
        units=books.allocated,
        buyers=len(plan.shoppers),
        accepted=ends["confirmed"],
        sold_out=ends["sold_out"],
        limit_reached=ends["limit_reached"],
        other_ends={end: buyers for end, buyers in ends.items() if end not in _COUNTED_ENDS},
        failed=ends["failed"],
        not_started=answers["not_started"],
        bad_request=answers["bad_request"],
        repeated={code: count for code, count in answers.items() if code not in definite},
        orders=len(books.owners),
        oversold=books.oversold,
        duplicate_orders=books.duplicate_orders,
        left_in_redis=books.left_in_redis,
        left_in_mysql=books.left_in_mysql,
        law_7=law_7_text(books) or books.law_7.explanation,
        drift=books.law_7.drift,
        purchase_p50_ms=percentile(result.latencies_ms, 0.50),
        purchase_p99_ms=percentile(result.latencies_ms, 0.99),
        purchases_per_second=_per_second(plan=plan, result=result),
        settle_seconds=_seconds_after(result.last_accepted_at, last_order_at),
        connections=min(plan.connections_max, len(plan.shoppers)),
        broken=broken,
    )


def write_report(report: Report, path: Path) -> None:
    """Write the report as JSON."""
    path.write_text(json.dumps(asdict(report), ensure_ascii=False, indent=2) + "\n")


def print_report(report: Report, console: Console) -> None:
    """Print the table and the verdict."""
    table = Table(show_header=False, box=None)
    table.add_column()
    table.add_column(justify="right")
    for title, rows in _sections(report):
        table.add_row(Text(f"\n{title}", style="bold"))
        for label, value in rows:
            table.add_row(Text(f"  {label}"), value)
    console.print(f"\n{report.item}: {report.buyers:,} buyers for {report.units:,} units", style="bold", markup=False)
    console.print(table)
    console.print(f"\n{report.law_7} (law 7, to the unit)", markup=False, soft_wrap=True)
    if not report.broken:
        console.print("Every law held: nothing oversold, nothing lost, nobody told a lie.", style="bold green")
    for sentence in report.broken:
        console.print(f"BROKEN  {sentence}", style="bold red", markup=False, soft_wrap=True)


def _sections(report: Report) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    yield (
        "What buyers were told",
        [
            ("accepted, and the order is there", f"{report.accepted:,}"),
            ("sold out", f"{report.sold_out:,}"),
            ("limit reached", f"{report.limit_reached:,}"),
            *((end.replace("_", " "), f"{buyers:,}") for end, buyers in report.other_ends.items()),
            ("nothing definite", f"{report.failed:,}"),
            ("on the way: too early, come back (answers)", f"{report.not_started:,}"),
            ("on the way: that is no quantity (answers)", f"{report.bad_request:,}"),
            *((f"on the way: {code.replace('_', ' ')} (repeated)", f"{n:,}") for code, n in report.repeated.items()),
        ],
    )
    yield (
        "What the books say",
        [
            ("orders in MySQL", f"{report.orders:,}"),
            ("units left in Redis", "?" if report.left_in_redis is None else f"{report.left_in_redis:,}"),
            ("units left in MySQL", f"{report.left_in_mysql:,}"),
            ("units oversold", f"{report.oversold:,}"),
            ("second orders of one buyer", f"{report.duplicate_orders:,}"),
        ],
    )
    yield (
        "How fast",
        [
            ("half of the purchase calls answered within", _unit(report.purchase_p50_ms, "ms")),
            ("99 of 100 answered within", _unit(report.purchase_p99_ms, "ms")),
            ("purchase calls a second", _unit(report.purchases_per_second, "")),
            ("from the last accepted purchase to the last order", _unit(report.settle_seconds, "s")),
        ],
    )


def _unit(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{value:,.{2 if unit == 's' else 0}f} {unit}".rstrip()


def _end(outcome: Outcome) -> str:
    if outcome.end is End.TURNED_AWAY:
        return outcome.reason
    return f"accepted, then refused: {outcome.reason}" if outcome.end is End.REFUSED else outcome.end.value


def percentile(ordered: Sequence[float], part: float) -> float | None:
    """Return the smallest value that so large a part of the values does not exceed."""
    return round(ordered[max(0, ceil(part * len(ordered)) - 1)], 1) if ordered else None


def _per_second(*, plan: Plan, result: Result) -> float | None:
    """Purchase answers from the opening to the last one, by that time."""
    if result.last_answer_at is None:
        return None
    return round(len(result.latencies_ms) / max(result.last_answer_at - plan.opens_at, 0.001), 1)


def _seconds_after(earlier: float | None, later: float) -> float | None:
    """The last order may be seen before the last buyer has read his answer: that is no time at all."""
    return None if earlier is None else round(max(0.0, later - earlier), 2)
