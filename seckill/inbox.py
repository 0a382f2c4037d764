"""The inbox of changes by hand: what waits for somebody's decision, what he asked for, and what was found after it.

All tables of such changes in one list. Nothing is decided here: that is ``inventory.changes``.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery

from inventory.changes import ChangeState, ManualChange, Person, may, may_decide, waiting_for
from inventory.models import StockAdjustment
from rest.memory import Memory
from seckill.change_tables import ItemAdjustment, WindowChange
from seckill.models import ReconciliationRun

TABLES: tuple[type[ManualChange], ...] = (ItemAdjustment, WindowChange, StockAdjustment)
SHOWN_MAX = 50
COUNTED_MAX = 100
REMEMBERED_SECONDS = 5.0
# The comparison after a change is asked for at once; one that came so much later was not made because of it.
COMPARED_WITHIN = timedelta(minutes=10)
# What a row of the list shows of each table.
SHOWN = {
    ItemAdjustment: ["item__sku", "item__pool__sale", "requested_by", "decided_by", "reconciliation"],
    WindowChange: ["sale", "requested_by", "decided_by"],
    StockAdjustment: ["sku", "requested_by", "decided_by"],
}
_counts: Memory[int] = Memory(seconds=REMEMBERED_SECONDS, entries_max=200)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found after a change: whether all was right, and the run that says so, if one does."""

    is_right: bool
    run: ReconciliationRun | None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One request: whether whoever looks may decide on it, and what was found after it was applied."""

    change: ManualChange
    may_decide: bool
    finding: Finding | None


def may_look(*, by: Person) -> bool:
    """Tell whether somebody has anything to do with such changes."""
    return any(may(table=table, action=action, by=by) for table in TABLES for action in ("view", "add", "approve"))


def waiting_requests(*, by: Person) -> list[Entry]:
    """What somebody may decide on now, the oldest first."""
    return _entries(lambda table: waiting_for(table=table, by=by).order_by("pk"), by=by, newest_first=False)


def own_requests(*, by: Person) -> list[Entry]:
    """What somebody has asked for, the newest first."""
    return _entries(lambda table: table.objects.filter(requested_by_id=by.pk).order_by("-pk"), by=by)


def all_requests(*, by: Person) -> list[Entry]:
    """The newest requests of the tables that somebody may see."""

    def rows(table: type[ManualChange]) -> QuerySet[Any]:
        is_seen = any(may(table=table, action=action, by=by) for action in ("view", "approve"))
        return table.objects.order_by("-pk") if is_seen else table.objects.none()

    return _entries(rows, by=by)


def waiting_count(*, by: Person) -> int:
    """How many requests somebody may decide on, up to ``COUNTED_MAX`` of each table, at most some seconds old."""
    rows = [waiting_for(table=table, by=by)[:COUNTED_MAX] for table in TABLES]
    return _counts.get(by.pk, lambda: sum(of_table.count() for of_table in rows))


def _entries(
    rows: Callable[[type[ManualChange]], QuerySet[Any]], *, by: Person, newest_first: bool = True
) -> list[Entry]:
    changes: list[Any] = []
    for table in TABLES:
        changes += rows(table).select_related(*SHOWN[table])[:SHOWN_MAX]
    changes.sort(key=lambda change: change.requested_at, reverse=newest_first)
    shown = changes[:SHOWN_MAX]
    runs = _runs_after_windows(change.pk for change in shown if isinstance(change, WindowChange))
    return [
        Entry(change=change, may_decide=may_decide(change=change, by=by), finding=_finding(change, runs))
        for change in shown
    ]


def _runs_after_windows(keys: Iterable[int]) -> dict[int, ReconciliationRun]:
    """The first comparison after each change of a window, in two statements."""
    after = ReconciliationRun.objects.filter(
        pool__sale_id=OuterRef("sale_id"),
        created_at__gte=OuterRef("finished_at"),
        created_at__lt=OuterRef("finished_at") + COMPARED_WITHIN,
    )
    applied = WindowChange.objects.filter(pk__in=list(keys), state=ChangeState.APPLIED)
    first = applied.annotate(run=Subquery(after.order_by("created_at").values("pk")[:1])).exclude(run=None)
    run_of = dict(first.values_list("pk", F("run")))
    runs = ReconciliationRun.objects.in_bulk(set(run_of.values()))
    return {pk: runs[run] for pk, run in run_of.items()}


def _finding(change: ManualChange, runs: dict[int, ReconciliationRun]) -> Finding | None:
    if isinstance(change, StockAdjustment):
        is_known = change.on_hand_after is not None
        return Finding(is_right=change.on_hand_after == change.ledger_after, run=None) if is_known else None
    run = change.reconciliation if isinstance(change, ItemAdjustment) else runs.get(change.pk)
    if run is None:
        return None
    return Finding(is_right=run.verdict == ReconciliationRun.Verdict.BALANCED, run=run)


def kinds(*, by: Person, action: str) -> Sequence[type[ManualChange]]:
    """The tables in which somebody may do something."""
    return [table for table in TABLES if may(table=table, action=action, by=by)]
