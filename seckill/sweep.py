"""The sweep: every second, what no message may be trusted with.

A queue that nobody was woken for gets its worker; a bucket that is missing, damaged, frozen by
nobody alive, of another epoch or of another run of the server gets its rebuild.
"""

from dataclasses import dataclass
from datetime import datetime

from seckill.errors import GateUnavailable, NotPreheated
from seckill.gate import gate
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_incident
from seckill.selectors import bucket_epoch, buckets_on_sale, is_being_rebuilt

LOST = "redis_lost"


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Buckets that want a settle worker, and buckets that want a rebuild."""

    to_settle: list[BucketRef]
    to_rebuild: list[BucketRef]


def look_over(*, now: datetime) -> Findings:
    """Look at every bucket on sale, one script call each; open an incident for what is damaged.

    A Redis that cannot be reached at all raises ``GateUnavailable``: there is nothing to do yet.
    """
    to_settle, to_rebuild = [], []
    for bucket in buckets_on_sale():
        damage, is_waiting = examine(bucket=bucket)
        if damage and not is_being_rebuilt(bucket=bucket, now=now):
            open_incident(kind=LOST, severity=Severity.CRITICAL, bucket=bucket, detail=damage, now=now)
            to_rebuild.append(bucket)
        elif is_waiting and not damage:
            to_settle.append(bucket)
    return Findings(to_settle=to_settle, to_rebuild=to_rebuild)


def examine(*, bucket: BucketRef) -> tuple[str, bool]:
    """Return what is wrong with the bucket, or "", and whether entries wait.

    Raises ``GateUnavailable`` when Redis does not answer.
    """
    try:
        snapshot = gate.snapshot(bucket=bucket, entries_max=0)
    except NotPreheated:
        return "the bucket is not in Redis", False
    except GateUnavailable as error:
        gate.ping()
        return str(error), False
    if snapshot.is_frozen:
        return "the gate is frozen and no rebuild is at it", False
    if snapshot.epoch != bucket_epoch(bucket=bucket):
        return f"the gate is of epoch {snapshot.epoch}, MySQL is not", False
    return "", snapshot.queue_length > 0
