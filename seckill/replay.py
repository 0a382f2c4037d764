"""Deciding dead letters: an operator has a parked reservation replayed, or refused. Each once, by whom, and why.

Replayed, it goes back into the queue with a unit from the stock, and settlement decides about it
as about any other: limit, units, its one fate. Refused, its tombstone is written first. Either way
the decision is committed before Redis is told and marked concluded after; what dies in between is
taken up by the sweep. An order number that has a fate is never replayed.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import DatabaseError, connection, transaction
from django.db.models import Max
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from seckill.dead_letters import DEAD_LETTER
from seckill.errors import DecisionRefused, GateUnavailable, NotPreheated
from seckill.gate import parked
from seckill.gate.entries import QueueEntry, parse_entry
from seckill.gate.keys import BucketRef
from seckill.gate.parked import RequeueCode
from seckill.incidents import resolve_incident
from seckill.models import DeadLetter, FlashSale, Reservation, SaleItem, Ticket
from seckill.outcomes import lock_bucket
from seckill.states import RefusalReason, ReservationState, SaleState

logger = logging.getLogger(__name__)

Decision = DeadLetter.Decision

# The epoch of tombstones that no queue entry stands for: real ones begin at 1, so no number of theirs is taken.
NO_EPOCH = 0
TAKE_UP_SECONDS = 5
ORDER_NO_CHARS_MAX = 40
LIMIT_KEY_CHARS_MAX = 64
ARCHIVED = gettext_lazy("its sale is not in Redis any more: refuse it")

WHY_NOT = {
    RequeueCode.CLOSED: ARCHIVED,
    RequeueCode.TOO_FEW_LEFT: gettext_lazy(
        "there is no unit left for it; a reconciliation may bring its own back, else refuse it"
    ),
    RequeueCode.LIMIT_REACHED: gettext_lazy("the buyer has as many as one may have by now; refuse it"),
    RequeueCode.USED_AGAIN: gettext_lazy("the buyer has used this order number again since; refuse it"),
}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """An operator's decision about a letter; ``actor_id`` is None for one made at the command line."""

    letter_id: int
    decision: DeadLetter.Decision
    actor_id: int | None
    reason: str


def decide_letter(*, verdict: Verdict, clock: Callable[[], datetime]) -> None:
    """Replay or refuse a parked reservation, and mark the letter with who, when, what and why.

    Raises ``DecisionRefused`` with an explanation and changes nothing then. Raises
    ``GateUnavailable`` when Redis was not told: the decision stands, and the sweep carries it out.
    """
    letter = _decide(verdict=verdict, now=clock())
    _carry_out(letter=letter, clock=clock)


def replay_obstacle(*, letter: DeadLetter) -> str:
    """Say why a letter cannot be replayed as things stand; "" where it may be tried. Changes nothing."""
    try:
        _require_replayable(letter)
    except DecisionRefused as refusal:
        return str(refusal)
    return ""


def take_up_decisions(*, clock: Callable[[], datetime]) -> int:
    """Carry out decisions whose maker died or could not reach Redis; return how many are concluded now.

    One that cannot be carried out now holds up no other.
    """
    waiting = DeadLetter.objects.exclude(decision="").filter(
        concluded_at=None, decided_at__lte=clock() - timedelta(seconds=TAKE_UP_SECONDS)
    )
    concluded = 0
    for letter in waiting.order_by("pk"):
        try:
            _carry_out(letter=letter, clock=clock)
            concluded += 1
        except (GateUnavailable, DecisionRefused, DatabaseError) as error:
            connection.close_if_unusable_or_obsolete()
            logger.warning("the decision about dead letter %s is not carried out yet: %s", letter.pk, error)
    return concluded


def _decide(*, verdict: Verdict, now: datetime) -> DeadLetter:
    with transaction.atomic(durable=True):
        letter = _lock_letter(verdict.letter_id)
        if letter.decision:
            raise DecisionRefused(
                _("it was decided already: {decision}").format(decision=letter.get_decision_display())
            )
        if not verdict.reason.strip():
            raise DecisionRefused(_("a decision wants a reason"))
        if verdict.decision is Decision.REPLAY:
            _require_replayable(letter)
        else:
            _write_tombstone(letter=letter, now=now)
        DeadLetter.objects.filter(pk=letter.pk).update(
            decision=verdict.decision,
            decided_by_id=verdict.actor_id,
            decided_at=now,
            decision_reason=verdict.reason.strip()[:200],
        )
        letter.decision = verdict.decision
    return letter


def _lock_letter(letter_id: int) -> DeadLetter:
    """Lock the letter's bucket and read the letter. See Note [Lock order]."""
    letter = DeadLetter.objects.filter(pk=letter_id).first()
    if letter is None:
        raise DecisionRefused(_("there is no dead letter {letter_id}").format(letter_id=letter_id))
    lock_bucket(_bucket_of(letter))
    return DeadLetter.objects.get(pk=letter_id)


def _require_replayable(letter: DeadLetter) -> None:
    entry = _entry_of(letter)
    if entry is None or not SaleItem.objects.filter(pk=entry.item_id, pool_id=letter.pool_id).exists():
        raise DecisionRefused(_("it cannot be read, or names no item of its pool: refuse it"))
    if fate := Reservation.objects.filter(order_no=entry.order_no).first():
        raise DecisionRefused(
            _("order {order_no} has its fate already: {state}").format(
                order_no=entry.order_no, state=fate.get_state_display()
            )
        )
    if not FlashSale.objects.filter(pools=letter.pool_id, state=SaleState.PREHEATED).exists():
        raise DecisionRefused(str(ARCHIVED))


