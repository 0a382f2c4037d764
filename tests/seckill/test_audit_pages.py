"""The audit's pages: the numbers side by side, what differs, the ledger and its file, a comparison on request."""

import csv
import io
import json
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from benchmarks.redis_log import commands_of
from benchmarks.servers import PrivateServers
from inventory.ledger import LedgerFilter, ledger_lines, ledger_page
from inventory.models import StockMovement
from inventory.services import Kind, Movement, receive, record
from rest.csv import BYTE_ORDER_MARK, harmless
from seckill import audit_pages
from seckill.gate.connection import raw_client
from seckill.item_audit import audit_of_item, summed
from seckill.mending import Extent
from seckill.models import ItemBucket, ReconciliationRun
from seckill.recheck import RecheckUnavailable, ask_for_reconciliation
from seckill.repair import reconcile_and_repair
from seckill.settlement import settle_bucket
from tests.support.broker import waiting_tasks
from tests.support.people import person
from tests.support.shop import Shop, buy, make_sale, make_ticket, make_tickets, open_sale

QUERIES_MAX = 20


def browser(*codenames: str) -> Client:
    client = Client()
    client.force_login(person(*codenames))
    return client


@pytest.fixture
def auditor() -> Client:
    """The browser of somebody who sees stock and may do nothing about it."""
    return browser("view_flashsale", "view_stockmovement")


def reconciled(*, units: int = 10, sold: int = 3) -> Shop:
    shop = open_sale(units=units)
    for ticket in make_tickets(shop, sold):
        buy(ticket)
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    return shop


def item_page(client: Client, shop: Shop, query: str = "") -> str:
    answer = client.get(f"{reverse('desk_audit_item', args=[shop.item.pk])}{query}")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_law_7_is_shown_term_by_term(auditor: Client) -> None:
    """As last compared, and as of now: what was bought since is in flight."""
    shop = reconciled()
    buy(make_ticket(shop))
    (audit,) = audit_of_item(item_id=shop.item.pk)
    assert audit.shown == [("allocated", 10), ("sold", 3), ("left", 7), ("in_flight", 0), ("owed", 0), ("adjusting", 0)]
    assert (audit.allocated, audit.sold, audit.left, audit.queued, audit.ledger) == (10, 3, 6, 1, 7)
    html = item_page(auditor, shop)
    assert '<b>10</b><span>allocated</span><span class="quiet">MySQL</span>' in html
    assert '<b>7</b><span>left</span><span class="quiet">Redis</span>' in html
    assert "<b>0</b><span>difference</span>" in html
    assert "equals allocated less sold" in html


def test_a_difference_and_a_ledger_somebody_wrote_past_are_seen(auditor: Client) -> None:
    shop = reconciled()
    ReconciliationRun.objects.all().delete()
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", 2)
    ItemBucket.objects.update(sold=4)
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    sums = summed(audit_of_item(item_id=shop.item.pk))
    assert sums is not None
    assert sums["drift"] == -3
    html = item_page(auditor, shop)
    assert "Redis has too many" in html
    assert "somebody wrote past it" in html


def test_buckets_that_were_never_compared_have_no_sum(auditor: Client) -> None:
    shop = open_sale()
    assert summed(audit_of_item(item_id=shop.item.pk)) is None
    assert "was never compared" in item_page(auditor, shop)
    assert "Not preheated yet" in item_page(auditor, make_sale())


def test_members_that_differ_are_listed_page_by_page(auditor: Client) -> None:
    """From what the runs have stored; Redis is asked for no member."""
    shop = reconciled(units=40, sold=30)
    raw_client().hdel(
        shop.bucket.keys[2], *[key for key in raw_client().hkeys(shop.bucket.keys[2]) if key != b"#epoch"]
    )
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    members = set(shop.bucket.keys[2:4])
    with commands_of("stock") as commands:
        first, second = item_page(auditor, shop), item_page(auditor, shop, "?members=2")
    assert (first.count("repaired"), second.count("repaired")) == (25, 5)
    assert "1 / 2" in first
    assert {name for name, *args in commands if members & set(args)} <= {"HLEN"}


def test_the_page_costs_the_same_for_many_buckets_and_rows(auditor: Client) -> None:
    shop = reconciled()
    with CaptureQueriesContext(connection) as queries:
        item_page(auditor, shop)
    assert len(queries) <= QUERIES_MAX


def test_a_sku_is_shown_in_the_warehouse_and_in_every_sale(auditor: Client) -> None:
    shop = reconciled()
    receive(sku_id=shop.item.sku_id, units=5, reference="more", now=timezone.now())
    answer = auditor.get(reverse("desk_audit_sku", args=[shop.item.sku_id]))
    html = " ".join(answer.content.decode().split())
    assert '<td data-label="Stored">5</td>' in html
    assert '<td data-label="Not sold">7</td>' in html
    assert '<tr class="is-bad">' not in html
    StockMovement.objects.filter(account__startswith="item:").update(units=99)
    assert '<tr class="is-bad">' in " ".join(
        auditor.get(reverse("desk_audit_sku", args=[shop.item.sku_id])).content.decode().split()
    )


def test_lists_lead_to_the_monitor_and_the_books() -> None:
    shop = reconciled()
    client = browser("view_flashsale", "view_saleitem", "view_sku")
    for page, name, key in (
        ("seckill_flashsale", "desk_monitor_sale", shop.sale.pk),
        ("seckill_saleitem", "desk_audit_item", shop.item.pk),
        ("inventory_sku", "desk_audit_sku", shop.item.sku_id),
    ):
        html = client.get(reverse(f"admin:{page}_changelist")).content.decode()
        assert f'<a href="{reverse(name, args=[key])}">' in html


