"""``manage.py reconcile [--repair] [--full] [--pool N] [--json]``: MySQL against Redis for every bucket on sale.

Exit code 0: everything looked at is right. 1: something differs. 2: a bucket could not be looked at,
and nothing differs where it could.
"""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from seckill.advice import advice_for
from seckill.command_log import add_reason, recorded_pools
from seckill.gate.keys import BucketRef
from seckill.incidents import open_incidents_of
from seckill.mending import Extent, as_plain
from seckill.reconciliation import BucketReport, reconcile_bucket
from seckill.repair import reconcile_and_repair
from seckill.selectors import buckets_on_sale

DIFFERS, UNSEEN = 1, 2


class Command(BaseCommand):
    help = "Compare MySQL and Redis for every bucket on sale."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_reason(parser)
        parser.add_argument("--repair", action="store_true", help="repair what is proved, as the minutely run does")
        parser.add_argument("--full", action="store_true", help="look at every buyer and receipt, not only at some")
        parser.add_argument("--pool", type=int, help="only this pool")
        parser.add_argument("--json", action="store_true", help="print one JSON list")

    def handle(self, *args: Any, **options: Any) -> None:
        reconcile = reconcile_and_repair if options["repair"] else reconcile_bucket
        extent = Extent.FULL if options["full"] else Extent.WINDOW
        buckets = _chosen(options["pool"])
        pools = frozenset(bucket.pool_id for bucket in buckets) if options["pool"] else None
        log = recorded_pools(command="reconcile", pool_ids=pools, reason=options["reason"])
        with log if options["repair"] else nullcontext():
            reports = [reconcile(bucket=bucket, clock=timezone.now, extent=extent) for bucket in buckets]
        if options["json"]:
            self.stdout.write(json.dumps([_as_json(report) for report in reports]))
        else:
            for line in (line for report in reports for line in _lines(report)):
                self.stdout.write(line)
        if any(report.is_seen and not report.is_balanced for report in reports):
            raise CommandError("not every bucket is balanced", returncode=DIFFERS)
        if not all(report.is_seen for report in reports):
            raise CommandError("not every bucket could be looked at", returncode=UNSEEN)


def _chosen(pool_id: int | None) -> list[BucketRef]:
    buckets = [bucket for bucket in buckets_on_sale() if pool_id in {None, bucket.pool_id}]
    if pool_id is not None and not buckets:
        raise CommandError(f"pool {pool_id} is not on sale", returncode=UNSEEN)
    return buckets


def _lines(report: BucketReport) -> Iterator[str]:
    explanation = f": {report.explanation}" if report.explanation else ""
    yield f"bucket {report.bucket}: {report.verdict.label}{explanation}"
    for item in report.items:
        yield (
            f"  item {item.item_id}: allocated {item.allocated} = sold {item.sold} + left {item.left}"
            f" + in flight {item.in_flight} + owed {item.owed} + adjusting {item.adjusting} + drift {item.drift}"
        )
    if report.members is not None:
        scope = "all" if report.members.is_complete else "some"
        yield f"  members: {report.members.looked_at} looked at, {scope} of this round, {report.members.count} differ"
        for finding in report.members.findings:
            told, truth = finding.in_redis or "nothing", finding.in_mysql or "no row"
            yield f"    {finding.member} {finding.name}: Redis {told}, MySQL {truth}: {finding.outcome.label}"
    for books in report.books:
        yield f"  {books.kind} {books.name}: stored {books.stored}, ledger {books.ledger}"
    for incident in open_incidents_of(bucket=report.bucket):
        yield f"  incident {incident.kind} since {incident.opened_at:%Y-%m-%d %H:%M:%S} UTC: {incident.detail}"
        yield f"    {advice_for(incident.kind).did}"
        yield f"    {advice_for(incident.kind).can}"


def _as_json(report: BucketReport) -> dict[str, Any]:
    return {
        "bucket": str(report.bucket),
        "verdict": report.verdict,
        "is_balanced": report.is_balanced,
        "explanation": report.explanation,
        "items": [vars(item) | {"drift": item.drift} for item in report.items],
        "members": as_plain(report.members) or None,
        "books": [vars(books) for books in report.books],
        "incidents": [
            {
                "kind": incident.kind,
                "severity": incident.severity,
                "opened_at": incident.opened_at.isoformat(),
                "count": incident.count,
                "detail": incident.detail,
                "did": str(advice_for(incident.kind).did),
                "can": str(advice_for(incident.kind).can),
            }
            for incident in open_incidents_of(bucket=report.bucket)
        ],
    }
