"""``manage.py rehearsal make|judge``: a sale for a crowd of made-up buyers, and what the books say of it afterwards."""

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from seckill.models import FlashSale
from seckill.sandbox.rehearsal import judge_rehearsal, make_rehearsal


class Command(BaseCommand):
    help = "Make accounts and a sale to rehearse with, or judge a rehearsal. Only with SANDBOX=1."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parts = parser.add_subparsers(dest="part", required=True)
        make = parts.add_parser("make", help="print what the crowd has to know as one JSON object")
        make.add_argument("--buyers", type=int, default=1000)
        make.add_argument("--units", type=int, default=100)
        make.add_argument("--opens-in", type=int, default=300, help="seconds")
        judge = parts.add_parser("judge", help="print the books of a sale as one JSON object; fails if a law is broken")
        judge.add_argument("sale_id", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.SANDBOX:
            raise CommandError("this is no sandbox: its units would be sold for nothing (SANDBOX=1 makes it one)")
        if options["part"] == "make":
            made = make_rehearsal(
                buyers=options["buyers"],
                units=options["units"],
                opens_in=timedelta(seconds=options["opens_in"]),
                clock=timezone.now,
            )
            self.stdout.write(json.dumps(vars(made)))
            return
        sale = FlashSale.objects.filter(pk=options["sale_id"]).first()
        if sale is None:
            raise CommandError(f"there is no sale {options['sale_id']}")
        self.stdout.write(json.dumps(vars(judge_rehearsal(sale=sale, clock=timezone.now))))
