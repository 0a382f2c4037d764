"""Applies approved adjustments of the warehouse: number, ledger and outcome in one transaction."""

from datetime import datetime

from django.db import transaction
from django.db.models import F

from inventory.changes import ChangeState, finish, locked
from inventory.models import UNITS_MAX, Stock, StockAdjustment
from inventory.selectors import balance
from inventory.services import WAREHOUSE, Kind, Movement, record


def apply_stock_adjustment(*, adjustment_id: int, now: datetime) -> ChangeState:
    """Apply an approved adjustment, once; return where it stands.

    An adjustment that the warehouse has too few units for ends as refused, with the number that would
    have been possible. Raises ``UnknownChange``.
    """
    sku_id = StockAdjustment.objects.values_list("sku_id", flat=True).filter(pk=adjustment_id).first()
    if sku_id is not None:
        Stock.objects.get_or_create(sku_id=sku_id)  # before the transaction, as in ``receive``
    with transaction.atomic():
        change = locked(table=StockAdjustment, change_id=adjustment_id)
        if change.state != ChangeState.APPROVED:
            return ChangeState(change.state)
        if move_on_hand(sku_id=change.sku_id, delta=change.delta):
            _write(change=change, now=now)
        else:
            _refuse(change=change, now=now)
    return ChangeState(change.state)


def pending_stock_adjustments() -> list[int]:
    """Approved adjustments that were not applied yet, because somebody died in between."""
    rows = StockAdjustment.objects.filter(state=ChangeState.APPROVED).order_by("pk")
    return list(rows.values_list("pk", flat=True))


def move_on_hand(*, sku_id: int, delta: int) -> bool:
    """Change the warehouse's number by a delta; False, and nothing is changed, where it would leave its bounds."""
    rows = Stock.objects.filter(sku_id=sku_id, on_hand__gte=max(0, -delta), on_hand__lte=UNITS_MAX - max(0, delta))
    return rows.update(on_hand=F("on_hand") + delta, version=F("version") + 1) == 1


def _write(*, change: StockAdjustment, now: datetime) -> None:
    record(
        movements=[
            Movement(
                sku_id=change.sku_id,
                account=WAREHOUSE,
                kind=Kind.ADJUSTMENT,
                units=change.delta,
                reference=f"stock-adjustment:{change.pk}",
                reason=change.ledger_reason,
                actor_id=change.requested_by_id,
            )
        ],
        now=now,
    )
    on_hand = Stock.objects.values_list("on_hand", flat=True).get(sku_id=change.sku_id)
    ledger = balance(account=WAREHOUSE, sku_id=change.sku_id)
    finish(
        change=change,
        state=ChangeState.APPLIED,
        outcome=f"on hand {on_hand}, ledger {ledger}",
        now=now,
        on_hand_after=on_hand,
        ledger_after=ledger,
    )


def _refuse(*, change: StockAdjustment, now: datetime) -> None:
    on_hand = Stock.objects.values_list("on_hand", flat=True).get(sku_id=change.sku_id)
    possible = -on_hand if change.delta < 0 else UNITS_MAX - on_hand
    finish(change=change, state=ChangeState.REFUSED, outcome=f"possible now: {possible:+d}", now=now)
