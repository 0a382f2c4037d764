"""``manage.py rebuild POOL [--bucket N] [...]``: bring a bucket into Redis from MySQL."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from seckill.command_log import add_reason, recorded_command
from seckill.errors import SeckillError
from seckill.gate.keys import BucketRef
from seckill.mending import Extent
from seckill.models import SalePool
from seckill.rebuild import Commits, Orders, Queue
from seckill.recovery import rebuild_by_hand
from seckill.repair import reconcile_and_repair
from seckill.selectors import buckets_on_sale


class Command(BaseCommand):
    help = "Make Redis say of a bucket what MySQL says, and open it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_reason(parser)
        parser.add_argument("pool_id", type=int)
        parser.add_argument("--bucket", type=int, default=0)
        parser.add_argument(
            "--accept-lost-commits",
            action="store_true",
            help="rebuild although MySQL has forgotten reservations: their units are sold again, their buyers go empty",
        )
        parser.add_argument(
            "--put-queue-aside",
            action="store_true",
            help="rebuild although MySQL cannot take what waits in the queue: those reservations are parked as dead"
            " letters, each to be replayed or refused later; their units are on sale again, so there may be none left",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        bucket = BucketRef(pool_id=options["pool_id"], number=options["bucket"])
        if bucket not in buckets_on_sale():
            raise CommandError(f"bucket {bucket} is not on sale")
        commits = Commits.MAY_BE_LOST if options["accept_lost_commits"] else Commits.MUST_BE_THERE
        queue = Queue.IS_PUT_ASIDE if options["put_queue_aside"] else Queue.IS_DRAINED
        orders = Orders(commits=commits, queue=queue)
        try:
            with recorded_command(
                command="rebuild",
                table=SalePool,
                key=bucket.pool_id,
                reason=options["reason"],
                detail=f"bucket {bucket}: commits {commits.name}, queue {queue.name}",
            ):
                rebuilt = rebuild_by_hand(bucket=bucket, clock=timezone.now, orders=orders)
        except SeckillError as error:
            raise CommandError(str(error) or type(error).__name__) from error
        self.stdout.write(
            self.style.SUCCESS(
                f"bucket {bucket} is open in epoch {rebuilt.epoch}; {rebuilt.drained} queued reservations were brought"
                f" into MySQL, {rebuilt.refused} of them refused"
            )
        )
        if rebuilt.parked:
            words = f"{rebuilt.parked} entries are dead letters now: manage.py decide_deadletter"
            self.stdout.write(self.style.WARNING(words))
        report = reconcile_and_repair(bucket=bucket, clock=timezone.now, extent=Extent.FULL)
        if not report.is_balanced:
            raise CommandError(f"it is not balanced: see manage.py reconcile --full --pool {bucket.pool_id}")
