"""Members: what Redis says of each buyer and each order number, against the rows in MySQL.

A buyer's mark ought to be what he holds: his settled units, those of his entries in the queue, and
those that were refused or returned and that Redis was not told about yet. A receipt ought to say
what the order's row says. What waits as a dead letter for somebody's decision keeps its mark and its
receipt. The bucket's lock holds MySQL still and one script reads Redis, so what is
in flight never shows up as a difference.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Sum

from seckill.archive_tables import require_no_archive
from seckill.conf import LIMITS
from seckill.decisions import Fate
from seckill.errors import GateUnavailable
from seckill.gate import members as gate_members
from seckill.gate.entries import QueueEntry
from seckill.gate.keys import BucketRef
from seckill.gate.members import MembersSeen
from seckill.gate.receipts import Receipt, ReceiptState
from seckill.models import DeadLetter, Reservation, Ticket
from seckill.outcomes import known_fates, lock_bucket, require_all_commits
from seckill.states import ReservationState

RECEIPT_STATES = {
    ReservationState.SETTLED: ReceiptState.CONFIRMED,
    ReservationState.REFUSED: ReceiptState.REFUSED,
    ReservationState.RETURNED: ReceiptState.RETURNED,
}
# What a script takes for "not told yet", whatever follows.
UNTOLD = (b"queued|", b"confirmed|")
DIGITS_MAX = 14
# Of more dead letters than these, the oldest are taken for differences.
PARKED_MAX = 1_000


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """Limit keys and order numbers to look at."""

    limit_keys: frozenset[str] = frozenset()
    order_numbers: frozenset[str] = frozenset()

    def __or__(self, other: "Candidates") -> "Candidates":
        return Candidates(
            limit_keys=self.limit_keys | other.limit_keys, order_numbers=self.order_numbers | other.order_numbers
        )

    def __len__(self) -> int:
        return len(self.limit_keys) + len(self.order_numbers)


@dataclass(frozen=True, kw_only=True)
class MarkDifference:
    """A buyer's mark that is not what he holds; ``seen`` is None where there is none."""

    limit_key: str
    seen: bytes | None
    units_held: int

    @property
    def is_too_high(self) -> bool:
        """Whether the buyer is refused what he may have; anything that is no number bars him too, and the workers."""
        units = _units(self.seen)
        return units is not None and units > self.units_held


@dataclass(frozen=True, kw_only=True)
class ReceiptDifference:
    """A receipt that does not say what the row says; ``wanted`` is empty where MySQL has no row."""

    order_no: str
    seen: bytes | None
    wanted: str


@dataclass(frozen=True, kw_only=True)
class Look:
    """One look at some members; the epoch and the number of the last mend fence whatever is done about it."""

    epoch: int
    mend_no: str
    looked_at: int
    marks: tuple[MarkDifference, ...]
    receipts: tuple[ReceiptDifference, ...]


@dataclass(frozen=True, kw_only=True)
class _Books:
    """What MySQL has, read before the look: rows by number, settled units by limit key, returns owed to Redis.

    ``parked`` names the limit keys and order numbers of dead letters that nobody has decided on.
    """

    rows: Mapping[str, Reservation]
    settled: Mapping[str, int]
    debts: tuple[Reservation, ...]
    parked: Candidates


def receipt_of(row: Reservation) -> Receipt:
    """Return the receipt of an order whose fate Redis was told."""
    return Receipt(
        state=RECEIPT_STATES[ReservationState(row.state)],
        item_id=row.item_id,
        quantity=row.quantity,
        buyer_id=row.buyer_id,
        reason=row.reason,
    )


def look_at(*, bucket: BucketRef, candidates: Candidates) -> Look:
    """Compare some members.

    Raises ``GateUnavailable`` or ``NotPreheated`` when Redis cannot be asked or awaits a rebuild,
    ``CommitsLost`` when MySQL has forgotten what Redis was told.
    """
    limit_keys = sorted(candidates.limit_keys)
    with transaction.atomic(durable=True):
        row = lock_bucket(bucket)
        require_no_archive(bucket)
        books = _read_books(bucket=bucket, candidates=candidates)
        numbers = sorted(candidates.order_numbers | {debt.order_no for debt in books.debts})
        seen = gate_members.look(
            bucket=bucket, limit_keys=limit_keys, order_numbers=numbers, entries_max=LIMITS.batch_size
        )
        if seen.is_frozen or seen.epoch != row.epoch:
            raise GateUnavailable("the bucket awaits its rebuild")
        require_all_commits(bucket=bucket, settled_seq=seen.settled_seq)
        # Read after the look: a number that has a row by now, though the lock was held, was written by somebody
        # who had lost it, and a lock of ours that was lost shows here.
        queued = [entry for entry in seen.entries if isinstance(entry, QueueEntry)]
        fates = known_fates(order_numbers=[e.order_no for e in queued] + [n for n in numbers if n not in books.rows])
    return Look(
        epoch=seen.epoch,
        mend_no=seen.mend_no,
        looked_at=len(candidates),
        marks=tuple(_marks(limit_keys=limit_keys, books=books, seen=seen, queued=queued, fates=fates)),
        receipts=tuple(
            _receipts(order_numbers=candidates.order_numbers, books=books, seen=seen, queued=queued, fates=fates)
        ),
    )


