"""``manage.py explain ORDER_NO|BUYER|REFERENCE [--json]``: the whole life of a purchase, in words."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from seckill.errors import UnknownOrder
from seckill.explaining import Story, explain


class Command(BaseCommand):
    help = "Tell what became of an order number, of a buyer's purchases, or of a provider's payment or refund."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("query", help="order number, buyer (number, name, e-mail) or provider's reference")
        parser.add_argument("--json", action="store_true", help="print one JSON list")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            stories = explain(options["query"])
        except UnknownOrder as error:
            raise CommandError(f"nothing here answers to {options['query']!r}") from error
        if options["json"]:
            self.stdout.write(json.dumps([asdict(story) for story in stories], default=str, ensure_ascii=False))
            return
        for story in stories:
            self._tell(story)

    def _tell(self, story: Story) -> None:
        self.stdout.write(self.style.MIGRATE_HEADING(f"{story.order_no} (buyer {story.buyer_id or 'unknown'})"))
        for line in story.lines:
            at = line.at.isoformat(timespec="milliseconds") if line.at else "?" * 29
            self.stdout.write(f"  {at:<29}  {line.clock:<6}  {line.words}")
        self.stdout.write(f"  {story.now}")
