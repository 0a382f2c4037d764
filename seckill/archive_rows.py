"""Reservations of a bucket chunk by chunk, in the order of their numbers, from a cursor on."""

from django.db.models import Q, QuerySet

from seckill.archive_run import Work
from seckill.models import Reservation
from seckill.outcomes import in_order


def rows_after(work: Work) -> QuerySet[Reservation]:
    """The bucket's reservations behind the run's cursor; all of them where it has none."""
    rows = in_order(work.bucket)
    if not work.run.cursor:
        return rows
    epoch, _, seq = work.run.cursor.partition(":")
    return rows.filter(Q(epoch=epoch, seq__gt=seq) | Q(epoch__gt=epoch))


def cursor_at(row: Reservation) -> str:
    """The cursor that goes on behind a reservation."""
    return f"{row.epoch}:{row.seq}"
