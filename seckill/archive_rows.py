"""Reservations of a bucket chunk by chunk, in the order of their numbers, from a cursor on."""

from dataclasses import dataclass

from django.db.models import Q

from seckill.archive_run import Work
from seckill.outcomes import in_order

COLUMNS = ("order_no", "item_id", "buyer_id", "limit_key", "quantity", "epoch", "seq", "state", "reason")


@dataclass(frozen=True, slots=True)
class Row:
    """What an archive looks at of a reservation, in the order of ``COLUMNS``; a model costs twice as much."""

    order_no: str
    item_id: int
    buyer_id: int
    limit_key: str
    quantity: int
    epoch: int
    seq: int
    state: str
    reason: str


def rows_after(work: Work, *, count: int) -> list[Row]:
    """The next reservations of the bucket behind the run's cursor; the first where it has none."""
    rows = in_order(work.bucket)
    if work.run.cursor:
        epoch, _, seq = work.run.cursor.partition(":")
        rows = rows.filter(Q(epoch=epoch, seq__gt=seq) | Q(epoch__gt=epoch))
    return [Row(*columns) for columns in rows.values_list(*COLUMNS)[:count]]


def cursor_at(row: Row) -> str:
    """The cursor that goes on behind a reservation."""
    return f"{row.epoch}:{row.seq}"
