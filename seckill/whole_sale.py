"""Pause, resume and end a whole sale: what an operator does when something goes wrong, and nobody else is needed.

A sale is ended by a change of its window, numbered as any other (``seckill.windows``), which the operator decides on
alone: it can only take away. So a lost call, a rebuild and a crash in between are what they are for every change.
"""

from collections.abc import Callable
from datetime import datetime

from django.db import DatabaseError, transaction
from django.db.models import F
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inventory.changes import REASON_LENGTH_MAX, ChangeState
from seckill.change_tables import WindowChange
from seckill.errors import GateUnavailable, SaleNotReady
from seckill.gate import gate
from seckill.gate.keys import BucketRef
from seckill.models import Bucket, FlashSale, SaleItem
from seckill.states import SalePhase, SaleState, sale_phase
from seckill.transient import is_transient
from seckill.windows import apply_window_change

BUSY = gettext_lazy("the sale is busy; nothing was changed, please try again")


def pause_sale(*, sale_id: int) -> int:
    """Refuse new reservations of every item of a sale; return how many. What is reserved stays reserved.

    Raises ``SaleNotReady``, and nothing is changed then; ``GateUnavailable`` when some bucket was not told: the wish
    is kept, the other buckets are paused, and the sweep carries it over.
    """
    return _set_paused(sale_id=sale_id, is_paused=True)


def resume_sale(*, sale_id: int) -> int:
    """Take the pauses of all items of a sale back; return how many items. Raises as ``pause_sale``."""
    return _set_paused(sale_id=sale_id, is_paused=False)


def end_sale(*, sale_id: int, actor_id: int, reason: str, clock: Callable[[], datetime]) -> ChangeState:
    """Close a live sale now. Its orders are paid, and its leftovers archived, as after any end.

    Returns ``APPROVED`` where some gate could not be told yet: the follow-up tells it. Raises ``SaleNotReady``.
    """
    if not reason.strip():
        raise SaleNotReady(_("say why the sale is ended"))
    try:
        change_id = _close(sale_id=sale_id, actor_id=actor_id, reason=reason.strip(), now=clock())
        return apply_window_change(change_id=change_id, clock=clock)
    except DatabaseError as error:
        if not is_transient(error):
            raise
        raise SaleNotReady(str(BUSY)) from error


def _set_paused(*, sale_id: int, is_paused: bool) -> int:
    try:
        items = _store(sale_id=sale_id, is_paused=is_paused)
    except DatabaseError as error:
        if not is_transient(error):
            raise
        raise SaleNotReady(str(BUSY)) from error
    tell = gate.pause if is_paused else gate.resume
    missed: GateUnavailable | None = None
    for bucket, item_id in items:
        try:
            tell(bucket=bucket, item_id=item_id)
        except GateUnavailable as error:
            missed = error
    if missed is not None:
        raise missed
    return len({item_id for _, item_id in items})


def _store(*, sale_id: int, is_paused: bool) -> list[tuple[BucketRef, int]]:
    """Store the wish under the buckets' locks, as for one item (``seckill.pausing``); return whom to tell."""
    with transaction.atomic(durable=True):
        sale = _locked_sale(sale_id)
        rows = _locked_buckets(sale_id)
        if sale.state != SaleState.PREHEATED:
            raise SaleNotReady(_("the sale is {state}, not preheated").format(state=sale.get_state_display()))
        items = SaleItem.objects.filter(pool__sale_id=sale_id).order_by("pk").values_list("pool_id", "pk")
        item_ids = [item_id for _, item_id in items]
        SaleItem.objects.filter(pk__in=item_ids).update(is_paused=is_paused, stopped_at=None)
    return [
        (BucketRef(pool_id=row.pool_id, number=row.number), item_id)
        for row in rows
        for pool_id, item_id in items
        if pool_id == row.pool_id
    ]


def _close(*, sale_id: int, actor_id: int, reason: str, now: datetime) -> int:
    """Write the end into MySQL, with a change that says who and why; return it."""
    with transaction.atomic(durable=True):
        sale = _locked_sale(sale_id)
        _locked_buckets(sale_id)
        phase = sale_phase(state=SaleState(sale.state), opens_at=sale.opens_at, closes_at=sale.closes_at, now=now)
        if phase is not SalePhase.LIVE or now <= sale.opens_at:
            raise SaleNotReady(_("the sale is {phase}; only one that is live can be ended").format(phase=phase.label))
        FlashSale.objects.filter(pk=sale_id).update(closes_at=now, window_no=F("window_no") + 1)
        change = WindowChange.objects.create(
            sale=sale,
            opens_at=sale.opens_at,
            closes_at=now,
            opened_at_before=sale.opens_at,
            closed_at_before=sale.closes_at,
            window_no=sale.window_no + 1,
            reason=reason[:REASON_LENGTH_MAX],
            requested_by_id=actor_id,
            requested_at=now,
            state=ChangeState.APPROVED,
            decided_by_id=actor_id,
            decided_at=now,
            decision_reason="ended at once",
            is_by_one_person=True,
        )
    return change.pk


def _locked_sale(sale_id: int) -> FlashSale:
    sale = FlashSale.objects.select_for_update().filter(pk=sale_id).first()
    if sale is None:
        raise SaleNotReady(_("there is no sale {sale_id}").format(sale_id=sale_id))
    return sale


def _locked_buckets(sale_id: int) -> list[Bucket]:
    return list(Bucket.objects.select_for_update().filter(pool__sale_id=sale_id).order_by("pool_id", "number"))
