"""Recovery: who may have a bucket rebuilt, and how often, and which incidents that ends.

By itself a pool is rebuilt at most three times in ten minutes, counted in MySQL and whether or not
they went well; then it stays shut and an operator is called. An operator may always.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from seckill.errors import CommitsLost, GateUnavailable, NotPreheated
from seckill.gate import gate, staging
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_buckets, open_incident, resolve_incident
from seckill.models import Bucket
from seckill.outcomes import highest_seq
from seckill.rebuild import Orders, Rebuilt, rebuild_bucket
from seckill.rebuild_runs import count_automatic_runs
from seckill.settlement import COMMITS_LOST, FORKED, STOPPED

# A pool that needs more rebuilds than this for each of its buckets by itself needs a person.
REBUILDS_MAX = 3
REBUILDS_SECONDS = 600
KEEPS_BREAKING = "keeps_breaking"
LOST = "redis_lost"
# What is over when a bucket is open again; whether settlement works is another question.
ENDED_BY_AN_OPEN_GATE = (LOST, FORKED, COMMITS_LOST, KEEPS_BREAKING)
# A rebuild has brought the queue into MySQL besides, so settlement is not stopped any more either.
ENDED_BY_A_REBUILD = (*ENDED_BY_AN_OPEN_GATE, STOPPED)


def rebuild_automatically(*, bucket: BucketRef, clock: Callable[[], datetime]) -> None:
    """Rebuild for the sweep, within the limit. A pool that keeps breaking is frozen and has an incident.

    A bucket whose commits MySQL has forgotten is left as it is while that is so. Raises as ``rebuild_bucket``.
    """
    now = clock()
    if bucket in open_buckets(kind=COMMITS_LOST) and _are_commits_lost(bucket):
        return
    begun = count_automatic_runs(bucket=bucket, since=now - timedelta(seconds=REBUILDS_SECONDS))
    if begun >= REBUILDS_MAX * Bucket.objects.filter(pool_id=bucket.pool_id).count():
        _give_up(bucket=bucket, begun=begun, now=now)
        return
    try:
        rebuild_bucket(bucket=bucket, clock=clock, orders=Orders(is_automatic=True))
    except CommitsLost as error:
        open_incident(kind=COMMITS_LOST, severity=Severity.CRITICAL, bucket=bucket, detail=str(error), now=now)
        return
    end_incidents(bucket=bucket, now=clock())


def rebuild_by_hand(*, bucket: BucketRef, clock: Callable[[], datetime], orders: Orders) -> Rebuilt:
    """Rebuild for an operator, without the limit, and close what incidents it ends. Raises as ``rebuild_bucket``."""
    rebuilt = rebuild_bucket(bucket=bucket, clock=clock, orders=orders)
    end_incidents(bucket=bucket, now=clock())
    return rebuilt


def end_incidents(*, bucket: BucketRef, now: datetime) -> None:
    """Close what a rebuild has ended."""
    for kind in ENDED_BY_A_REBUILD:
        resolve_incident(kind=kind, bucket=bucket, now=now)


def _are_commits_lost(bucket: BucketRef) -> bool:
    """Look again, without a rebuild: a replica may have caught up, a backup may have been completed."""
    try:
        snapshot = gate.snapshot(bucket=bucket, entries_max=0)
    except (GateUnavailable, NotPreheated):
        return False
    return highest_seq(bucket) < snapshot.settled_seq


def _give_up(*, bucket: BucketRef, begun: int, now: datetime) -> None:
    """Shut the gate, whatever was broken of it, and call somebody; a rebuild by hand that is at it is left alone."""
    minutes = REBUILDS_SECONDS // 60
    detail = f"{begun} rebuilds began by themselves within {minutes} minutes; it stays shut until manage.py rebuild"
    row = Bucket.objects.get(pool_id=bucket.pool_id, number=bucket.number)
    if row.claim_until is None or row.claim_until <= now:
        staging.freeze(bucket=bucket, token=KEEPS_BREAKING)
    open_incident(kind=KEEPS_BREAKING, severity=Severity.CRITICAL, bucket=bucket, detail=detail, now=now)
