"""``manage.py reconcile [--repair] [--json]``: law 7 for every bucket on sale; exit code 1 when one is off."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from seckill.reconciliation import BucketReport, Verdict, reconcile_bucket
from seckill.repair import reconcile_and_repair
from seckill.selectors import buckets_on_sale


class Command(BaseCommand):
    help = "Compare MySQL and Redis for every bucket on sale."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--repair", action="store_true", help="repair what is proved, as the minutely run does")
        parser.add_argument("--json", action="store_true", help="print one JSON list")

    def handle(self, *args: Any, **options: Any) -> None:
        reconcile = reconcile_and_repair if options["repair"] else reconcile_bucket
        reports = [reconcile(bucket=bucket, clock=timezone.now) for bucket in buckets_on_sale()]
        if options["json"]:
            self.stdout.write(json.dumps([_as_json(report) for report in reports]))
        else:
            for report in reports:
                self._print(report)
        if any(report.verdict != Verdict.BALANCED for report in reports):
            raise CommandError("not every bucket is balanced", returncode=1)

    def _print(self, report: BucketReport) -> None:
        explanation = f": {report.explanation}" if report.explanation else ""
        self.stdout.write(f"bucket {report.bucket}: {report.verdict.label}{explanation}")
        for item in report.items:
            self.stdout.write(
                f"  item {item.item_id}: allocated {item.allocated} = sold {item.sold} + left {item.left}"
                f" + in flight {item.in_flight} + owed {item.owed} + adjusting {item.adjusting} + drift {item.drift}"
            )


def _as_json(report: BucketReport) -> dict[str, Any]:
    return {
        "bucket": str(report.bucket),
        "verdict": report.verdict,
        "explanation": report.explanation,
        "items": [vars(item) | {"drift": item.drift} for item in report.items],
    }
