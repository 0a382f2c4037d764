"""The last hour of items on sale, drawn from the samples: rates and levels, slot by slot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection

from seckill.sampling import QUIET_SECONDS

# A line of an hour has 720 points. What tells more of the last minutes has finer ones; below two seconds the beats of
# the sampler and of the tallies would show as waves.
SLOT_SECONDS = 5
FINE_SLOT_SECONDS = 2
FINE_UP_TO = timedelta(minutes=5)
HOUR = timedelta(hours=1)
# Without a sample for so long, nobody looked: the line has a gap there.
GAP_SECONDS = 2 * QUIET_SECONDS
TOTALS = ("accepted", "sold_out", "refused", "settled", "waited_ms")
# Of these the speed is drawn, of the others how much was added.
RATES = frozenset({"accepted", "sold_out", "refused"})
SECONDS_BETWEEN_MIN = 0.5

SLOTS = """
    SELECT item_id, TIMESTAMPDIFF(SECOND, %s, at) DIV %s AS slot, MAX(TIMESTAMPDIFF(MICROSECOND, %s, at)),
        MIN(`left`), MAX(queued), MAX(oldest_ms),
        MAX(accepted), MAX(sold_out), MAX(refused), MAX(settled), MAX(waited_ms)
    FROM seckill_itemsample
    WHERE item_id IN %s AND at >= %s AND at < %s
    GROUP BY item_id, slot ORDER BY item_id, slot
"""


@dataclass(frozen=True, kw_only=True)
class Series:
    """Lines of equal length; None is a gap.

    Rates are per second between two looks, ``left`` and ``queued`` units, the rest milliseconds. ``settle_ms`` is how
    long what was settled in a slot had waited on average, ``oldest_ms`` the longest wait seen.
    """

    begins_at: datetime
    slot_seconds: int
    accepted: list[float | None] = field(default_factory=list)
    sold_out: list[float | None] = field(default_factory=list)
    refused: list[float | None] = field(default_factory=list)
    left: list[float | None] = field(default_factory=list)
    queued: list[float | None] = field(default_factory=list)
    oldest_ms: list[float | None] = field(default_factory=list)
    settle_ms: list[float | None] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Slot:
    """What the samples of one item say of one slot: fewest left, most queued, totals and time of the last."""

    seconds: float
    left: int | None
    queued: int | None
    oldest_ms: int | None
    totals: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Grid:
    """When the first slot begins, how many there are, and how many seconds each lasts."""

    begins_at: datetime
    slots: int
    seconds: int


def history(*, item_ids: Sequence[int], until: datetime, lasts: timedelta = HOUR) -> Series:
    """Return the lines of some items together, over so long until now; slots begin at whole multiples."""
    seconds = FINE_SLOT_SECONDS if lasts <= FINE_UP_TO else SLOT_SECONDS
    end = int(until.timestamp()) // seconds * seconds + seconds
    # Some slots before the first, so that the first has what to be compared with.
    before, shown = GAP_SECONDS // seconds, int(lasts.total_seconds()) // seconds
    begins_at = datetime.fromtimestamp(end - shown * seconds, tz=until.tzinfo)
    grid = Grid(begins_at=begins_at - timedelta(seconds=before * seconds), slots=before + shown, seconds=seconds)
    lines = [_lines(of_slot=of_slot, grid=grid) for of_slot in _read(item_ids=item_ids, grid=grid).values()]
    names = ("accepted", "sold_out", "refused", "left", "queued", "oldest_ms", "settle_ms")
    together = {name: _together(name=name, lines=lines, grid=grid)[before:] for name in names}
    return Series(begins_at=begins_at, slot_seconds=seconds, **together)


def _read(*, item_ids: Sequence[int], grid: Grid) -> dict[int, dict[int, Slot]]:
    if not item_ids:
        return {}
    begin = grid.begins_at.replace(tzinfo=None)  # stored in UTC
    end = begin + timedelta(seconds=grid.slots * grid.seconds)
    found: dict[int, dict[int, Slot]] = {}
    with connection.cursor() as cursor:
        cursor.execute(SLOTS, [begin, grid.seconds, begin, tuple(item_ids), begin, end])
        for item_id, slot, microseconds, left, queued, oldest_ms, *totals in cursor.fetchall():
            found.setdefault(item_id, {})[int(slot)] = Slot(
                seconds=int(microseconds) / 1_000_000,
                left=left,
                queued=queued,
                oldest_ms=oldest_ms,
                totals=dict(zip(TOTALS, map(int, totals), strict=True)),
            )
    return found


def _lines(*, of_slot: Mapping[int, Slot], grid: Grid) -> dict[str, list[float | None]]:
    """The lines of one item: levels stay until they change, totals become rates, and a long silence is a gap."""
    lines: dict[str, list[float | None]] = {
        name: [] for name in ("accepted", "sold_out", "refused", "left", "queued", "oldest_ms", "settled", "waited_ms")
    }
    last: Slot | None = None
    seen_slot = 0
    for number in range(grid.slots):
        slot = of_slot.get(number)
        is_silent = last is None or (number - seen_slot) * grid.seconds > GAP_SECONDS
        shown = (None if is_silent else last) if slot is None else slot
        if shown is None:
            last = None
            for line in lines.values():
                line.append(None)
            continue
        for name in ("left", "queued", "oldest_ms"):
            lines[name].append(getattr(shown, name))
        for name in TOTALS:
            grown = 0 if last is None else _grown(shown.totals[name], last.totals[name])
            lines[name].append(grown / _between(shown, last) if name in RATES else grown)
        if slot is not None:
            last, seen_slot = slot, number
    return lines


def _between(slot: Slot, last: Slot | None) -> float:
    """Seconds from one slot's last sample to another's: samples do not come at the same instant of each slot."""
    return max(slot.seconds - last.seconds, SECONDS_BETWEEN_MIN) if last is not None else 1.0


def _grown(total: int, before: int) -> int:
    """How much was added; a total that has shrunk began again."""
    return total - before if total >= before else total


def _together(*, name: str, lines: Sequence[Mapping[str, list[float | None]]], grid: Grid) -> list[float | None]:
    if name == "settle_ms":
        waited = _together(name="waited_ms", lines=lines, grid=grid)
        settled = _together(name="settled", lines=lines, grid=grid)
        return [round(w / s, 1) if w is not None and s else None for w, s in zip(waited, settled, strict=True)]
    line: list[float | None] = []
    for number in range(grid.slots):
        known = [value for of_item in lines if (value := of_item[name][number]) is not None]
        if not known:
            line.append(None)
        elif name == "oldest_ms":
            line.append(max(known))
        else:
            line.append(round(sum(known), 2) if name in RATES else sum(known))
    return line