def test_who_may_change_sales_has_a_worker_compare(auditor: Client) -> None:
    shop = reconciled()
    newest = ReconciliationRun.objects.get().pk
    url = reverse("desk_audit_reconcile", args=[shop.item.pk])
    assert auditor.post(url).status_code == 403
    operator = browser("view_flashsale", "change_saleitem")
    assert operator.get(url).status_code == 405
    answer = operator.post(url, {"full": "1"})
    assert answer["Location"] == f"{reverse('desk_audit_item', args=[shop.item.pk])}?after={newest}"
    assert waiting_tasks("slow") == [("seckill.reconcile_full", [shop.pool.pk, 0])]
    runs = json.loads(auditor.get(reverse("desk_audit_runs", args=[shop.item.pk])).content)
    assert runs == {str(shop.bucket): {"run": newest, "verdict": "BALANCED"}}


def test_without_a_broker_it_is_said_soon(servers: PrivateServers, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = reconciled()
    servers.cache_redis.stop()
    try:
        with pytest.raises(RecheckUnavailable):
            ask_for_reconciliation(pool_id=shop.pool.pk, extent=Extent.WINDOW)
    finally:
        servers.cache_redis.start()
    monkeypatch.setattr(audit_pages, "ask_for_reconciliation", _away)
    operator = browser("view_flashsale", "change_saleitem")
    answer = operator.post(reverse("desk_audit_reconcile", args=[shop.item.pk]), follow=True)
    assert "No worker could be asked: the broker is away" in answer.content.decode()


def _away(**_: object) -> int:
    raise RecheckUnavailable("the broker is away")


def test_the_ledger_is_read_page_by_page() -> None:
    sku = open_sale().item.sku_id
    with_many(sku_id=sku, count=7)
    which = LedgerFilter(accounts=["shelf"])
    first = ledger_page(which=which, size=3)
    second = ledger_page(which=which, size=3, before=first.before)
    third = ledger_page(which=which, size=3, before=second.before)
    units = [[row.units for row in page.rows] for page in (first, second, third)]
    assert units == [[7, 6, 5], [4, 3, 2], [1]]
    assert third.before is None


def test_the_ledger_is_narrowed_down_and_a_bad_filter_is_told(auditor: Client) -> None:
    shop = reconciled()
    assert item_page(auditor, shop).count("+10") == 1
    assert item_page(auditor, shop, "?kind=SALE").count("+10") == 0
    today = timezone.localdate()
    assert item_page(auditor, shop, f"?since={today + timedelta(days=1)}").count("No movement.") == 1
    assert item_page(auditor, shop, f"?until={today}").count("+10") == 1
    assert "The filter cannot be read." in item_page(auditor, shop, "?since=yesterday")
    assert "Ledger" not in item_page(browser("view_flashsale"), shop)


def test_a_file_of_the_ledger_runs_no_formula(auditor: Client) -> None:
    shop = reconciled()
    evil = '=HYPERLINK("http://evil.example";"x")'
    with_many(sku_id=shop.item.sku_id, count=1, reason=evil, account=f"item:{shop.item.pk}:0")
    answer = auditor.get(reverse("desk_ledger_file"), {"item": shop.item.pk})
    text = answer.getvalue().decode()
    assert text.startswith(BYTE_ORDER_MARK)
    rows = list(csv.DictReader(io.StringIO(text.removeprefix(BYTE_ORDER_MARK))))
    assert [row["units"] for row in rows] == ["10", "-3", "1"]
    assert rows[-1]["reason"] == f"'{evil}"
    assert "no-store" in answer["Cache-Control"]
    assert ".csv" in answer["Content-Disposition"]


@pytest.mark.parametrize(
    ("cell", "written"), [("=1+1", "'=1+1"), ("@x", "'@x"), ("-5", "'-5"), (-5, -5), (None, ""), ("a=b", "a=b")]
)
def test_texts_are_made_harmless_and_numbers_stay(cell: object, written: object) -> None:
    assert harmless(cell) == written


def test_who_may_not_see_the_ledger_gets_no_file() -> None:
    shop = reconciled()
    url = reverse("desk_ledger_file")
    assert browser("view_flashsale").get(url).status_code == 403
    client = browser("view_flashsale", "view_stockmovement")
    assert client.get(url, {"item": "x"}).status_code == 400
    assert client.get(url, {"kind": "NONE"}).status_code == 400
    assert client.get(url, {"item": 999_999}).status_code == 404
    assert client.get(url, {"sku": shop.item.sku_id}).status_code == 200


def test_a_file_of_any_length_is_read_in_chunks() -> None:
    sku = open_sale().item.sku_id
    with_many(sku_id=sku, count=5)
    with CaptureQueriesContext(connection) as queries:
        lines = list(ledger_lines(which=LedgerFilter(accounts=["shelf"])))
    assert [line[5] for line in lines] == [1, 2, 3, 4, 5]
    ledger = [query["sql"] for query in queries if "FROM `inventory_stockmovement`" in query["sql"]]
    assert len(ledger) == 2
    assert not [sql for sql in ledger if "JOIN" in sql]


def with_many(*, sku_id: int, count: int, reason: str = "", account: str = "shelf") -> None:
    """Write so many rows of 1, 2, 3 … units, each at its own reference."""
    from django.db import transaction

    movements = [
        Movement(
            sku_id=sku_id, account=account, kind=Kind.RECEIPT, units=n, reference=f"many:{account}:{n}", reason=reason
        )
        for n in range(1, count + 1)
    ]
    with transaction.atomic():
        record(movements=movements, now=timezone.now())
