"""``manage.py archive [--sale ID] [--dry-run]``: bring sales that have ended from Redis to MySQL."""

import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from seckill.archive import Pace, Tell, archive_sale
from seckill.archive_begin import Accepted, due_sales, explain, sales_under_archive
from seckill.archive_tables import ArchiveRun, ArchiveStage
from seckill.command_log import add_reason, recorded_command
from seckill.errors import SeckillError
from seckill.models import FlashSale

LINE_SECONDS = 1.0

DOING = {
    ArchiveStage.CLAIMED: "settling and sealing",
    ArchiveStage.SEALED: "emptying the queue",
    ArchiveStage.DRAINED: "copying buyers",
    ArchiveStage.COPIED: "comparing buyers",
    ArchiveStage.COMPARED: "checking receipts",
    ArchiveStage.CHECKED: "clearing leftovers",
    ArchiveStage.CLEARED: "freeing Redis",
    ArchiveStage.DONE: "done",
}


class Command(BaseCommand):
    help = "Copy the buyers of ended sales to MySQL, give what is left over to the warehouse, free Redis."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_reason(parser)
        parser.add_argument("--sale", type=int, help="this sale, without waiting for the delay after its end")
        parser.add_argument("--dry-run", action="store_true", help="say what would be archived, change nothing")
        parser.add_argument(
            "--accept-dead-letters",
            action="store_true",
            help="archive although entries of the queue are parked: they will never become orders",
        )
        parser.add_argument(
            "--accept-lost-commits",
            action="store_true",
            help="archive although MySQL has forgotten reservations: their units count as left over",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        sale_ids = [options["sale"]]
        if options["sale"] is None:
            sale_ids = [*sales_under_archive(), *due_sales(now=timezone.now())]
        if not sale_ids:
            self.stdout.write("no sale is due")
            return
        accepted = Accepted(dead_letters=options["accept_dead_letters"], lost_commits=options["accept_lost_commits"])
        if options["dry_run"]:
            for sale_id in sale_ids:
                explanation = explain(sale_id=sale_id, accepted=accepted, now=timezone.now())
                self.stdout.write(f"sale {sale_id}: {explanation}")
            return
        reason = options["reason"]
        failed = [
            sale_id for sale_id in sale_ids if not self._archive(sale_id=sale_id, accepted=accepted, reason=reason)
        ]
        if failed:
            raise CommandError(f"not archived: sale {', '.join(map(str, failed))}", returncode=1)

    def _archive(self, *, sale_id: int, accepted: Accepted, reason: str) -> bool:
        log = recorded_command(command="archive", table=FlashSale, key=sale_id, reason=reason)
        try:
            with self._progress() as tell, log:
                runs = archive_sale(sale_id=sale_id, accepted=accepted, clock=timezone.now, has_time=Pace(), tell=tell)
        except SeckillError as error:
            self.stderr.write(f"sale {sale_id}: {str(error) or type(error).__name__}")
            return False
        for run in runs:
            self.stdout.write(_told(run))
        return all(run.stage == ArchiveStage.DONE for run in runs)

    @contextmanager
    def _progress(self) -> Iterator[Tell]:
        """A bar for each bucket on a terminal, lines anywhere else."""
        if not self.stdout.isatty():
            yield _Lines(self.stdout.write)
            return
        console = Console(file=self.stdout._out)  # type: ignore[arg-type]  # noqa: SLF001  rich wants the stream itself
        columns = (TextColumn("{task.description:<32}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console) as bars:
            yield _Bars(bars)


class _Bars:
    """Draws one bar for each stage of each bucket."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[tuple[int, str], Any] = {}

    def __call__(self, run: ArchiveRun) -> None:
        key = (run.pk, run.stage)
        if key not in self._tasks:
            self._tasks[key] = self._bars.add_task(f"{run.pool_id}:{run.bucket_no} {_doing(run)}", total=None)
        done, total = _counts(run)
        self._bars.update(self._tasks[key], completed=done, total=total)


class _Lines:
    """Prints a line for each new stage, and now and then how far it is."""

    def __init__(self, write: Any) -> None:
        self._write = write
        self._stage = ""
        self._told_at = 0.0

    def __call__(self, run: ArchiveRun) -> None:
        now = time.monotonic()
        if run.stage == self._stage and now - self._told_at < LINE_SECONDS:
            return
        self._stage, self._told_at = run.stage, now
        done, total = _counts(run)
        self._write(f"bucket {run.pool_id}:{run.bucket_no}: {_doing(run)}" + (f" {done} of {total}" if total else ""))


def _doing(run: ArchiveRun) -> str:
    return DOING[ArchiveStage(run.stage)]


def _counts(run: ArchiveRun) -> tuple[int, int | None]:
    """How many rows of the stage under way are done, and of how many; None where nothing is counted."""
    if run.stage not in {ArchiveStage.DRAINED, ArchiveStage.COPIED, ArchiveStage.COMPARED}:
        return 0, None
    done = run.progress.get("copied" if run.stage == ArchiveStage.COPIED else "done", 0)
    return done, run.progress.get("total")


def _told(run: ArchiveRun) -> str:
    name = f"bucket {run.pool_id}:{run.bucket_no}"
    if run.stage != ArchiveStage.DONE:
        return f"{name}: {run.get_stage_display()}; waits for: {run.waits_for or 'another worker'}"
    units = sum(run.manifest["leftovers"].values())
    lost = "; Redis was lost, finished from MySQL" if run.is_redis_lost else ""
    return f"{name}: archived, {run.manifest['buyers']['count']} buyers, {units} units to the warehouse{lost}"
