"""Celery tasks: thin, idempotent, ids only. They stand between whoever wants work done and who does it.

A message that waited so long that the next round has come expires; nothing piles up behind a worker
that was away.
"""

from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from orders.services import expire_orders
from seckill import (
    alerts,
    archive,
    audit,
    followup,
    gathering,
    honouring,
    lock_watch,
    opening,
    recovery,
    repair,
    replay,
    returns,
    sampling,
    selectors,
    settlement,
    silence,
    sweep,
    transfers,
)
from seckill.conf import LIMITS
from seckill.errors import GateUnavailable, NotPreheated, RebuildRefused
from seckill.gate.keys import BucketRef
from seckill.mending import Extent

SETTLE_EXPIRES_SECONDS = 10
GATHER_EXPIRES_SECONDS = 5
# A transfer takes some milliseconds; one that is open for longer was left by somebody.
LEFT_AFTER_SECONDS = 1
REBUILD_EXPIRES_SECONDS = 30
RECONCILE_EXPIRES_SECONDS = 50
FULL_EXPIRES_SECONDS = 600


@shared_task(name="seckill.settle", throws=(GateUnavailable,))
def settle(pool_id: int, number: int) -> None:
    """Drain one bucket's queue. Lost, late or doubled, it changes nothing."""
    done = settlement.settle_bucket(bucket=BucketRef(pool_id=pool_id, number=number), clock=timezone.now)
    if done.found_phantoms:
        reconcile_one.apply_async((pool_id, number), expires=RECONCILE_EXPIRES_SECONDS)


@shared_task(name="seckill.gather", throws=(GateUnavailable, NotPreheated))
def gather_units(pool_id: int, number: int, item_id: int, units: int) -> None:
    """Bring units of an item to a bucket that lacks them. Lost, late or doubled, it changes nothing."""
    want = gathering.Want(bucket=BucketRef(pool_id=pool_id, number=number), item_id=item_id, units=units)
    gathering.gather(want=want, clock=timezone.now)


@shared_task(name="seckill.finish_transfer", throws=(GateUnavailable, NotPreheated))
def finish_transfer(transfer_id: int) -> None:
    """Finish a transfer between buckets that somebody has left half made."""
    transfers.finish_transfer(transfer_id=transfer_id, clock=timezone.now)


@shared_task(name="seckill.sweep")
def sweep_buckets() -> None:
    """Wake workers for queues nobody was woken for, and rebuilds for damaged buckets; carry out what was decided."""
    findings = sweep.look_over(now=timezone.now())
    for bucket in findings.to_settle:
        settle.apply_async((bucket.pool_id, bucket.number), expires=SETTLE_EXPIRES_SECONDS)
    for bucket in findings.to_rebuild:
        rebuild_one.apply_async((bucket.pool_id, bucket.number), expires=REBUILD_EXPIRES_SECONDS)
    for transfer_id in transfers.open_transfers(before=timezone.now() - timedelta(seconds=LEFT_AFTER_SECONDS)):
        finish_transfer.apply_async((transfer_id,), expires=GATHER_EXPIRES_SECONDS)
    for want in gathering.buckets_to_fill(now=timezone.now()):
        place = want.bucket.pool_id, want.bucket.number
        gather_units.apply_async((*place, want.item_id, want.units), expires=GATHER_EXPIRES_SECONDS)
    lock_watch.watch_locks(now=timezone.now())
    replay.take_up_decisions(clock=timezone.now)
    silence.note_silence(silent=findings.unreachable, now=timezone.now())


@shared_task(name="seckill.sample")
def take_samples() -> None:
    """Note what is to be seen of each item on sale, for the charts of the monitor."""
    sampling.take_samples(clock=timezone.now)


@shared_task(name="seckill.return_closed")
def return_closed() -> None:
    """Bring the units of closed orders back on sale."""
    returns.return_closed_orders(clock=timezone.now)


@shared_task(name="orders.expire")
def expire() -> None:
    """Expire unpaid orders whose time is over."""
    expire_orders(now=timezone.now(), batch_size=LIMITS.batch_size)


@shared_task(name="seckill.rebuild", throws=(GateUnavailable, RebuildRefused))
def rebuild_one(pool_id: int, number: int) -> None:
    """Bring one bucket back into Redis from MySQL, unless somebody did already or its sale is over."""
    bucket = BucketRef(pool_id=pool_id, number=number)
    if bucket not in selectors.buckets_on_sale():
        return
    if sweep.examine(bucket=bucket):
        recovery.rebuild_automatically(bucket=bucket, clock=timezone.now)
        reconcile_full.apply_async((pool_id, number), expires=FULL_EXPIRES_SECONDS)


@shared_task(name="seckill.reconcile")
def reconcile_all() -> None:
    """Have every bucket on sale compared, each by a task of its own: a stuck one holds up no other."""
    audit.audit_some_stock(now=timezone.now())
    for bucket in selectors.buckets_on_sale():
        reconcile_one.apply_async((bucket.pool_id, bucket.number), expires=RECONCILE_EXPIRES_SECONDS)


@shared_task(name="seckill.reconcile_one", throws=(GateUnavailable,))
def reconcile_one(pool_id: int, number: int) -> None:
    """Compare MySQL and Redis for one bucket, and repair what is proved."""
    repair.reconcile_and_repair(bucket=BucketRef(pool_id=pool_id, number=number), clock=timezone.now)


@shared_task(name="seckill.reconcile_full", throws=(GateUnavailable,))
def reconcile_full(pool_id: int, number: int) -> None:
    """Compare every number and every member of one bucket, and repair what is proved."""
    bucket = BucketRef(pool_id=pool_id, number=number)
    repair.reconcile_and_repair(bucket=bucket, clock=timezone.now, extent=Extent.FULL)


@shared_task(name="seckill.preheat_due", throws=(GateUnavailable,))
def preheat_due() -> None:
    """Preheat scheduled sales that open soon."""
    opening.preheat_due_sales(clock=timezone.now)


@shared_task(name="seckill.deliver_alerts")
def deliver_alerts() -> None:
    """Send the alerts that are due."""
    alerts.deliver_due(clock=timezone.now)


@shared_task(name="seckill.archive_due")
def archive_due() -> None:
    """Archive sales that have ended, a slice at a time: the next tick goes on where this one stops."""
    archive.archive_due(clock=timezone.now, seconds=LIMITS.archive_slice_seconds)


@shared_task(name="seckill.follow_up")
def follow_up_changes() -> None:
    """Take up approved changes that nobody finished, and have what was changed by hand compared at once."""
    for bucket in followup.follow_up(clock=timezone.now):
        reconcile_full.apply_async((bucket.pool_id, bucket.number), expires=RECONCILE_EXPIRES_SECONDS)


@shared_task(name="seckill.honour")
def honour() -> None:
    """Take units again for money of closed orders that operators want honoured."""
    honouring.honour_open(clock=timezone.now)
