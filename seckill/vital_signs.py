"""Vital signs of the sales: the few numbers of MySQL and Redis by which one sees from afar that something is wrong.

Read for ``/metrics``, from indexes and few keys. Nothing is locked and nothing decided by it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from seckill.alert_tables import AlertDelivery
from seckill.gate.keys import BucketRef
from seckill.gate.pulse import Pulse, pulses
from seckill.latest_runs import latest_runs
from seckill.models import DeadLetter, Incident
from seckill.selectors import buckets_on_sale


@dataclass(frozen=True, kw_only=True)
class LastCheck:
    """The last reconciliation of a bucket: what it found, and how many seconds ago."""

    verdict: str
    age_seconds: float


@dataclass(frozen=True, kw_only=True)
class BookSigns:
    """What MySQL says. ``incidents`` counts the open ones by kind and severity."""

    buckets: Sequence[BucketRef] = ()
    checks: Mapping[BucketRef, LastCheck] = field(default_factory=dict)
    incidents: Mapping[tuple[str, str], int] = field(default_factory=dict)
    dead_letters: int = 0
    alerts_given_up: int = 0


def book_signs(*, now: datetime) -> BookSigns:
    """Read MySQL's signs, by five short statements."""
    buckets = buckets_on_sale()
    runs = latest_runs(pool_ids=sorted({bucket.pool_id for bucket in buckets}))
    incidents = Incident.objects.filter(open_key__isnull=False).values_list("kind", "severity")
    return BookSigns(
        buckets=buckets,
        checks={
            bucket: LastCheck(verdict=run.verdict, age_seconds=max(0.0, (now - run.created_at).total_seconds()))
            for bucket, run in runs.items()
            if bucket in set(buckets)
        },
        incidents=Counter(incidents),
        dead_letters=DeadLetter.objects.filter(concluded_at__isnull=True).count(),
        alerts_given_up=AlertDelivery.objects.filter(state=AlertDelivery.State.GIVEN_UP).count(),
    )


def gate_signs(*, buckets: Sequence[BucketRef]) -> Mapping[BucketRef, Pulse | None]:
    """Read Redis's signs, in one round trip; None for a bucket that cannot be shown. Raises ``GateUnavailable``."""
    felt = pulses(buckets=buckets)
    return {bucket: felt.get(bucket) for bucket in buckets}


def critical_incidents() -> list[str]:
    """Kinds of critical incidents that are open."""
    rows = Incident.objects.filter(open_key__isnull=False, severity=Incident.Severity.CRITICAL)
    return sorted(set(rows.values_list("kind", flat=True)))
