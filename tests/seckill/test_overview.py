"""The desk's first page: what is on, what is wrong, what waits for the one who looks; by few statements."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inventory.changes import submit
from seckill.change_tables import ItemAdjustment
from seckill.incidents import Severity, open_incident
from seckill.models import FlashSale
from tests.support.roles import browser_of, in_role
from tests.support.shop import make_sale, open_sale

QUERIES_MAX = 20


def shown(client: Client) -> str:
    return client.get("/admin/").content.decode()


def test_sales_with_their_word_and_what_their_clock_runs_to() -> None:
    open_sale()
    to_come = make_sale().sale
    now = timezone.now()
    FlashSale.objects.filter(pk=to_come.pk).update(
        state="SCHEDULED",
        name="to come",
        opens_at=now + timedelta(hours=3, minutes=12, seconds=30),
        closes_at=now + timedelta(days=2),
    )
    html = shown(browser_of("auditor")).replace("\xa0", " ")
    assert '<span class="badge phase-live">live</span>' in html
    assert "closes in " in html
    assert '<span class="badge phase-scheduled">scheduled</span>' in html
    assert "opens in 3 hours, 12 minutes" in html


def test_only_what_somebody_may_do_waits_for_him() -> None:
    shop = open_sale()
    asker = in_role("operator")
    submit(change=ItemAdjustment(item=shop.item, delta=1, reason="more"), by=asker, now=timezone.now())
    waits = "adjustments of units on sale to decide on"
    assert waits in shown(browser_of("approver"))
    assert waits not in shown(browser_of("operator"))
    assert waits not in shown(browser_of("auditor"))


def test_open_incidents_are_linked() -> None:
    shop = open_sale()
    open_incident(kind="phantom", severity=Severity.CRITICAL, bucket=shop.bucket, detail="x", now=timezone.now())
    assert "/admin/seckill/incident/" in shown(browser_of("auditor")).partition('id="incidents"')[2]


@pytest.mark.parametrize("role", ["operator", "approver"])
def test_it_takes_few_statements_however_many_sales_there_are(role: str) -> None:
    for _ in range(3):
        shop = open_sale()
        open_incident(kind="phantom", severity=Severity.CRITICAL, bucket=shop.bucket, detail="x", now=timezone.now())
    client = browser_of(role)
    client.get("/admin/")
    with CaptureQueriesContext(connection) as statements:
        assert client.get("/admin/").status_code == 200
    assert len(statements) <= QUERIES_MAX
