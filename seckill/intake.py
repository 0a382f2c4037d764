"""Intake: entries of the queue become fates in MySQL; the one way in, for settlement and for a rebuild.

Everything happens in the caller's transaction, under the bucket's lock. A batch with a row that
cannot be written is halved, each half behind a savepoint, until the row stands alone; then its
tombstone is written, and if not even that can be, the entry is parked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db import DatabaseError, transaction

from seckill.dead_letters import as_bad, park, split_readable
from seckill.decisions import Decision
from seckill.errors import QueueForked
from seckill.gate.entries import BadEntry, QueueEntry
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_incident
from seckill.models import Bucket
from seckill.outcomes import PoolFacts, decide_entries, known_fates, write_decisions, write_reservations
from seckill.states import RefusalReason, ReservationState
from seckill.transient import DUPLICATE_KEY, error_code, is_about_a_row

SEQUENCE_KEY = "reservation_one_per_sequence_number"

Debt = Callable[[Decision], int]


@dataclass(frozen=True, kw_only=True)
class Intake:
    """What became of entries: decided ones, and the stream ids of those parked as dead letters."""

    decisions: list[Decision] = field(default_factory=list)
    parked: list[str] = field(default_factory=list)

    def __add__(self, other: "Intake") -> "Intake":
        return Intake(decisions=self.decisions + other.decisions, parked=self.parked + other.parked)

    @property
    def phantoms(self) -> list[Decision]:
        """New refusals of units that never existed."""
        return [d for d in self.decisions if d.is_new and d.reason == RefusalReason.PHANTOM]


@dataclass(frozen=True, kw_only=True)
class IntakeContext:
    """The locked bucket, its pool's facts, the instant, and what a new refusal owes to Redis.

    ``queue_epoch`` is the epoch of the queue the entries were read from; a rebuild has given them a new one since.
    """

    row: Bucket
    queue_epoch: int
    bucket: BucketRef
    facts: PoolFacts
    now: datetime
    debt: Debt


def owes_its_units(decision: Decision) -> int:
    """In settlement a refused entry is owed what was taken from the stock; a phantom was never there."""
    return decision.units_owed


def owes_nothing(_decision: Decision) -> int:
    """In a rebuild stock is counted anew from MySQL, so nothing is owed."""
    return 0


def take_in(*, entries: Sequence[QueueEntry | BadEntry], context: IntakeContext) -> Intake:
    """Bring entries into MySQL, in order, with an incident for whatever should not have happened.

    Raises ``QueueForked``, ``SettlementError`` and whatever the database says that is not about
    one row; then the transaction must fail.
    """
    readable, bad = split_readable(entries=entries, facts=context.facts)
    intake = _park(bad=bad, context=context) + _write(entries=readable, context=context)
    _report(intake=intake, context=context)
    return intake


def park_unknown(*, entries: Sequence[QueueEntry | BadEntry], context: IntakeContext, error: str) -> Intake:
    """Park entries undecided, but for those whose orders MySQL knows: those have their fate."""
    readable, bad = split_readable(entries=entries, facts=context.facts)
    known = known_fates(order_numbers=[entry.order_no for entry in readable])
    unknown = [as_bad(entry=entry, error=error) for entry in readable if entry.order_no not in known]
    return _park(bad=[*bad, *unknown], context=context)


def park_killer(*, entries: Sequence[QueueEntry | BadEntry], context: IntakeContext, deaths: int) -> Intake:
    """Park an entry that has killed its workers; one whose order MySQL knows only has to be confirmed."""
    parked = park_unknown(entries=entries, context=context, error=f"it killed its worker {deaths} times")
    rest = [entry for entry in entries if entry.stream_id not in parked.parked]
    return parked + take_in(entries=rest, context=context)


def _write(*, entries: Sequence[QueueEntry], context: IntakeContext) -> Intake:
    if not entries:
        return Intake()
    try:
        with transaction.atomic():
            return Intake(decisions=_decide_and_write(entries=entries, context=context))
    except DatabaseError as error:
        if error_code(error) == DUPLICATE_KEY and SEQUENCE_KEY in str(error):
            raise QueueForked(str(error)) from error
        if not is_about_a_row(error):
            raise
        if len(entries) == 1:
            return _refuse(entry=entries[0], error=error, context=context)
    middle = len(entries) // 2
    return _write(entries=entries[:middle], context=context) + _write(entries=entries[middle:], context=context)


def _decide_and_write(*, entries: Sequence[QueueEntry], context: IntakeContext) -> list[Decision]:
    decided = decide_entries(row=context.row, bucket=context.bucket, entries=entries, facts=context.facts)
    decisions = [replace(d, units_owed=context.debt(d)) if d.is_new else d for d in decided]
    write_decisions(row=context.row, bucket=context.bucket, decisions=decisions, facts=context.facts, now=context.now)
    return decisions


def _refuse(*, entry: QueueEntry, error: DatabaseError, context: IntakeContext) -> Intake:
    """Write the tombstone of an entry that cannot become an order; park it if even that fails."""
    (decided,) = decide_entries(row=context.row, bucket=context.bucket, entries=[entry], facts=context.facts)
    refused = _as_refused(decided)
    refused = replace(refused, units_owed=context.debt(refused))
    try:
        with transaction.atomic():
            write_reservations(bucket=context.bucket, decisions=[refused], now=context.now)
    except DatabaseError as second:
        if not is_about_a_row(second):
            raise
        return _park(bad=[as_bad(entry=entry, error=str(second))], context=context)
    detail = f"order {entry.order_no} could not be written: {error}"
    _open("row_refused", Severity.WARNING, detail, context)
    return Intake(decisions=[refused])


def _as_refused(decision: Decision) -> Decision:
    """What would have been settled was a real unit, so it is owed."""
    if decision.state is ReservationState.REFUSED:
        return decision
    return replace(
        decision,
        state=ReservationState.REFUSED,
        reason=RefusalReason.INVALID.value,
        units_owed=decision.entry.quantity,
    )


def _park(*, bad: Sequence[BadEntry], context: IntakeContext) -> Intake:
    parked = park(bucket=context.bucket, epoch=context.queue_epoch, entries=bad, now=context.now)
    return Intake(parked=parked)


def _report(*, intake: Intake, context: IntakeContext) -> None:
    """Raise the alarm where Redis sold what MySQL does not have, or tells another story of an order."""
    if phantoms := intake.phantoms:
        units = sum(d.entry.quantity for d in phantoms)
        detail = f"Redis sold {units} units that MySQL does not have, first to order {phantoms[0].entry.order_no}"
        _open("phantom", Severity.CRITICAL, detail, context, units=units)
    for decision in intake.decisions:
        if decision.contradicts_row:
            detail = f"Redis and MySQL differ about order {decision.entry.order_no}"
            _open("order_differs", Severity.CRITICAL, detail, context)


def _open(kind: str, severity: Severity, detail: str, context: IntakeContext, *, units: int = 0) -> None:
    open_incident(kind=kind, severity=severity, bucket=context.bucket, detail=detail, now=context.now, units=units)
