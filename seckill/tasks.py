"""Celery tasks: thin, idempotent, ids only. They stand between whoever wants work done and who does it."""

from celery import shared_task
from django.utils import timezone

from seckill import rebuild, reconciliation, selectors, settlement, sweep
from seckill.errors import GateUnavailable, RebuildRefused
from seckill.gate.keys import BucketRef
from seckill.incidents import resolve_incident


@shared_task(name="seckill.settle", throws=(GateUnavailable,))
def settle(pool_id: int, number: int) -> None:
    """Drain one bucket's queue. Lost, late or doubled, it changes nothing."""
    settlement.settle_bucket(bucket=BucketRef(pool_id=pool_id, number=number), clock=timezone.now)


@shared_task(name="seckill.sweep", throws=(GateUnavailable,))
def sweep_buckets() -> None:
    """Wake workers for queues nobody was woken for, and rebuilds for damaged buckets."""
    findings = sweep.look_over(now=timezone.now())
    for bucket in findings.to_settle:
        settle.delay(bucket.pool_id, bucket.number)
    for bucket in findings.to_rebuild:
        rebuild_one.delay(bucket.pool_id, bucket.number)


@shared_task(name="seckill.rebuild", throws=(GateUnavailable, RebuildRefused))
def rebuild_one(pool_id: int, number: int) -> None:
    """Bring one bucket back into Redis from MySQL, unless somebody did already."""
    bucket = BucketRef(pool_id=pool_id, number=number)
    damage, _ = sweep.examine(bucket=bucket)
    if damage:
        rebuild.rebuild_bucket(bucket=bucket, clock=timezone.now)
    for kind in (sweep.LOST, settlement.FORKED):
        resolve_incident(kind=kind, bucket=bucket, now=timezone.now())


@shared_task(name="seckill.reconcile", throws=(GateUnavailable,))
def reconcile_all() -> None:
    """Compare MySQL and Redis for every bucket on sale."""
    for bucket in selectors.buckets_on_sale():
        reconciliation.reconcile_bucket(bucket=bucket, clock=timezone.now)
