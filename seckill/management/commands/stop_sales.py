"""``manage.py stop_sales [--pool N]``: accept nothing new anywhere; works while MySQL is down."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from seckill.command_log import add_reason, told_if_possible
from seckill.errors import GateUnavailable
from seckill.stopping import stop_sales


class Command(BaseCommand):
    help = "Stop all sales at once, or those of some pools. Nobody loses what he has reserved. See also STOP_FILE."
    # MySQL may be the reason.
    requires_system_checks = ()
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_reason(parser)
        parser.add_argument("--pool", type=int, action="append", help="only this pool; may be given several times")

    def handle(self, *args: Any, **options: Any) -> None:
        pools = frozenset(options["pool"]) if options["pool"] else None
        try:
            stopped = stop_sales(pool_ids=pools, now=timezone.now())
        except GateUnavailable as error:
            raise CommandError(f"Redis does not answer, so nothing is sold either: {error}") from error
        note = f"{len(stopped.items)} buckets stopped"
        told = told_if_possible(command="stop_sales", pool_ids=pools, reason=options["reason"], note=note)
        if not told:
            self.stdout.write(self.style.WARNING("MySQL does not answer: write down who stopped the sales, and why"))
        for bucket, item_ids in sorted(stopped.items.items(), key=lambda pair: str(pair[0])):
            self.stdout.write(f"bucket {bucket}: {len(item_ids)} items are stopped")
        if not stopped.items:
            self.stdout.write(self.style.WARNING("nothing is on sale in Redis"))
        elif stopped.is_known:
            self.stdout.write(self.style.SUCCESS("stopped; manage.py resume_sales sells again"))
        else:
            words = "stopped in Redis; MySQL does not answer and is told by the sweep as soon as it does"
            self.stdout.write(self.style.WARNING(words))
