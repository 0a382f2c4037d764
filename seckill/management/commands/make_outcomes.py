"""``manage.py make_outcomes BUYER [--json]``: an item for every answer, on a sandbox and nowhere else."""

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from seckill.errors import SeckillError
from seckill.sandbox.outcome_set import make_outcomes


class Command(BaseCommand):
    help = "Make items that answer every code and end in every state on purpose. Only with SANDBOX=1."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("buyer", help="name of the account that will try them")
        parser.add_argument("--json", action="store_true", help="print one JSON list")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.SANDBOX:
            raise CommandError("this is no sandbox: such items would be sold to real buyers (SANDBOX=1 makes it one)")
        buyer = get_user_model().objects.filter(username=options["buyer"]).first()
        if buyer is None:
            raise CommandError(f"there is no account {options['buyer']}")
        try:
            made = make_outcomes(buyer=buyer, clock=timezone.now)
        except SeckillError as error:
            raise CommandError(str(error) or type(error).__name__) from error
        if options["json"]:
            self.stdout.write(json.dumps([vars(outcome) for outcome in made]))
            return
        for outcome in made:
            self.stdout.write(f"{outcome.code:22} item {outcome.item_id:<6} {outcome.how}")
            for name in ("ticket", "order_no"):
                if value := getattr(outcome, name):
                    self.stdout.write(f"{'':22} {name} {value}")
