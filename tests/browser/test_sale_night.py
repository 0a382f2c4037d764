"""A night at the desk: a sale made, preheated and watched until it is sold out, ten more approved while it runs.

An operator, an approver and an auditor, each with the rights of the role and no more; buyers come over HTTP meanwhile.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from itertools import groupby
from typing import Any
from urllib.parse import urlparse

from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from actions.models import ActionEntry
from inventory.models import Product, Sku
from inventory.services import receive
from seckill.models import FlashSale, SaleItem, SalePool
from seckill.repair import reconcile_and_repair
from seckill.sampling import take_samples
from seckill.tally import tally
from tests.browser.steps import settle
from tests.browser.visitor import DESKTOP, Visitor, shoot
from tests.support.api import session_of
from tests.support.roles import in_role
from tests.support.shop import Shop, make_tickets
from tests.support.state import assert_settled_state
from tests.support.web import Browser

UNITS, MORE, ON_HAND = 20, 10, 40
TICKETS = 300
BETWEEN_SECONDS = 0.2


class Rush:
    """Buyers who come one after the other, and a worker who writes down what they reserve."""

    def __init__(self, *, port: int, shop: Shop) -> None:
        self.answers: list[str] = []
        self._is_over = threading.Event()
        self._shop, self._port, self._tickets = shop, port, make_tickets(shop, TICKETS)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> None:
        """Let them go home."""
        self._is_over.set()
        self._thread.join()

    def story(self) -> list[tuple[str, int]]:
        """What was answered, and how many times in a row."""
        codes = ["accepted" if "-" in answer else answer for answer in self.answers]
        return [(code, len(list(times))) for code, times in groupby(codes)]

    def _run(self) -> None:
        browser = Browser(port=self._port)
        try:
            for ticket in self._tickets:
                self.answers.append(browser.buy(ticket))
                settle(self._shop)
                take_samples(clock=timezone.now)
                tally.flush()
                if self._is_over.wait(timeout=BETWEEN_SECONDS):
                    break
        finally:
            browser.close()
            connections.close_all()


@contextmanager
def rush_at(visitor: Visitor, shop: Shop) -> Iterator[Rush]:
    """Buyers for the length of the block, however it ends."""
    rush = Rush(port=urlparse(visitor.url).port or 0, shop=shop)
    try:
        yield rush
    finally:
        rush.end()


def stock() -> None:
    sku = Sku.objects.create(
        product=Product.objects.create(name="飞天茅台 53°"), code="MT-500", name="500 ml", list_price=Decimal("2999.00")
    )
    receive(sku_id=sku.pk, units=ON_HAND, reference="receipt", now=timezone.now())


def make_and_preheat(page: Page) -> Shop:
    """The form of a new sale, the preview, the yes."""
    now = timezone.localtime()
    page.locator("[name=name]").fill("午夜 sale")
    page.locator("[name=opens_at]").fill((now - timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M"))
    page.locator("[name=closes_at]").fill((now + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M"))
    for name, value in (("sku", "MT-500"), ("price", "1999.00"), ("units", str(UNITS))):
        page.locator(f"[name=items-0-{name}]").fill(value)
    page.get_by_role("button", name="Check and save as a draft").click()
    page.get_by_role("link", name="Preheat").click()
    expect(page.locator(".sale-desk")).to_contain_text(f"{UNITS} units go from the warehouse to this sale")
    page.locator("[name=reason]").fill("checked with the buyer")
    page.get_by_role("button", name="Preheat it so").click()
    expect(page.locator(".sale-desk .badge").first).to_have_text("live")
    return Shop(sale=FlashSale.objects.get(), pool=SalePool.objects.get(), items=[SaleItem.objects.get()])


def ask_for_more(visitor: Visitor, operator: User) -> None:
    """The operator asks, and may not decide on it."""
    page = visitor.open(reverse("desk_inbox"), buyer=operator, viewport=DESKTOP)
    page.locator(".inbox-asks a").filter(has_text="units on sale").first.click()
    page.locator("[name=item]").select_option(index=1)
    page.locator("[name=delta]").fill(str(MORE))
    page.locator("[name=reason]").fill("a pallet was found")
    page.get_by_role("button", name="Save", exact=True).click()
    card = page.locator(".inbox-card").filter(has_text=f"+{MORE}")
    expect(card).to_contain_text("Somebody else decides on your own request.")
    shoot(page, "night-operator-asked")


def approve(visitor: Visitor) -> None:
    page = visitor.open(reverse("desk_inbox"), buyer=in_role("approver"), viewport=DESKTOP)
    card = page.locator(".inbox-card").filter(has_text=f"+{MORE}")
    card.get_by_placeholder("reason of the decision").fill("I saw the pallet")
    card.get_by_role("button", name="Approve").click()
    expect(page.locator("body")).to_contain_text("applied")
    shoot(page, "night-approver-approved")


def test_a_night_at_the_desk(visitor: Visitor) -> None:
    stock()
    operator = in_role("operator")
    page = visitor.open(reverse("desk_sale_new"), buyer=operator, viewport=DESKTOP)
    shop = make_and_preheat(page)
    page.get_by_role("link", name="Live monitor").last.click()
    left, sold = page.locator('.tile [data-sum="left"].number'), page.locator('[data-sum="sold"]')
    expect(left).to_have_text(str(UNITS))
    page.evaluate("window.isThisPage = true")
    with rush_at(visitor, shop) as rush:
        expect(left).not_to_have_text(str(UNITS))
        assert left.text_content() != "0"
        expect(left).to_have_text("0")
        expect(sold).to_have_text(str(UNITS))
        expect(page.locator('[data-sum="sold-out"]')).not_to_have_text("0 in all")
        shoot(page, "night-sold-out")
        ask_for_more(visitor, operator)
        assert rush.story()[0] == ("accepted", UNITS)
        approve(visitor)
        expect(sold).to_have_text(str(UNITS + MORE))
        expect(left).to_have_text("0")
        told = len(rush.answers)
        shoot(page, "night-ten-more-sold")
        while len(rush.answers) == told:
            page.wait_for_timeout(50)
    assert page.evaluate("window.isThisPage")
    codes = [code for code, _times in rush.story()]
    assert [times for code, times in rush.story() if code == "accepted"] == [UNITS, MORE]
    assert codes == ["accepted", "sold_out", "accepted", "sold_out"]
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    shop.item.units += MORE
    assert_settled_state(shop, sold=UNITS + MORE)
    look_on(visitor, shop)


def look_on(visitor: Visitor, shop: Shop) -> None:
    """The auditor sees every page there is, and the shop is afterwards what it was."""
    auditor = in_role("auditor")
    client, before = session_of(auditor), everything()
    for path in readable(shop):
        assert client.get(path).status_code == 200, path
    for path in writable(shop):
        wish = {"reason": "because", "why": "because", "post": "yes", "decision": "approve"}
        assert client.post(path, wish).status_code == 403, path
    try_actions_of_lists(client)
    assert everything() == before
    for name, path in (
        ("sale", reverse("desk_sale", args=[shop.sale.pk])),
        ("monitor", reverse("desk_monitor_sale", args=[shop.sale.pk])),
        ("audit", reverse("desk_audit_item", args=[shop.item.pk])),
        ("inbox", f"{reverse('desk_inbox')}?list=all"),
        ("log", reverse("admin:actions_actionentry_changelist")),
    ):
        page = visitor.open(path, buyer=auditor, viewport=DESKTOP)
        expect(page.locator("main, #content, body").first).to_be_visible()
        if name == "sale":
            expect(page.locator(".numbers").first).to_contain_text(f"{UNITS + MORE} planned: {UNITS}")
        if name in {"sale", "monitor", "audit", "inbox"}:
            expect(page.locator(":is(.monitor, .inbox) form[method=post]")).to_have_count(0)
        shoot(page, f"night-auditor-{name}")
    assert ActionEntry.objects.filter(what="seckill.preheat", stage="DONE").count() == 1
    assert not ActionEntry.objects.filter(who=auditor.get_username()).exists()


def rows() -> Iterator[tuple[str, Any]]:
    """A row of each table that has a page and any rows."""
    for model in admin.site._registry:
        row = model._default_manager.order_by("-pk").first()
        if row is not None:
            yield f"admin:{model._meta.app_label}_{model._meta.model_name}", row.pk


def readable(shop: Shop) -> list[str]:
    lists = [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist") for model in admin.site._registry
    ]
    others = [reverse(name) for name in ("admin:index", "desk_monitor", "desk_inbox", "desk_explain")]
    of_sale = [reverse(name, args=[shop.sale.pk]) for name in ("desk_sale", "desk_monitor_sale", "desk_monitor_now")]
    of_item = [reverse("desk_audit_item", args=[shop.item.pk]), reverse("desk_audit_sku", args=[shop.item.sku_id])]
    return lists + others + of_sale + of_item + [reverse(f"{name}_change", args=[key]) for name, key in rows()]


def writable(shop: Shop) -> list[str]:
    sale, item = shop.sale.pk, shop.item.pk
    actions = ("schedule", "unschedule", "pause", "resume", "end", "withdraw")
    pages = [reverse(name, args=[sale]) for name in ("desk_sale_preheat", "desk_sale_import", "desk_sale_window")]
    pages += [reverse("desk_sale_action", args=[sale, name]) for name in actions]
    pages += [reverse("desk_item_action", args=[sale, item, name]) for name in ("pause", "resume")]
    pages += [reverse("desk_sale_new"), reverse("desk_audit_reconcile", args=[item])]
    rights = [(name, key) for name, key in rows()]
    pages += [reverse(f"{name}_{verb}", args=[key]) for name, key in rights for verb in ("change", "delete")]
    return pages + [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_add") for model in admin.site._registry
    ]


def try_actions_of_lists(client: Client) -> None:
    """Post the actions of lists too, which are no addresses of their own; they are not offered, so nothing is done."""
    for name, key in rows():
        for action in ("delete_selected", "preheat", "withdraw", "pause", "resume", "refund_in_full", "honour"):
            data = {"action": action, "_selected_action": [key], "post": "yes", "why": "just so", "reason": "just so"}
            assert client.post(reverse(f"{name}_changelist"), data).status_code < 500


def everything() -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables that the desk has pages for."""
    return {
        model._meta.label_lower: list(model._default_manager.order_by("pk").values()) for model in admin.site._registry
    }
