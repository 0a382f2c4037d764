"""Rebuilds in turn: several buckets whose claims were taken together, as at a preheat, opened one after another.

A claim runs out after half a minute, and the last of many buckets may wait for longer: those that wait are renewed.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta

from seckill.conf import LIMITS
from seckill.errors import GateUnavailable, RebuildRefused
from seckill.gate.keys import BucketRef
from seckill.models import Bucket
from seckill.rebuild import rebuild_claimed


def rebuild_in_turn(*, claims: Mapping[BucketRef, str], clock: Callable[[], datetime]) -> None:
    """Rebuild buckets by the claims that were taken on them, each whether or not the one before could be.

    Raises the last error of ``rebuild_claimed`` when one was missed: it may lie on another node. The sweep opens it.
    """
    waiting = dict(claims)
    missed: Exception | None = None
    for bucket, token in claims.items():
        _renew(tokens=waiting.values(), now=clock())
        del waiting[bucket]
        try:
            rebuild_claimed(bucket=bucket, token=token, clock=clock)
        except (GateUnavailable, RebuildRefused) as error:
            missed = error
    if missed is not None:
        raise missed


def _renew(*, tokens: Collection[str], now: datetime) -> None:
    """Let claims that have not run out run on; one that has is lost, and its rebuild will say so."""
    alive = Bucket.objects.filter(claim__in=tokens, claim_until__gt=now)
    alive.update(claim_until=now + timedelta(seconds=LIMITS.claim_seconds))
