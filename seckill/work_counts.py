"""What workers did, counted in their process: batches settled, units returned."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from metrics.definitions import RETURN_SECONDS, SETTLE_ENTRIES, SETTLE_LAG, SETTLE_SECONDS, SETTLED
from seckill.intake import Intake

PARKED = "parked"


def count_batch(*, intake: Intake, seconds: float, now: datetime) -> None:
    """Count a batch that MySQL has now; one without a new entry did nothing that counts."""
    new = [decision for decision in intake.decisions if decision.is_new]
    fates = Counter(decision.state.lower() for decision in new) + Counter({PARKED: len(intake.parked)})
    for fate, entries in fates.items():
        SETTLED.labels(fate).inc(entries)
    if not new:
        return
    SETTLE_ENTRIES.observe(len(new))
    SETTLE_SECONDS.observe(seconds)
    oldest_ms = min(int(decision.entry.stream_id.partition("-")[0]) for decision in new)
    SETTLE_LAG.observe(max(0.0, now.timestamp() - oldest_ms / 1000))


def count_returns(*, closed_at: Iterable[datetime], now: datetime) -> None:
    """Count orders whose units can be bought again now."""
    for at in closed_at:
        RETURN_SECONDS.observe(max(0.0, (now - at).total_seconds()))
