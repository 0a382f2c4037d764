"""The sweep: every second, what no message may be trusted with.

A queue that nobody was woken for gets its worker; a bucket that is missing, damaged, frozen by
nobody alive, of another epoch or of another run of the server gets its rebuild; a pause that did
not arrive is carried over; a dead rebuild's keys are removed.
"""

from dataclasses import dataclass, field
from datetime import datetime

from inventory.changes import ChangeState
from seckill.change_tables import WindowChange
from seckill.errors import BucketUnsound, GateUnavailable, NotPreheated
from seckill.gate import changing, gate, staging
from seckill.gate.gate import Snapshot
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_buckets, open_incident, resolve_incident
from seckill.models import Bucket, ItemBucket, SalePool
from seckill.outcomes import ticket_prices
from seckill.pausing import carry_over, paused_items
from seckill.rebuild import bury
from seckill.recovery import ENDED_BY_AN_OPEN_GATE, LOST
from seckill.selectors import buckets_on_sale
from seckill.stopping import adopt


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Buckets that want a settle worker, those that want a rebuild, and those Redis did not answer for."""

    to_settle: list[BucketRef] = field(default_factory=list)
    to_rebuild: list[BucketRef] = field(default_factory=list)
    unreachable: list[BucketRef] = field(default_factory=list)


def look_over(*, now: datetime) -> Findings:
    """Look at every bucket on sale, by two cheap script calls; open an incident for what is damaged."""
    findings = Findings()
    shut_before = {kind: open_buckets(kind=kind) for kind in ENDED_BY_AN_OPEN_GATE}
    for bucket in buckets_on_sale():
        try:
            damage = _damage_now(bucket=bucket, now=now)
            if damage is None:
                continue
            if damage:
                open_incident(kind=LOST, severity=Severity.CRITICAL, bucket=bucket, detail=damage, now=now)
                findings.to_rebuild.append(bucket)
                continue
            _tend(bucket=bucket, findings=findings, now=now)
        except GateUnavailable:
            findings.unreachable.append(bucket)
            continue
        # Whoever opened it may have died before he could say so.
        for kind in (kind for kind, buckets in shut_before.items() if bucket in buckets):
            resolve_incident(kind=kind, bucket=bucket, now=now)
    return findings


def _damage_now(*, bucket: BucketRef, now: datetime) -> str | None:
    """Return what is wrong, "" where nothing is, None where a live rebuild is at it.

    A rebuild that ends between the look at Redis and the look at MySQL is no damage: only what a
    second look shows as well counts.
    """
    if not examine(bucket=bucket):
        return ""
    row = Bucket.objects.get(pool_id=bucket.pool_id, number=bucket.number)
    if row.claim_until is not None and row.claim_until > now:
        return None
    return examine(bucket=bucket)


def examine(*, bucket: BucketRef) -> str:
    """Return what is wrong with a bucket, or "". Raises ``GateUnavailable`` when Redis does not answer."""
    try:
        snapshot = gate.snapshot(bucket=bucket, entries_max=0)
    except NotPreheated:
        return "the bucket is not in Redis"
    except BucketUnsound as error:
        return str(error)
    row = Bucket.objects.get(pool_id=bucket.pool_id, number=bucket.number)
    items = set(ItemBucket.objects.filter(bucket_id=row.pk).values_list("item_id", flat=True))
    if snapshot.is_frozen:
        return "the gate is frozen and no rebuild is at it"
    if snapshot.epoch != row.epoch:
        return f"the gate is of epoch {snapshot.epoch}, MySQL of {row.epoch}"
    if not (snapshot.left.keys() == snapshot.queued.keys() == snapshot.prices.keys() == items):
        return "the stock does not have the items it ought to have"
    return _promises_broken(bucket=bucket, snapshot=snapshot)


def _promises_broken(*, bucket: BucketRef, snapshot: Snapshot) -> str:
    """Compare with MySQL what was promised to buyers and is fixed from preheat on: what differs, a hand has changed.

    Another window than MySQL's is on its way there while a change of it is not finished.
    """
    pool = SalePool.objects.select_related("sale").get(pk=bucket.pool_id)
    if snapshot.limit != pool.limit_per_buyer:
        return "the gate has another limit than MySQL"
    if snapshot.prices != ticket_prices(pool_id=pool.pk):
        return "the stock has other prices than MySQL"
    window = staging.milliseconds(pool.sale.opens_at), staging.milliseconds(pool.sale.closes_at)
    told = snapshot.opens_ms, snapshot.closes_ms
    if snapshot.is_sealed or (*told, snapshot.window_no) == (*window, pool.sale.window_no):
        return ""
    moving = WindowChange.objects.filter(sale_id=pool.sale_id, state=ChangeState.APPROVED, window_no__isnull=False)
    return "" if moving.exists() else "the gate has another window than MySQL"


def _tend(*, bucket: BucketRef, findings: Findings, now: datetime) -> None:
    """Do the small things a sound bucket may need. Raises ``GateUnavailable``."""
    snapshot = gate.snapshot(bucket=bucket, entries_max=0)
    if snapshot.queue_length > 0:
        findings.to_settle.append(bucket)
    if snapshot.stopped_items:
        adopt(bucket=bucket, item_ids=snapshot.stopped_items, now=now)
    buckets = Bucket.objects.filter(pool_id=bucket.pool_id).count()
    if snapshot.buckets < buckets:
        changing.widen(bucket=bucket, buckets=buckets)
    wanted = paused_items(pool_id=bucket.pool_id)
    if wanted != snapshot.paused_items:
        carry_over(bucket=bucket, wanted=wanted, found=snapshot.paused_items)
    bury(bucket=bucket, now=now)
