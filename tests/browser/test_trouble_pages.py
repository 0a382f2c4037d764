"""What waits for somebody at the desk, in the browser: incidents, dead letters, refunds due, and the inbox."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from inventory.changes import submit
from inventory.models import StockAdjustment
from seckill.advice import ADVICE
from seckill.change_tables import ItemAdjustment, WindowChange
from seckill.incidents import Severity, open_incident, resolve_incident
from seckill.models import ItemBucket
from seckill.repair import reconcile_and_repair
from tests.browser.visitor import DESKTOP, PHONE, Visitor, shoot
from tests.seckill.test_replay import park_one
from tests.support.people import person
from tests.support.shop import Shop, make_buyers, open_sale

INBOX = reverse("desk_inbox")
INCIDENTS = reverse("admin:seckill_incident_changelist")
LETTERS = reverse("admin:seckill_deadletter_changelist")


@pytest.fixture
def operator() -> User:
    return User.objects.create_superuser("operator")


def trouble(shop: Shop) -> None:
    """Some incidents, one of them over, and two dead letters."""
    for kind, severity, detail in (
        ("phantom", Severity.CRITICAL, "Redis sold 3 units that MySQL does not have, first to order 1-ab-0123456789"),
        (
            "stock_unreachable",
            Severity.CRITICAL,
            "the stock Redis does not answer: nothing is sold of 2 buckets, from 1:0 on",
        ),
        (
            "change_stuck",
            Severity.WARNING,
            "an approved change, or a transfer between buckets, waits for over a minute to be applied",
        ),
        ("drift", Severity.WARNING, "item 5: +2"),
    ):
        open_incident(kind=kind, severity=severity, bucket=shop.bucket, detail=detail, now=timezone.now())
    resolve_incident(kind="drift", bucket=shop.bucket, now=timezone.now())
    park_one(shop, make_buyers(1)[0])


def ask(shop: Shop, by: User) -> ItemAdjustment:
    now = timezone.now()
    window = {"opens_at": shop.sale.opens_at, "closes_at": shop.sale.closes_at + timedelta(hours=1)}
    submit(change=WindowChange(sale=shop.sale, reason="the queue is long", **window), by=by, now=now)
    submit(change=StockAdjustment(sku=shop.item.sku, delta=-2, reason="two were broken"), by=by, now=now)
    wish = ItemAdjustment(item=shop.item, delta=10, counterpart="OUTSIDE", reason="a box was found")
    return submit(change=wish, by=by, now=now)


def test_an_approver_approves_in_the_inbox_and_sees_what_was_found(visitor: Visitor, operator: User) -> None:
    shop = open_sale(units=20)
    change = ask(shop, person("add_itemadjustment", "add_windowchange", "add_stockadjustment"))
    page = visitor.open(INBOX, buyer=operator, viewport=DESKTOP)
    card = page.locator(".inbox-card").filter(has_text="+10")
    card.get_by_placeholder("reason of the decision").fill("counted it myself")
    card.get_by_role("button", name="Approve").click()
    expect(page.locator("body")).to_contain_text(f"{change}: applied")
    assert ItemBucket.objects.get().allocated == 30
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    page.goto(f"{visitor.url}{INBOX}?list=all")
    expect(page.locator(".inbox-card").filter(has_text="+10")).to_contain_text("balanced")


def test_from_an_incident_to_the_decision(visitor: Visitor, operator: User) -> None:
    shop = open_sale(units=5)
    trouble(shop)
    page = visitor.open(INCIDENTS, buyer=operator, viewport=DESKTOP)
    row = page.locator("tr").filter(has_text=str(ADVICE["dead_letter"].what))
    row.get_by_role("link", name="Decide the dead letters").click()
    page.get_by_role("link", name="Replay or refuse").click()
    page.get_by_text("Refuse: the order number is closed").click()
    expect(page.get_by_label("Refuse", exact=False)).to_be_checked()
    page.get_by_label("Reason").fill("the buyer has called")
    page.get_by_role("button", name="Yes, do so").click()
    expect(page.locator("body")).to_contain_text("refused")


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_the_pages_look_right(visitor: Visitor, operator: User, language: str) -> None:
    """Pictures under var/screenshots."""
    shop = open_sale(units=20)
    trouble(shop)
    ask(shop, person("add_itemadjustment", "add_windowchange", "add_stockadjustment"))
    letter = reverse("admin:seckill_deadletter_decide", args=[park_one(shop, make_buyers(1)[0]).pk])
    pages = {"incidents": INCIDENTS, "letters": LETTERS, "letter": letter, "inbox": INBOX}
    for size, viewport in (("desktop", DESKTOP), ("phone", PHONE)):
        for name, address in pages.items():
            page = visitor.open(address, buyer=operator, viewport=viewport, language=language)
            shoot(page, f"{language[:2]}-{name}-{size}")
