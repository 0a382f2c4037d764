"""The one rule that decides what MySQL says to a queue entry; pure, used by settlement and rebuild.

Entries are taken in stream order. A known order number keeps its fate. A new one is refused when
its limit key would hold too much (Redis had the unit: it is owed), or when no unit is left (it
never existed: nothing is owed); else it is settled.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from seckill.gate.entries import QueueEntry
from seckill.states import RefusalReason, ReservationState


@dataclass(frozen=True, kw_only=True, slots=True)
class Fate:
    """What MySQL already says about an order number."""

    item_id: int
    buyer_id: int
    quantity: int
    state: ReservationState
    reason: str
    units_owed: int
    seq: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What becomes of one entry. ``is_new`` ones are to be written.

    ``seq`` is the number of the order's row in MySQL. A second entry of an order whose receipt was
    lost has a number of its own, which MySQL will never have and Redis must not be told it has.
    """

    entry: QueueEntry
    state: ReservationState
    reason: str
    units_owed: int
    is_new: bool
    seq: int
    contradicts_row: bool = False


def decide(
    *,
    entries: Iterable[QueueEntry],
    known: Mapping[str, Fate],
    limit: int,
    held: Mapping[str, int],
    room: Mapping[int, int],
) -> list[Decision]:
    """Decide entries in order. ``held`` is units per limit key, ``room`` unsold units per item."""
    held_now, room_now = dict(held), dict(room)
    decisions: list[Decision] = []
    seen: dict[str, Fate] = dict(known)
    for entry in entries:
        fate = seen.get(entry.order_no)
        if fate is None:
            decision = _decide_new(entry=entry, limit=limit, held=held_now, room=room_now)
            seen[entry.order_no] = _fate_of(decision)
        else:
            decision = _repeat(entry=entry, fate=fate)
        decisions.append(decision)
    return decisions


def _decide_new(*, entry: QueueEntry, limit: int, held: dict[str, int], room: dict[int, int]) -> Decision:
    units_held = held.get(entry.limit_key, 0)
    if units_held + entry.quantity > limit:
        return _refused(entry=entry, reason=RefusalReason.LIMIT_REACHED, units_owed=entry.quantity)
    if room.get(entry.item_id, 0) < entry.quantity:
        return _refused(entry=entry, reason=RefusalReason.PHANTOM, units_owed=0)
    held[entry.limit_key] = units_held + entry.quantity
    room[entry.item_id] -= entry.quantity
    return Decision(entry=entry, state=ReservationState.SETTLED, reason="", units_owed=0, is_new=True, seq=entry.seq)


def _refused(*, entry: QueueEntry, reason: RefusalReason, units_owed: int) -> Decision:
    return Decision(
        entry=entry,
        state=ReservationState.REFUSED,
        reason=reason.value,
        units_owed=units_owed,
        is_new=True,
        seq=entry.seq,
    )


def _repeat(*, entry: QueueEntry, fate: Fate) -> Decision:
    same = (entry.item_id, entry.buyer_id, entry.quantity) == (fate.item_id, fate.buyer_id, fate.quantity)
    return Decision(
        entry=entry,
        state=fate.state,
        reason=fate.reason,
        units_owed=fate.units_owed,
        is_new=False,
        seq=fate.seq,
        contradicts_row=not same,
    )


def _fate_of(decision: Decision) -> Fate:
    entry = decision.entry
    return Fate(
        item_id=entry.item_id,
        buyer_id=entry.buyer_id,
        quantity=entry.quantity,
        state=decision.state,
        reason=decision.reason,
        units_owed=decision.units_owed,
        seq=decision.seq,
    )
