"""Audit: the ledger's sums against the stored numbers, for the warehouse and for everything on sale.

The ledger is written in the transaction that changes a number, so the two differ only where a hand,
or a restored part of a database, has changed one of them.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from inventory.selectors import StockBooks, balances, highest_sku_id, pages_of_stock_books, stock_books
from seckill.gate.keys import BucketRef
from seckill.incidents import Severity, open_incident, resolve_incident
from seckill.models import Bucket, ItemBucket, SaleItem
from seckill.outcomes import account_of, lock_bucket

logger = logging.getLogger(__name__)

BOOKS = "books_differ"
PAGE_SIZE = 200


@dataclass(frozen=True, kw_only=True)
class Books:
    """One number as it is stored and as the ledger adds up; ``kind`` is sku or item."""

    kind: str
    name: str
    stored: int
    ledger: int

    @property
    def is_balanced(self) -> bool:
        """Whether both say the same."""
        return self.stored == self.ledger


def all_books() -> Iterator[Books]:
    """Every SKU's warehouse stock, then every item of every bucket (allocated − sold), page by page."""
    for page in pages_of_stock_books(page_size=PAGE_SIZE):
        yield from (_of_stock(books) for books in page)
    for pool_id, number in Bucket.objects.order_by("pool_id", "number").values_list("pool_id", "number"):
        yield from item_books(bucket=BucketRef(pool_id=pool_id, number=number))


def item_books(*, bucket: BucketRef) -> list[Books]:
    """The items of a bucket; its lock holds numbers and ledger still between the two reads."""
    with transaction.atomic(durable=True):
        row = lock_bucket(bucket)
        units = list(ItemBucket.objects.filter(bucket_id=row.pk).order_by("item_id"))
        accounts = {unit.item_id: account_of(item_id=unit.item_id, bucket=bucket) for unit in units}
        sums = balances(accounts=list(accounts.values()))
    return [
        Books(
            kind="item",
            name=accounts[unit.item_id],
            stored=unit.allocated - unit.sold,
            ledger=sums.get(accounts[unit.item_id], 0),
        )
        for unit in units
    ]


def audit_bucket(*, bucket: BucketRef, now: datetime) -> list[Books]:
    """Compare a bucket's items and the warehouse stock of their SKUs; an incident is open while they differ."""
    sku_ids = list(SaleItem.objects.filter(pool_id=bucket.pool_id).values_list("sku_id", flat=True))
    books = item_books(bucket=bucket) + [_of_stock(found) for found in stock_books(sku_ids=sku_ids)]
    wrong = [found for found in books if not found.is_balanced]
    if wrong:
        detail = "; ".join(f"{b.kind} {b.name}: stored {b.stored}, ledger {b.ledger}" for b in wrong[:3])
        open_incident(kind=BOOKS, severity=Severity.CRITICAL, bucket=bucket, detail=detail, now=now)
    else:
        resolve_incident(kind=BOOKS, bucket=bucket, now=now)
    return wrong


def audit_some_stock(*, now: datetime) -> list[Books]:
    """Compare some of all SKUs, on sale or not, and log what differs; each minute the next ones by number."""
    pages = highest_sku_id() // PAGE_SIZE + 1
    page = int(now.timestamp() // 60) % pages
    rows = stock_books(sku_ids=range(page * PAGE_SIZE, (page + 1) * PAGE_SIZE))
    wrong = [books for books in map(_of_stock, rows) if not books.is_balanced]
    for books in wrong:
        logger.error("SKU %s: stored %s, ledger %s; see manage.py audit_stock", books.name, books.stored, books.ledger)
    return wrong


def _of_stock(books: StockBooks) -> Books:
    return Books(kind="sku", name=books.code, stored=books.on_hand, ledger=books.ledger)
