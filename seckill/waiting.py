"""What waits for somebody at the desk, as numbers for its side bar: counted by indexes, remembered for some seconds."""

from dataclasses import dataclass

from orders.selectors import refunds_due_count
from rest.memory import Memory
from seckill.models import DeadLetter, Incident

COUNTED_MAX = 100
REMEMBERED_SECONDS = 5.0
_numbers: "Memory[Waiting]" = Memory(seconds=REMEMBERED_SECONDS, entries_max=1)


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Numbers up to ``COUNTED_MAX``: whoever has more does not want to know how many."""

    incidents: int
    is_critical: bool
    letters: int
    refunds_due: int


def what_waits() -> Waiting:
    """Return what waits, at most some seconds old."""
    return _numbers.get((), _count)


def _count() -> Waiting:
    severities = Incident.objects.filter(open_key__isnull=False).values_list("severity", flat=True)[:COUNTED_MAX]
    letters = DeadLetter.objects.filter(concluded_at=None, decision="")[:COUNTED_MAX]
    return Waiting(
        incidents=len(severities),
        is_critical=Incident.Severity.CRITICAL in set(severities),
        letters=letters.count(),
        refunds_due=refunds_due_count(count_max=COUNTED_MAX),
    )
