"""The operator's desk of a shop with years behind it: ``make bench-desk``; the result is ``var/bench/desk.json``.

A million buyers, 100,000 orders, and every page of the desk opened as a person would. It ends with 1 when a page asks
more than 20 queries, reads a buyer's mark, weighs more than 2 MB, or takes a second or longer.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import django
from rich.console import Console
from rich.table import Table

from benchmarks.servers import PrivateServers

DIRECTORY = Path("var/bench")
SHOWN_MAX = 15


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.desk", description=__doc__)
    parser.add_argument("--buyers", type=int, default=1_000_000, help="how many there are (1000000)")
    parser.add_argument("--orders", type=int, default=100_000, help="how many have an order (100000)")
    parser.add_argument("--keep", action="store_true", help="use what the last run has made")
    arguments = parser.parse_args()
    servers = PrivateServers(directory=DIRECTORY / "desk-servers", is_fresh=not arguments.keep, environ={})
    with servers:
        os.environ.update(servers.environment(), DJANGO_SETTINGS_MODULE="config.settings", LOG_LEVEL="ERROR")
        django.setup()
        report = _run(buyers=arguments.buyers, orders=arguments.orders, is_kept=arguments.keep)
    (DIRECTORY / "desk.json").write_text(json.dumps(report, indent=2, default=vars) + "\n")
    return 1 if report["missed"] else 0


def _run(*, buyers: int, orders: int, is_kept: bool) -> dict[str, Any]:
    from django.contrib.auth.models import User
    from django.test import Client
    from django.test.utils import setup_test_environment

    from benchmarks import desk_data
    from benchmarks.catalogue import migrate
    from benchmarks.desk_pages import open_all

    console = Console()
    setup_test_environment()
    begun = time.monotonic()
    migrate()
    sizes = desk_data.Sizes.of(buyers=buyers, orders=orders)
    data = desk_data.found() if is_kept else desk_data.make(sizes)
    filled = time.monotonic() - begun
    console.print(f"{buyers:,} buyers and {orders:,} orders are there after {filled:.0f} s", highlight=False)
    client = Client()
    boss, _ = User.objects.get_or_create(username="boss", is_staff=True, is_superuser=True)
    client.force_login(boss)
    pages = []
    for page in open_all(client=client, data=data):
        pages.append(page)
        if page.faults or page.is_slow:
            console.print(
                f"{page.name}: {', '.join(page.faults)} {page.seconds} s\n    {page.slowest}",
                highlight=False,
                markup=False,
            )
    missed = [page.name for page in pages if page.faults or page.is_slow]
    _print(console, pages)
    console.print(f"{len(pages)} pages, {len(missed)} of them miss a target", highlight=False)
    return {
        "buyers": buyers,
        "orders": orders,
        "filled_seconds": round(filled, 1),
        "pages": pages,
        "missed": missed,
    }


def _print(console: Console, pages: list[Any]) -> None:
    table = Table("page", "seconds", "queries", "kB", title="The slowest pages")
    for page in sorted(pages, key=lambda page: -page.seconds)[:SHOWN_MAX]:
        table.add_row(page.name, f"{page.seconds:.3f}", str(page.queries), f"{page.size / 1000:.0f}")
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
