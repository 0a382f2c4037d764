"""The numbers of orders and their money, each with its unit and its reason, in one checked object."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, kw_only=True)
class PaymentLimits:
    """Bounds of payments; a limit on everything."""

    # How long after its time an order waits for a provider that does not say whether it was paid.
    grace: timedelta = timedelta(minutes=2)
    # First question about a begun payment that was not heard of; then twice as long each time.
    ask_after: timedelta = timedelta(seconds=15)
    # While the order waits, no longer than this between two questions.
    ask_interval_max: timedelta = timedelta(seconds=60)
    # Between questions when the time to pay is over: units wait for the answer.
    ask_when_due: timedelta = timedelta(seconds=5)
    # Between questions when no unit waits for the answer any more.
    ask_when_closed_max: timedelta = timedelta(hours=1)
    # A payment nobody told anything about for so long after it was begun is given up.
    ask_for: timedelta = timedelta(days=3)
    # A refund is told and asked about again after this, then twice as long each time, up to the maximum.
    refund_interval: timedelta = timedelta(seconds=5)
    refund_interval_max: timedelta = timedelta(hours=1)
    # Begun payments, refunds or honours that one run of a periodic task takes up.
    batch_size: int = 500
    # Orders on one page of a buyer's list.
    page_size: int = 20

    def __post_init__(self) -> None:
        """Refuse values that cannot work."""
        for name, value in vars(self).items():
            if value <= (timedelta(0) if isinstance(value, timedelta) else 0):
                raise ValueError(f"{name} must be positive, not {value}")


LIMITS = PaymentLimits()


def backed_off(*, tries: int, first: timedelta, longest: timedelta) -> timedelta:
    """Return the wait after so many tries: the first, then twice as long each time, up to the longest."""
    factor: int = 2 ** min(tries, 20)
    return min(first * factor, longest)