def _read_books(*, bucket: BucketRef, candidates: Candidates) -> _Books:
    """Rows, units and debts; before the look, so that a debt that is paid meanwhile shows in its receipt."""
    rows = Reservation.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number)
    theirs = rows.filter(limit_key__in=candidates.limit_keys)
    settled = theirs.filter(state=ReservationState.SETTLED).values_list("limit_key").annotate(units=Sum("quantity"))
    return _Books(
        rows={row.order_no: row for row in rows.filter(order_no__in=candidates.order_numbers)},
        settled=dict(settled.order_by()),
        debts=tuple(theirs.filter(state=ReservationState.RETURNED, owed_at__isnull=False)),
        parked=_parked(bucket),
    )


def _parked(bucket: BucketRef) -> Candidates:
    """Whom undecided dead letters are about; a letter whose limit key cannot be read has a ticket that names it."""
    letters = DeadLetter.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number, concluded_at=None)
    fields = list(letters.order_by("-pk").values_list("fields", flat=True)[:PARKED_MAX])
    numbers = {str(letter.get("order", "")) for letter in fields}
    tickets = Ticket.objects.filter(order_no__in=numbers).values_list("limit_key", flat=True)
    return Candidates(
        limit_keys=frozenset(str(letter.get("key", "")) for letter in fields) | frozenset(tickets),
        order_numbers=frozenset(numbers),
    )


def _marks(
    *,
    limit_keys: Iterable[str],
    books: _Books,
    seen: MembersSeen,
    queued: Iterable[QueueEntry],
    fates: Mapping[str, Fate],
) -> Iterable[MarkDifference]:
    """Marks that are too low, or, where all of the queue is known, too high."""
    held, perhaps = Counter(books.settled), Counter[str]()
    for debt in books.debts:
        if seen.receipts.get(debt.order_no, b"").startswith(UNTOLD):
            held[debt.limit_key] += debt.quantity
    for entry in queued:
        fate = fates.get(entry.order_no)
        if fate is None:
            held[entry.limit_key] += entry.quantity
        elif fate.state is ReservationState.REFUSED:
            perhaps[entry.limit_key] += entry.quantity  # until its release, unless its receipt was lost
    for limit_key in limit_keys:
        raw = seen.marks.get(limit_key)
        units = _units(raw)
        most = held[limit_key] + perhaps[limit_key]
        may_be_too_high = seen.is_queue_known and limit_key not in books.parked.limit_keys
        if units is None or units < held[limit_key] or (units > most and may_be_too_high):
            yield MarkDifference(limit_key=limit_key, seen=raw, units_held=held[limit_key])


def _receipts(
    *,
    order_numbers: frozenset[str],
    books: _Books,
    seen: MembersSeen,
    queued: Iterable[QueueEntry],
    fates: Mapping[str, Fate],
) -> Iterable[ReceiptDifference]:
    """Receipts that say something else than the row; nothing is said of those whose entry is in the queue or owed."""
    waiting = {entry.order_no for entry in queued} | books.parked.order_numbers
    for order_no in sorted(order_numbers - waiting):
        raw, row = seen.receipts.get(order_no), books.rows.get(order_no)
        if raw is not None and raw.startswith(b"queued|") and not seen.is_queue_known:
            continue
        if row is None:
            if raw is not None and order_no not in fates:
                yield ReceiptDifference(order_no=order_no, seen=raw, wanted="")
        elif row.owed_at is None and raw != (wanted := str(receipt_of(row))).encode():
            yield ReceiptDifference(order_no=order_no, seen=raw, wanted=wanted)


def _units(raw: bytes | None) -> int | None:
    """A mark's units as the scripts read them; None for what is no plain number."""
    if raw is None:
        return 0
    is_plain = raw == b"0" or (raw.isdigit() and not raw.startswith(b"0"))
    return int(raw) if is_plain and len(raw) <= DIGITS_MAX else None
