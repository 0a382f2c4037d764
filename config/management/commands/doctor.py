"""``manage.py doctor``: looks the deployment over and says of each finding what to do; its status is 1 if one fails."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand
from rich.console import Console
from rich.table import Table
from rich.text import Text

from config.doctor.examination import examine
from config.doctor.findings import Finding, Verdict

COLOURS = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "red"}


class Command(BaseCommand):
    help = "Look the deployment over: servers, settings, clocks, beat and workers. Exit status 1 if anything fails."
    # It runs them itself, and must be able to say so when a server is dead.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="the findings as one JSON object")
        parser.add_argument("--bad", action="store_true", help="leave out what is well")
        parser.add_argument(
            "--web-threads",
            type=int,
            default=0,
            help="threads of all web processes together, to be compared with the database's connections",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        found = examine(web_threads=options["web_threads"])
        shown = [one for one in found if one.verdict is not Verdict.OK] if options["bad"] else found
        failures = sum(one.verdict is Verdict.FAIL for one in found)
        if options["json"]:
            told = {"failures": failures, "findings": [asdict(one) for one in shown]}
            self.stdout.write(json.dumps(told, indent=2, ensure_ascii=False))
        else:
            Console(file=self.stdout).print(_table(shown))  # type: ignore[arg-type]
            self.stdout.write(_summary(found))
        if failures:
            raise SystemExit(1)


def _table(found: list[Finding]) -> Table:
    table = Table("", "topic", "finding", box=None, padding=(0, 1))
    for one in found:
        what = Text(one.what)
        if one.advice:
            what.append(f"\n→ {one.advice}", style="bold")
        table.add_row(Text(one.verdict, style=COLOURS[one.verdict]), Text(one.topic), what)
    return table


def _summary(found: list[Finding]) -> str:
    numbers = {verdict: sum(one.verdict is verdict for one in found) for verdict in Verdict}
    return ", ".join(f"{number} {verdict}" for verdict, number in numbers.items())
