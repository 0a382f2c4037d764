"""The ledger as people read it: filtered, page by page, and as a file of any length."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from inventory.models import StockMovement

CHUNK = 2_000


@dataclass(frozen=True, kw_only=True)
class LedgerFilter:
    """Which rows of the ledger; what is None or empty narrows nothing down. ``until`` is exclusive."""

    accounts: Sequence[str] = ()
    sku_id: int | None = None
    kind: str = ""
    reference: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class LedgerPage:
    """Some rows, the newest first; ``before`` is where the older ones go on, None at the end."""

    rows: list[StockMovement]
    before: int | None


def ledger_page(*, which: LedgerFilter, size: int, before: int | None = None) -> LedgerPage:
    """Read a page; the next one is found by the key of the last row, so that none costs more than the first."""
    rows = _rows(which).prefetch_related("sku", "actor").order_by("-pk")
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows[: size + 1])
    return LedgerPage(rows=found[:size], before=found[size - 1].pk if len(found) > size else None)


def ledger_lines(*, which: LedgerFilter) -> Iterator[tuple[object, ...]]:
    """All rows as lines of a file, the oldest first, a few thousand at a time however many there are.

    What a row refers to is looked up per chunk: joined, MySQL would sort the whole ledger for each of them.
    """
    last = 0
    while chunk := list(_rows(which).filter(pk__gt=last).prefetch_related("sku", "actor").order_by("pk")[:CHUNK]):
        yield from map(_line, chunk)
        last = chunk[-1].pk


def _line(row: StockMovement) -> tuple[object, ...]:
    by = None if row.actor is None else row.actor.get_username()
    return row.pk, row.created_at, row.sku.code, row.account, row.kind, row.units, row.reference, row.reason, by


LEDGER_COLUMNS = ("id", "at", "sku", "account", "kind", "units", "reference", "reason", "by")


def _rows(which: LedgerFilter) -> QuerySet[StockMovement]:
    rows = StockMovement.objects.all()
    if which.accounts:
        rows = rows.filter(account__in=which.accounts)
    if which.sku_id is not None:
        rows = rows.filter(sku_id=which.sku_id)
    if which.kind:
        rows = rows.filter(kind=which.kind)
    if which.reference:
        rows = rows.filter(reference__startswith=which.reference)
    if which.since is not None:
        rows = rows.filter(created_at__gte=which.since)
    if which.until is not None:
        rows = rows.filter(created_at__lt=which.until)
    return rows
