"""Every page of the desk in the browser: nothing its policy blocks, nothing wider than a phone, a picture of each."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page

from inventory.changes import submit
from seckill.change_tables import ItemAdjustment
from seckill.incidents import Severity, open_incident
from seckill.repair import reconcile_and_repair
from tests.browser.steps import settle
from tests.browser.test_everybody import overflow
from tests.browser.visitor import DESKTOP, PHONE, Visitor, shoot
from tests.support.roles import in_role
from tests.support.shop import buy, make_tickets, open_sale

pytestmark = pytest.mark.slow

VIEWPORTS = {"desktop": DESKTOP, "phone": {**PHONE, "width": 390}}


@pytest.fixture
def owner() -> User:
    return User.objects.create_superuser("owner")


def fill_the_desk() -> None:
    """A sale with orders, an incident, a request that waits."""
    shop = open_sale(units=40, items=2)
    for ticket in make_tickets(shop, 4):
        buy(ticket)
    settle(shop)
    open_incident(kind="phantom", severity=Severity.CRITICAL, bucket=shop.bucket, detail="1 unit", now=timezone.now())
    change = ItemAdjustment(item=shop.item, delta=1, reason="a box was found")
    submit(change=change, by=in_role("operator"), now=timezone.now())
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)


def paths(owner: User) -> dict[str, str]:
    """Each page of the desk by a name for its picture: lists, a form to add, a row."""
    request: Any = type("Request", (), {"user": owner, "GET": {}, "POST": {}})()
    found = {"index": "/admin/"}
    for model, page in admin.site._registry.items():
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        label = model._meta.label_lower
        found[f"{label}-list"] = reverse(f"{name}_changelist")
        if page.has_add_permission(request):
            found[f"{label}-add"] = reverse(f"{name}_add")
        for row in model._default_manager.order_by("-pk")[:1]:
            found[f"{label}-row"] = reverse(f"{name}_change", args=[row.pk])
    return found


@pytest.mark.parametrize("size", VIEWPORTS)
def test_every_page_of_the_desk(visitor: Visitor, owner: User, size: str) -> None:
    fill_the_desk()
    page: Page = visitor.open("/admin/", buyer=owner, viewport=VIEWPORTS[size])
    wide = {}
    for name, path in paths(owner).items():
        page.goto(visitor.url + path)
        shoot(page, f"desk-{name}-{size}")
        if pixels := overflow(page):
            wide[name] = pixels
    assert wide == {}


def test_the_desk_in_chinese(visitor: Visitor, owner: User) -> None:
    fill_the_desk()
    page = visitor.open("/admin/", buyer=owner, viewport=DESKTOP, language="zh-CN")
    shoot(page, "desk-index-zh")
    assert page.get_by_role("link", name="操作日志").count() == 1


def test_the_log_in_of_the_desk(visitor: Visitor) -> None:
    page = visitor.open("/admin/login/", viewport=DESKTOP)
    shoot(page, "desk-login")
    assert overflow(page) == 0
