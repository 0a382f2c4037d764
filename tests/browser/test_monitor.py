"""The operator's live pages in the browser: numbers that move, charts, and a shop that does not answer."""

import math
from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from seckill.incidents import Severity, open_incident
from seckill.models import SaleItem
from seckill.pausing import pause_item
from seckill.repair import reconcile_and_repair
from seckill.sample_tables import ItemSample
from seckill.tally import tally
from tests.browser.steps import settle
from tests.browser.test_everybody import overflow
from tests.browser.visitor import DESKTOP, PHONE, Visitor, shoot
from tests.support.samples import sample
from tests.support.shop import Shop, buy, make_tickets, open_sale


@pytest.fixture
def operator() -> User:
    return User.objects.create_superuser("operator")


def monitor(shop: Shop) -> str:
    return f"/admin/monitor/{shop.sale.pk}/"


def sell(shop: Shop, number: int) -> None:
    for ticket in make_tickets(shop, number):
        buy(ticket)
    tally.flush()


def draw_an_hour(shop: Shop) -> None:
    """Samples of an hour with two bursts, so that there is something to look at."""
    now = timezone.now().replace(microsecond=0)
    accepted = sold_out = waited = 0
    rows = []
    for second in range(0, 3_590, 5):
        burst = math.exp(-(((second - 1_800) / 180) ** 2)) + 0.5 * math.exp(-(((second - 2_900) / 90) ** 2))
        accepted += round(40 * burst)
        sold_out += round(900 * burst * (second > 1_850))
        waited += round(40 * burst * (80 + 400 * burst))
        rows.append(
            ItemSample(
                item_id=shop.item.pk,
                at=now - timedelta(seconds=3_595 - second),
                left=max(0, 2_000 - accepted),
                queued=round(60 * burst),
                oldest_ms=round(700 * burst),
                accepted=accepted,
                sold_out=sold_out,
                settled=accepted,
                waited_ms=waited,
            )
        )
    ItemSample.objects.bulk_create(rows)


def serious(page: Page) -> list[str]:
    """What axe-core finds in what is ours of the page that would keep somebody out."""
    found = Axe().run(page, context=".monitor").response["violations"]
    return [
        f"{violation['id']}: {node['html']}"
        for violation in found
        if violation["impact"] in {"serious", "critical"}
        for node in violation["nodes"]
    ]


def test_an_operator_watches_a_sale_sell_out(visitor: Visitor, operator: User) -> None:
    """Numbers move by themselves: reserved, waiting for MySQL, sold, sold out."""
    shop = open_sale(units=5)
    sample(now=timezone.now() - timedelta(seconds=10))
    page = visitor.open(monitor(shop), buyer=operator, viewport=DESKTOP)
    left = page.locator('.tile [data-sum="left"].number')
    expect(left).to_have_text("5")
    expect(page.locator("[data-freshness]")).to_have_text("Live")
    sell(shop, 7)
    expect(left).to_have_text("0")
    expect(page.locator('[data-sum="queued"]')).to_have_text("5")
    expect(page.locator('[data-sum="sold-out"]')).to_have_text("2 in all")
    settle(shop)
    expect(page.locator('[data-sum="sold"]')).to_have_text("5")
    expect(page.locator('[data-item] [data-field="PENDING_PAYMENT"]')).to_have_text("5")
    pause_item(item_id=shop.item.pk)
    expect(page.locator('[data-field="paused"]')).to_be_visible()
    now = timezone.now()
    open_incident(kind="phantom", severity=Severity.CRITICAL, bucket=shop.bucket, detail="one unit", now=now)
    expect(page.locator("[data-incident-list] li")).to_contain_text("one unit")
    page.locator("[data-incident-list] a").click()
    expect(page.locator("body")).to_contain_text("phantom")


def test_a_shop_that_does_not_answer_is_told_and_asked_less_often(visitor: Visitor, operator: User) -> None:
    shop = open_sale()
    page = visitor.open(monitor(shop), buyer=operator, viewport=DESKTOP)
    expect(page.locator("[data-freshness]")).to_have_text("Live")
    asked: list[str] = []

    def fail(route: Route) -> None:
        asked.append(route.request.url)
        route.abort()

    page.route("**/now.json", fail)
    expect(page.locator("[data-freshness]")).to_contain_text("The shop does not answer")
    before = len(asked)
    assert before <= 4
    page.unroute("**/now.json")
    expect(page.locator("[data-freshness]")).to_have_text("Live", timeout=20_000)


def test_a_page_nobody_looks_at_asks_nothing(visitor: Visitor, operator: User) -> None:
    shop = open_sale()
    page = visitor.open(monitor(shop), buyer=operator, viewport=DESKTOP)
    expect(page.locator("[data-freshness]")).to_have_text("Live")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })")
    page.wait_for_timeout(2_500)  # what was on its way
    asked.clear()
    page.wait_for_timeout(4_500)
    assert asked == []
    page.evaluate("delete document.visibilityState; document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_timeout(500)
    assert [url.rpartition("/")[2] for url in asked if "now.json" in url] == ["now.json"]


def test_who_was_logged_out_is_told(visitor: Visitor, operator: User) -> None:
    shop = open_sale()
    page = visitor.open(monitor(shop), buyer=operator, viewport=DESKTOP)
    expect(page.locator("[data-freshness]")).to_have_text("Live")
    page.context.clear_cookies()
    expect(page.locator("[data-freshness]")).to_contain_text("not logged in any more")


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_the_pages_look_right(visitor: Visitor, operator: User, language: str) -> None:
    """Nothing wider than a phone, no serious finding of axe-core, charts drawn; pictures under var/screenshots."""
    shop = open_sale(units=400, items=3)
    draw_an_hour(shop)
    SaleItem.objects.filter(pk=shop.items[2].pk).update(is_paused=True)
    sell(shop, 120)
    settle(shop)
    sell(shop, 30)
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    for name, viewport in (("desktop", DESKTOP), ("phone", PHONE)):
        page = visitor.open(monitor(shop), buyer=operator, viewport=viewport, language=language)
        expect(page.locator(".charts canvas")).to_have_count(5)
        expect(page.locator(".charts figcaption").first).to_contain_text("8.0/")
        shoot(page, f"{language[:2]}-monitor-{name}")
        assert (overflow(page), serious(page)) == (0, [])
        page.goto(f"{visitor.url}/admin/audit/items/{shop.item.pk}/")
        shoot(page, f"{language[:2]}-audit-{name}")
        assert (overflow(page), serious(page)) == (0, [])
        page.goto(f"{visitor.url}/admin/monitor/")
        shoot(page, f"{language[:2]}-monitor-list-{name}")
        assert (overflow(page), serious(page)) == (0, [])
