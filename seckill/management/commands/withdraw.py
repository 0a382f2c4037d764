"""``manage.py withdraw SALE``: take a sale that nobody has bought in out of Redis again."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from seckill.command_log import add_reason, recorded_command
from seckill.errors import SeckillError
from seckill.models import FlashSale
from seckill.withdrawing import withdraw_sale


class Command(BaseCommand):
    help = "Make a preheated sale in which nothing was ever reserved a draft again; its units go to the warehouse."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("sale_id", type=int)
        add_reason(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with recorded_command(
                command="withdraw", table=FlashSale, key=options["sale_id"], reason=options["reason"]
            ):
                withdraw_sale(sale_id=options["sale_id"], clock=timezone.now)
        except SeckillError as error:
            raise CommandError(str(error) or type(error).__name__) from error
        self.stdout.write(self.style.SUCCESS(f"sale {options['sale_id']} is withdrawn and a draft again"))
