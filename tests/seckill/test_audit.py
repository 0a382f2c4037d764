"""The ledger's sums are the stored numbers, for every SKU and every item; and whoever changes one alone is found."""

import json
from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from inventory.models import Stock, StockMovement
from orders.services import cancel_order
from seckill import audit
from seckill.advice import advice_for
from seckill.audit import all_books, audit_some_stock
from seckill.models import Incident, ItemBucket, Reservation
from seckill.outcomes import account_of, lock_bucket
from seckill.repair import reconcile_and_repair
from seckill.returns import return_closed_orders
from seckill.tasks import reconcile_all
from tests.support.rows import NOW, make_sku
from tests.support.shop import Shop, buy, make_sale, make_tickets, open_sale
from tests.support.threads import run_together


def busy_shop() -> Shop:
    """Two items, of which some were sold, cancelled and taken back, beside a SKU that is on no sale."""
    make_sale(units=5)
    shop = open_sale(units=10, items=2, limit=3)
    for ticket in make_tickets(shop, 3):
        buy(ticket, 2)
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    first = Reservation.objects.order_by("seq")[0]
    cancel_order(number=first.order_no, buyer_id=first.buyer_id, now=timezone.now())
    return_closed_orders(clock=timezone.now)
    return shop


def run(*args: str) -> tuple[list[str], int]:
    """Run the audit; return its lines and its exit code."""
    out = StringIO()
    try:
        call_command("audit_stock", *args, stdout=out)
    except CommandError as error:
        return out.getvalue().splitlines(), error.returncode
    return out.getvalue().splitlines(), 0


def test_a_shop_that_nobody_touched_adds_up() -> None:
    shop = busy_shop()
    assert [(b.kind, b.stored, b.ledger) for b in all_books()] == [
        ("sku", 5, 5),
        ("sku", 0, 0),
        ("sku", 0, 0),
        ("item", 6, 6),
        ("item", 10, 10),
    ]
    assert run() == (["3 SKUs and 2 items looked at, 0 differ"], 0)
    lines, code = run("--json")
    assert (json.loads(lines[0]), code) == ({"is_balanced": True, "looked_at": 5, "differences": []}, 0)
    assert reconcile_and_repair(bucket=shop.bucket, clock=timezone.now).books == ()


def test_every_number_changed_alone_is_found() -> None:
    shop = busy_shop()
    sku = shop.item.sku
    Stock.objects.filter(sku=sku).update(on_hand=F("on_hand") + 3)
    ItemBucket.objects.filter(item=shop.item).update(sold=F("sold") - 1)
    account = account_of(item_id=shop.items[1].pk, bucket=shop.bucket)
    StockMovement.objects.create(sku=sku, account=account, kind="SALE", units=-2, reference="by hand", created_at=NOW)
    first = account_of(item_id=shop.item.pk, bucket=shop.bucket)
    assert run() == (
        [
            "3 SKUs and 2 items looked at, 3 differ",
            f"  sku {sku.code}: stored 3, ledger 0 (+3)",
            f"  item {first}: stored 7, ledger 6 (+1)",
            f"  item {account}: stored 10, ledger 8 (+2)",
            f"  {advice_for('books_differ')}",
        ],
        1,
    )
    lines, code = run("--json")
    assert code == 1
    assert json.loads(lines[0])["differences"][0] == {"kind": "sku", "name": sku.code, "stored": 3, "ledger": 0}


def test_a_stock_row_that_is_gone_and_one_that_never_was() -> None:
    shop = make_sale(units=5)
    make_sku()
    Stock.objects.filter(sku=shop.item.sku).delete()
    assert [(b.stored, b.ledger) for b in all_books()] == [(0, 5), (0, 0)]


def test_reconciliation_tells_of_it_as_long_as_it_lasts() -> None:
    shop = busy_shop()
    ItemBucket.objects.filter(item=shop.item).update(sold=F("sold") + 1)
    report = reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    assert not report.is_balanced
    account = account_of(item_id=shop.item.pk, bucket=shop.bucket)
    assert [(b.name, b.stored, b.ledger) for b in report.books] == [(account, 5, 6)]
    incident = Incident.objects.get(kind="books_differ")
    assert incident.detail == f"item {account}: stored 5, ledger 6"
    ItemBucket.objects.filter(item=shop.item).update(sold=F("sold") - 1)
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    incident.refresh_from_db()
    assert incident.resolved_at is not None


def test_skus_on_no_sale_have_their_turn(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """A page of numbers a minute, round and round; what differs is logged."""
    skus = [make_sale(units=5).item.sku for _ in range(3)]
    Stock.objects.filter(sku=skus[1]).update(on_hand=4)
    monkeypatch.setattr(audit, "PAGE_SIZE", 2)
    pages = skus[2].pk // 2 + 1
    found = [books.name for n in range(pages) for books in audit_some_stock(now=minute(n))]
    assert found == [skus[1].code]
    assert caplog.messages == [f"SKU {skus[1].code}: stored 4, ledger 5; see manage.py audit_stock"]
    reconcile_all()


def minute(number: int) -> datetime:
    return NOW + timedelta(minutes=number)


@pytest.mark.slow
def test_the_audit_of_a_shop_at_work_raises_no_false_alarm() -> None:
    """Numbers and ledger are read of one instant, whoever buys and cancels meanwhile."""
    shop = open_sale(units=60, limit=1)
    tickets = make_tickets(shop, 12)

    def work(number: int) -> int:
        if number == 0:
            return sum(not books.is_balanced for _ in range(8) for books in all_books())
        for ticket in tickets[number - 1 :: 3]:
            order_no = buy(ticket)
            reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
            row = Reservation.objects.filter(order_no=order_no).first()
            if row is not None:  # else another worker is settling it just now
                cancel_order(number=order_no, buyer_id=row.buyer_id, now=timezone.now())
            return_closed_orders(clock=timezone.now)
        return 0

    assert run_together(work, range(4))[0] == 0
    assert not Incident.objects.exists()


@pytest.mark.slow
def test_what_could_not_be_read_is_neither_right_nor_wrong() -> None:
    shop = busy_shop()

    def run_impatiently(_: int) -> int:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        return run()[1]

    with transaction.atomic():
        lock_bucket(shop.bucket)
        assert run_together(run_impatiently, [0]) == [2]
