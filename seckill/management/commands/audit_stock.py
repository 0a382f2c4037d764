"""``manage.py audit_stock [--json]``: the ledger's sums against the stored numbers.

Exit code 0: they agree. 1: somewhere they do not. 2: MySQL could not be asked for all of them.
"""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from seckill.advice import advice_for
from seckill.audit import BOOKS, Books, all_books


class Command(BaseCommand):
    help = "Compare every SKU's warehouse stock and every item's unsold units with the ledger."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            books = list(all_books())
        except DatabaseError as error:
            raise CommandError(f"not all books could be read: {error}", returncode=2) from error
        wrong = [found for found in books if not found.is_balanced]
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(books=books, wrong=wrong)))
        else:
            self._print(books=books, wrong=wrong)
        if wrong:
            raise CommandError("the ledger and the stored numbers differ", returncode=1)

    def _print(self, *, books: list[Books], wrong: list[Books]) -> None:
        skus = sum(1 for found in books if found.kind == "sku")
        self.stdout.write(f"{skus} SKUs and {len(books) - skus} items looked at, {len(wrong)} differ")
        for found in wrong:
            self.stdout.write(
                f"  {found.kind} {found.name}: stored {found.stored}, ledger {found.ledger}"
                f" ({found.stored - found.ledger:+d})"
            )
        if wrong:
            self.stdout.write(f"  {advice_for(BOOKS)}")


def _as_json(*, books: list[Books], wrong: list[Books]) -> dict[str, Any]:
    return {
        "is_balanced": not wrong,
        "looked_at": len(books),
        "differences": [vars(found) for found in wrong],
    }
