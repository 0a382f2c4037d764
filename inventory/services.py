"""Writes of the inventory: every change of a number goes with its ledger row, in the caller's transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import F

from inventory.errors import NoStockRow, NotEnoughOnHand
from inventory.models import Stock, StockMovement

WAREHOUSE = "warehouse"

Kind = StockMovement.Kind


@dataclass(frozen=True, kw_only=True)
class Movement:
    """One ledger row to be: ``units`` are added to ``account`` (negative: taken)."""

    sku_id: int
    account: str
    kind: StockMovement.Kind
    units: int
    reference: str
    reason: str = ""
    actor_id: int | None = None


def record(*, movements: Sequence[Movement], now: datetime) -> None:
    """Append to the ledger; must run in the transaction that changes the numbers.

    Raises ``IntegrityError`` (1062) when a reference is already there.
    """
    _require_transaction()
    StockMovement.objects.bulk_create(
        StockMovement(
            sku_id=m.sku_id,
            account=m.account,
            kind=m.kind,
            units=m.units,
            reference=m.reference,
            reason=m.reason,
            actor_id=m.actor_id,
            created_at=now,
        )
        for m in movements
    )


def receive(*, sku_id: int, units: int, reference: str, now: datetime, actor_id: int | None = None) -> None:
    """Put goods into the warehouse, once per reference.

    Raises ``ValueError`` for fewer than one unit, ``IntegrityError`` for a known reference.
    """
    _require_units(units)
    # Before the transaction: many who insert the same row and then update it would deadlock.
    Stock.objects.get_or_create(sku_id=sku_id)
    with transaction.atomic():
        record(
            movements=[
                Movement(
                    sku_id=sku_id,
                    account=WAREHOUSE,
                    kind=Kind.RECEIPT,
                    units=units,
                    reference=reference,
                    actor_id=actor_id,
                )
            ],
            now=now,
        )
        _add(sku_id=sku_id, units=units)


def allocate(*, sku_id: int, units: int, account: str, reference: str, now: datetime) -> None:
    """Move units from the warehouse to a sale's account, once per reference.

    Raises ``NotEnoughOnHand`` and changes nothing when the warehouse has fewer, ``ValueError`` for
    fewer than one unit.
    """
    _require_transaction()
    _require_units(units)
    taken = Stock.objects.filter(sku_id=sku_id, on_hand__gte=units).update(
        on_hand=F("on_hand") - units, version=F("version") + 1
    )
    if taken != 1:
        on_hand = Stock.objects.filter(sku_id=sku_id).values_list("on_hand", flat=True).first() or 0
        raise NotEnoughOnHand(sku_id=sku_id, asked=units, on_hand=on_hand)
    record(
        movements=[
            Movement(
                sku_id=sku_id, account=WAREHOUSE, kind=Kind.ALLOCATION, units=-units, reference=f"{reference}:out"
            ),
            Movement(sku_id=sku_id, account=account, kind=Kind.ALLOCATION, units=units, reference=f"{reference}:in"),
        ],
        now=now,
    )


def put_into_warehouse(
    *, sku_id: int, units: int, account: str, is_written_off: bool, reference: str, now: datetime
) -> None:
    """Take units out of a sale's account, into the warehouse or, written off, out of the books.

    Raises ``ValueError`` for fewer than one unit, ``NoStockRow`` when the warehouse has no row for the SKU.
    """
    _require_transaction()
    _require_units(units)
    kind = Kind.WRITE_OFF if is_written_off else Kind.LEFTOVER
    movements = [Movement(sku_id=sku_id, account=account, kind=kind, units=-units, reference=f"{reference}:out")]
    if not is_written_off:
        movements.append(
            Movement(sku_id=sku_id, account=WAREHOUSE, kind=kind, units=units, reference=f"{reference}:in")
        )
        _add(sku_id=sku_id, units=units)
    record(movements=movements, now=now)


def _add(*, sku_id: int, units: int) -> None:
    """Raise the number; an update that meets no row would leave the ledger alone with its sum."""
    added = Stock.objects.filter(sku_id=sku_id).update(on_hand=F("on_hand") + units, version=F("version") + 1)
    if added != 1:
        raise NoStockRow(sku_id=sku_id)


def _require_transaction() -> None:
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError("the ledger is written only inside a transaction")


def _require_units(units: int) -> None:
    if units < 1:
        raise ValueError(f"{units} units cannot be moved")
