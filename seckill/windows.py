"""Another window for a sale that is preheated: by approval, numbered, into MySQL and then into every gate.

MySQL is the truth. It is written under the buckets' locks, so that a rebuild either reads the new window or
has swapped before the script runs; and the script does nothing while a rebuild is at it. A late call
of an earlier change loses by its number.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F

from inventory.changes import ChangeState, finish, locked
from inventory.errors import UnknownChange
from seckill.change_tables import WindowChange
from seckill.errors import GateUnavailable, NotPreheated
from seckill.gate import changing
from seckill.gate.keys import BucketRef
from seckill.gate.staging import milliseconds
from seckill.models import Bucket, FlashSale, SalePool
from seckill.states import SaleState


@dataclass(frozen=True, kw_only=True)
class _Told:
    """A window that stands in MySQL, and the gates that are to be told; none where the change has ended."""

    change: WindowChange
    buckets: tuple[BucketRef, ...] = ()


def apply_window_change(*, change_id: int, clock: Callable[[], datetime]) -> ChangeState:
    """Apply an approved change as far as that is possible now; return where it stands.

    Still approved: it stands in MySQL, and some gate could not be told yet; the follow-up comes back.
    Raises ``UnknownChange``.
    """
    told = _store(change_id=change_id, now=clock())
    change = told.change
    if change.state != ChangeState.APPROVED or change.window_no is None:
        return ChangeState(change.state)
    try:
        for bucket in told.buckets:
            changing.set_window(
                bucket=bucket,
                number=change.window_no,
                opens_ms=milliseconds(change.opens_at),
                closes_ms=milliseconds(change.closes_at),
            )
    except (GateUnavailable, NotPreheated):
        return ChangeState.APPROVED
    with transaction.atomic(durable=True):
        change = locked(table=WindowChange, change_id=change_id)
        if change.state == ChangeState.APPROVED:
            finish(change=change, state=ChangeState.APPLIED, outcome=f"number {change.window_no}", now=clock())
    return ChangeState(change.state)


def pending_window_changes() -> list[int]:
    """Approved changes that are not finished, in the order in which they were asked for."""
    rows = WindowChange.objects.filter(state=ChangeState.APPROVED).order_by("pk")
    return list(rows.values_list("pk", flat=True))


def _store(*, change_id: int, now: datetime) -> _Told:
    """Write an approved change into MySQL and give it its number, once. Locks sale, buckets, change."""
    sale_id = WindowChange.objects.values_list("sale_id", flat=True).filter(pk=change_id).first()
    if sale_id is None:
        raise UnknownChange
    with transaction.atomic(durable=True):
        sale = FlashSale.objects.select_for_update().get(pk=sale_id)
        pool_ids = list(SalePool.objects.filter(sale_id=sale_id).order_by("pk").values_list("pk", flat=True))
        rows = list(Bucket.objects.select_for_update().filter(pool_id__in=pool_ids).order_by("pool_id", "number"))
        change = locked(table=WindowChange, change_id=change_id)
        if change.state != ChangeState.APPROVED:
            return _Told(change=change)
        if sale.state != SaleState.PREHEATED:
            _end_off_sale(change=change, sale=sale, now=now)
        elif change.window_no is None and (words := _impossible(change=change, sale=sale, now=now)):
            finish(change=change, state=ChangeState.REFUSED, outcome=words, now=now)
        elif change.window_no is None:
            _write(change=change, sale=sale)
    return _Told(change=change, buckets=tuple(BucketRef(pool_id=row.pool_id, number=row.number) for row in rows))


def _impossible(*, change: WindowChange, sale: FlashSale, now: datetime) -> str:
    """Say why a window cannot become the sale's any more, or ""."""
    if change.closes_at <= now:
        return "it would be over already"
    if sale.opens_at <= now and change.opens_at != sale.opens_at:
        return "the sale has opened; only its end can be moved"
    return ""


def _write(*, change: WindowChange, sale: FlashSale) -> None:
    FlashSale.objects.filter(pk=sale.pk).update(
        opens_at=change.opens_at, closes_at=change.closes_at, window_no=F("window_no") + 1
    )
    fields = {
        "window_no": sale.window_no + 1,
        "opened_at_before": sale.opens_at,
        "closed_at_before": sale.closes_at,
    }
    for name, value in fields.items():
        setattr(change, name, value)
    WindowChange.objects.filter(pk=change.pk).update(**fields)


def _end_off_sale(*, change: WindowChange, sale: FlashSale, now: datetime) -> None:
    state = ChangeState.REFUSED if change.window_no is None else ChangeState.APPLIED
    finish(change=change, state=state, outcome=f"the sale is {sale.get_state_display()}", now=now)
