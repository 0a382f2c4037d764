"""``manage.py preheat SALE``: bring a sale into Redis."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from seckill.command_log import add_reason, recorded_command
from seckill.errors import SeckillError
from seckill.models import FlashSale
from seckill.preheat import preheat_sale


class Command(BaseCommand):
    help = "Allocate a sale's units from the warehouse and bring it into Redis."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("sale_id", type=int)
        add_reason(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with recorded_command(command="preheat", table=FlashSale, key=options["sale_id"], reason=options["reason"]):
                preheat_sale(sale_id=options["sale_id"], clock=timezone.now)
        except SeckillError as error:
            raise CommandError(str(error) or type(error).__name__) from error
        self.stdout.write(self.style.SUCCESS(f"sale {options['sale_id']} is preheated"))
