"""``manage.py grow_pool POOL BUCKETS``: more buckets for a pool that is on sale, while it sells."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from seckill.command_log import add_reason, recorded_pools
from seckill.errors import GateUnavailable, SaleNotReady
from seckill.growing import grow_pool


class Command(BaseCommand):
    help = "Give a pool that is on sale more buckets. It cannot have fewer again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_reason(parser)
        parser.add_argument("pool_id", type=int)
        parser.add_argument("buckets", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        pool_id, buckets = options["pool_id"], options["buckets"]
        with recorded_pools(command="grow_pool", pool_ids=frozenset({pool_id}), reason=options["reason"]):
            try:
                grow_pool(pool_id=pool_id, buckets=buckets, clock=timezone.now)
            except (SaleNotReady, GateUnavailable) as error:
                raise CommandError(str(error)) from error
        self.stdout.write(f"pool {pool_id} has {buckets} buckets")
