"""Rounds over a bucket's members: some at a time, so that a look costs the same at any size.

A round goes over all rows in MySQL, which finds what Redis lacks, and over the two hashes in Redis,
which finds what it has too much. Another epoch begins another round.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db.models import Q

from seckill.conf import LIMITS
from seckill.gate.keys import BucketRef
from seckill.gate.members import Part, scan
from seckill.member_tables import MemberRound
from seckill.members import Candidates
from seckill.models import Bucket
from seckill.outcomes import in_order

# More marks than these are too high by more than chance: they are found again by the next round.
SUSPECTS_MAX = 1_000


@dataclass(frozen=True, kw_only=True)
class Suspect:
    """A mark that was seen too high: as what, what it ought to be, and since when."""

    seen: str
    units_held: int
    since: datetime


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """How far a round has come: epoch and number of the last row, and where each scan goes on; None is the end."""

    row: tuple[int, int] | None = (0, 0)
    buyers: int | None = 0
    receipts: int | None = 0

    @property
    def is_at_the_end(self) -> bool:
        """Whether everything was looked at."""
        return self.row is None and self.buyers is None and self.receipts is None


@dataclass(frozen=True, kw_only=True)
class Round:
    """A round as it is stored, and the version it was read with."""

    epoch: int
    version: int
    began_at: datetime
    cursor: Cursor = Cursor()
    found: int = 0
    suspects: Mapping[str, Suspect] = field(default_factory=dict)
    clean_since: datetime | None = None

    def begun_again(self, *, now: datetime) -> "Round":
        """Return a round from the beginning, which remembers the suspects."""
        return replace(self, began_at=now, cursor=Cursor(), found=0)

    def finished(self) -> "Round":
        """Return what is known once everything was looked at; nothing differed since it began, or something did."""
        return replace(self, clean_since=None if self.found else self.began_at)


def current_round(*, bucket: BucketRef, now: datetime) -> Round:
    """Read the bucket's round, to be gone on with; a finished one, or one of another epoch, begins again."""
    row, _ = MemberRound.objects.get_or_create(pool_id=bucket.pool_id, bucket_no=bucket.number)
    epoch = Bucket.objects.values_list("epoch", flat=True).get(pool_id=bucket.pool_id, number=bucket.number)
    if row.epoch != epoch or row.began_at is None:
        return Round(epoch=epoch, version=row.version, began_at=now)
    cursor = _read_cursor(row.cursor)
    stored = Round(
        epoch=epoch,
        version=row.version,
        began_at=row.began_at,
        cursor=cursor,
        found=row.found,
        suspects={key: _read_suspect(text) for key, text in row.suspects.items()},
        clean_since=row.clean_since,
    )
    return stored.begun_again(now=now) if cursor.is_at_the_end else stored


def keep(*, bucket: BucketRef, state: Round) -> bool:
    """Store how far a round has come; False when another run stored its own meanwhile, and ours does not count."""
    mine = MemberRound.objects.filter(pool_id=bucket.pool_id, bucket_no=bucket.number, version=state.version)
    kept = mine.update(
        epoch=state.epoch,
        version=state.version + 1,
        began_at=state.began_at,
        cursor=vars(state.cursor),
        found=state.found,
        suspects={key: _write_suspect(suspect) for key, suspect in list(state.suspects.items())[:SUSPECTS_MAX]},
        clean_since=state.clean_since,
    )
    return kept == 1


def next_candidates(*, bucket: BucketRef, cursor: Cursor) -> tuple[Candidates, Cursor]:
    """Return the next members of a round, and where it goes on from there. Raises ``GateUnavailable``."""
    rows, row = _next_rows(bucket=bucket, after=cursor.row)
    buyers, buyers_cursor = _next_names(bucket=bucket, part=Part.BUYERS, cursor=cursor.buyers)
    receipts, receipts_cursor = _next_names(bucket=bucket, part=Part.RECEIPTS, cursor=cursor.receipts)
    candidates = Candidates(
        limit_keys=frozenset(buyers) | {limit_key for _, limit_key in rows},
        order_numbers=frozenset(receipts) | {order_no for order_no, _ in rows},
    )
    return candidates, Cursor(row=row, buyers=buyers_cursor, receipts=receipts_cursor)


def _next_rows(
    *, bucket: BucketRef, after: tuple[int, int] | None
) -> tuple[Sequence[tuple[str, str]], tuple[int, int] | None]:
    if after is None:
        return [], None
    epoch, seq = after
    rest = in_order(bucket).filter(Q(epoch=epoch, seq__gt=seq) | Q(epoch__gt=epoch))
    rows = list(rest.values_list("order_no", "limit_key", "epoch", "seq")[: LIMITS.members_per_look])
    is_more = len(rows) == LIMITS.members_per_look
    return [(order_no, limit_key) for order_no, limit_key, _, _ in rows], (rows[-1][2:] if is_more else None)


def _next_names(*, bucket: BucketRef, part: Part, cursor: int | None) -> tuple[list[str], int | None]:
    if cursor is None:
        return [], None
    next_cursor, names = scan(bucket=bucket, part=part, cursor=cursor, count=LIMITS.members_per_look)
    return names, next_cursor or None


def _read_cursor(stored: Mapping[str, object]) -> Cursor:
    row, buyers, receipts = (stored.get(name) for name in ("row", "buyers", "receipts"))
    return Cursor(
        row=(int(row[0]), int(row[1])) if isinstance(row, list) else None,
        buyers=buyers if isinstance(buyers, int) else None,
        receipts=receipts if isinstance(receipts, int) else None,
    )


def _read_suspect(stored: Sequence[object]) -> Suspect:
    seen, units_held, since = stored
    return Suspect(seen=str(seen), units_held=int(str(units_held)), since=datetime.fromisoformat(str(since)))


def _write_suspect(suspect: Suspect) -> list[object]:
    return [suspect.seen, suspect.units_held, suspect.since.isoformat()]