def _write_tombstone(*, letter: DeadLetter, now: datetime) -> None:
    """Close the order number for good, where the letter has one and MySQL does not know it yet.

    It owes nothing: the parked unit shows as a leak, which reconciliation gives back or has given back.
    """
    entry = _entry_of(letter) or _entry_by_ticket(letter)
    if entry is None or Reservation.objects.filter(order_no=entry.order_no).exists():
        return
    of_no_epoch = Reservation.objects.filter(pool_id=letter.pool_id, bucket_no=letter.bucket_no, epoch=NO_EPOCH)
    Reservation.objects.create(
        order_no=entry.order_no,
        pool_id=letter.pool_id,
        bucket_no=letter.bucket_no,
        item_id=entry.item_id,
        buyer_id=entry.buyer_id,
        limit_key=entry.limit_key,
        quantity=entry.quantity,
        unit_price=entry.price,
        epoch=NO_EPOCH,
        seq=(of_no_epoch.aggregate(last=Max("seq"))["last"] or 0) + 1,
        state=ReservationState.REFUSED,
        reason=RefusalReason.INVALID,
        created_at=now,
    )


def _carry_out(*, letter: DeadLetter, clock: Callable[[], datetime]) -> None:
    if letter.decision == Decision.REPLAY:
        _requeue(letter)
    else:
        _conclude_receipt(letter)
    _mark_concluded(letter=letter, now=clock())


def _requeue(letter: DeadLetter) -> None:
    """Put it back into the queue; where the gate says no, or is gone for good, the letter is undecided again."""
    entry = _entry_of(letter)
    if entry is None or Reservation.objects.filter(order_no=entry.order_no).exists():
        return
    if FlashSale.objects.filter(pools=letter.pool_id, state=SaleState.ARCHIVED).exists():
        raise _undecided(letter=letter, why=str(ARCHIVED))
    code = _put_back(letter=letter, entry=entry)
    # A bucket is closed when its queue is empty: what an earlier try has put there has its fate by then.
    if code is RequeueCode.CLOSED and Reservation.objects.filter(order_no=entry.order_no).exists():
        return
    if code in WHY_NOT:
        raise _undecided(letter=letter, why=str(WHY_NOT[code]))


def _put_back(*, letter: DeadLetter, entry: QueueEntry) -> RequeueCode:
    """Ask the gate; a bucket that is gone comes back by a rebuild while its sale is on, and never after."""
    try:
        return parked.requeue(bucket=_bucket_of(letter), letter_id=letter.pk, parked_epoch=letter.epoch, entry=entry)
    except NotPreheated as error:
        if FlashSale.objects.filter(pools=letter.pool_id, state=SaleState.PREHEATED).exists():
            raise GateUnavailable("Redis has lost the bucket; the replay follows its rebuild") from error
        return RequeueCode.CLOSED


def _undecided(*, letter: DeadLetter, why: str) -> DecisionRefused:
    """Take the decision back, for it cannot be carried out; return what to raise."""
    DeadLetter.objects.filter(pk=letter.pk, concluded_at=None).update(
        decision="", decided_by=None, decided_at=None, decision_reason=""
    )
    return DecisionRefused(why)


def _conclude_receipt(letter: DeadLetter) -> None:
    """Have the poll say "refused", but only where MySQL does."""
    order_no = str(letter.fields.get("order", ""))
    row = Reservation.objects.filter(order_no=order_no, state=ReservationState.REFUSED).first()
    if row is None:
        return
    try:
        parked.conclude(
            bucket=_bucket_of(letter),
            parked_epoch=letter.epoch,
            order_no=order_no,
            limit_key=row.limit_key,
            reason=row.reason,
            stream_id=letter.stream_id,
        )
    except NotPreheated:
        logger.info("bucket %s is not in Redis; MySQL alone answers for order %s", _bucket_of(letter), order_no)


def _mark_concluded(*, letter: DeadLetter, now: datetime) -> None:
    """Close the incident with the last letter; under the lock, because whoever parks one opens it there."""
    bucket = _bucket_of(letter)
    with transaction.atomic(durable=True):
        lock_bucket(bucket)
        mine = DeadLetter.objects.filter(pk=letter.pk, decision=letter.decision, concluded_at=None)
        mine.update(concluded_at=now)
        of_bucket = DeadLetter.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number)
        if not of_bucket.filter(concluded_at=None).exists():
            resolve_incident(kind=DEAD_LETTER, bucket=bucket, now=now)


def _bucket_of(letter: DeadLetter) -> BucketRef:
    return BucketRef(pool_id=letter.pool_id, number=letter.bucket_no)


def _entry_of(letter: DeadLetter) -> QueueEntry | None:
    """The reservation as it stood in the queue, or None where it cannot be read or kept."""
    flat = [part for pair in letter.fields.items() for part in pair]
    entry = parse_entry((letter.stream_id, flat))
    if not isinstance(entry, QueueEntry):
        return None
    fits = len(entry.order_no) <= ORDER_NO_CHARS_MAX and len(entry.limit_key) <= LIMIT_KEY_CHARS_MAX
    return entry if fits else None


def _entry_by_ticket(letter: DeadLetter) -> QueueEntry | None:
    """What the ticket says of an entry that cannot be read, so that its buyer hears of the refusal."""
    ticket = (
        Ticket.objects.filter(order_no=str(letter.fields.get("order", "")), pool_id=letter.pool_id)
        .select_related("item")
        .first()
    )
    if ticket is None:
        return None
    return QueueEntry(
        stream_id=letter.stream_id,
        order_no=ticket.order_no,
        item_id=ticket.item_id,
        buyer_id=ticket.buyer_id,
        limit_key=ticket.limit_key,
        quantity=1,
        price=Decimal(ticket.item.price),
        epoch=letter.epoch,
        seq=1,
    )
