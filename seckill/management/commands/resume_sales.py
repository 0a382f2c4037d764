"""``manage.py resume_sales [--pool N]``: sell again what ``stop_sales`` has stopped, and no more than that."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from seckill.command_log import add_reason, recorded_pools
from seckill.errors import SaleNotReady
from seckill.stopping import resume_stopped


class Command(BaseCommand):
    help = "Sell again what stop_sales has stopped. Items that somebody had paused before stay paused."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_reason(parser)
        parser.add_argument("--pool", type=int, action="append", help="only this pool; may be given several times")

    def handle(self, *args: Any, **options: Any) -> None:
        pools = frozenset(options["pool"]) if options["pool"] else None
        try:
            with recorded_pools(command="resume_sales", pool_ids=pools, reason=options["reason"]):
                count = resume_stopped(
                    pool_ids=pools, tell=lambda item_id: self.stdout.write(f"item {item_id} is sold again")
                )
        except SaleNotReady as error:
            raise CommandError(f"{error}; the others were not resumed") from error
        if not count:
            self.stdout.write(self.style.WARNING("nothing was stopped"))

    def _tell(self, item_id: int) -> None:
        self.stdout.write(f"item {item_id} is sold again")
