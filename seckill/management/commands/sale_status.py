"""``manage.py sale_status SALE [--json]``: MySQL's numbers and the gate's, side by side."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from seckill.gate.keys import BucketRef
from seckill.models import Bucket, FlashSale, ItemBucket
from seckill.selectors import gate_numbers
from seckill.states import SaleState, sale_phase


class Command(BaseCommand):
    help = "Show what MySQL and Redis say of a sale."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("sale_id", type=int)
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        sale = FlashSale.objects.filter(pk=options["sale_id"]).first()
        if sale is None:
            raise CommandError(f"there is no sale {options['sale_id']}")
        phase = sale_phase(
            state=SaleState(sale.state), opens_at=sale.opens_at, closes_at=sale.closes_at, now=timezone.now()
        )
        rows = [row for bucket in Bucket.objects.filter(pool__sale=sale) for row in _rows(bucket)]
        if options["json"]:
            self.stdout.write(json.dumps({"sale": sale.pk, "phase": phase, "items": rows}))
            return
        self.stdout.write(f"{sale.name}: {phase}")
        for row in rows:
            self.stdout.write("  ".join(f"{name}={value}" for name, value in row.items()))


def _rows(bucket: Bucket) -> list[dict[str, Any]]:
    snapshot = gate_numbers(bucket=BucketRef(pool_id=bucket.pool_id, number=bucket.number))
    return [
        {
            "item": unit.item_id,
            "bucket": str(bucket),
            "allocated": unit.allocated,
            "sold": unit.sold,
            "left": snapshot.left.get(unit.item_id) if snapshot else None,
            "queued": snapshot.queued.get(unit.item_id) if snapshot else None,
            "epoch": snapshot.epoch if snapshot else None,
            "frozen": snapshot.is_frozen if snapshot else None,
            "paused": unit.item_id in snapshot.paused_items if snapshot else None,
        }
        for unit in ItemBucket.objects.filter(bucket_id=bucket.pk).order_by("item_id")
    ]
