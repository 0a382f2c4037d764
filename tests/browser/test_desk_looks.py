"""The pages somebody works on at night, with something in them: dark, on a phone, in Chinese; a picture of each."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page

from orders.models import Honour
from seckill.models import SaleItem
from seckill.repair import reconcile_and_repair
from seckill.sampling import take_samples
from tests.browser.steps import settle
from tests.browser.test_everybody import overflow
from tests.browser.test_trouble_pages import ask, trouble
from tests.browser.visitor import DESKTOP, PHONE, Visitor, shoot
from tests.seckill.test_replay import park_one
from tests.support.payments import paid_order, unwelcome_payment
from tests.support.people import person
from tests.support.rows import NOW
from tests.support.shop import Shop, buy, make_buyers, make_sale, make_tickets, open_sale

LOOKS: dict[str, dict[str, Any]] = {
    "dark": {"viewport": DESKTOP, "color_scheme": "dark"},
    "phone-dark": {"viewport": PHONE, "color_scheme": "dark"},
    "zh": {"viewport": DESKTOP, "language": "zh-CN"},
    "phone-zh": {"viewport": PHONE, "language": "zh-CN"},
}


def shop_at_night() -> Shop:
    """A sale that runs, with orders, troubles, requests, and money that is due."""
    shop = open_sale(units=40, items=2)
    for ticket in make_tickets(shop, 4):
        buy(ticket)
    settle(shop)
    take_samples(clock=timezone.now)
    trouble(shop)
    ask(shop, person("add_itemadjustment", "add_windowchange", "add_stockadjustment"))
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    payment = unwelcome_payment()
    Honour.objects.create(payment=payment, state="REFUSED", reason="sold_out", created_at=NOW, updated_at=NOW)
    return shop


def pages_of(shop: Shop) -> dict[str, str]:
    """Where somebody works, by a name for its picture."""
    draft, sale, item = make_sale(items=2), shop.sale.pk, shop.item.pk
    due, (_order, paid) = unwelcome_payment(), paid_order()
    letter = park_one(shop, make_buyers(1)[0])
    desk = {
        "monitor": reverse("desk_monitor_sale", args=[sale]),
        "sale": reverse("desk_sale", args=[sale]),
        "draft": reverse("desk_sale", args=[draft.sale.pk]),
        "preheat": reverse("desk_sale_preheat", args=[draft.sale.pk]),
        "import": reverse("desk_sale_import", args=[draft.sale.pk]),
        "new": reverse("desk_sale_new"),
        "end": reverse("desk_sale_action", args=[sale, "end"]),
        "window": reverse("desk_sale_window", args=[sale]),
        "audit-item": reverse("desk_audit_item", args=[item]),
        "audit-sku": reverse("desk_audit_sku", args=[shop.item.sku_id]),
        "explain": f"{reverse('desk_explain')}?q={letter.fields['buyer']}",
        "inbox": f"{reverse('desk_inbox')}?list=all",
        "incidents": reverse("admin:seckill_incident_changelist"),
        "letters": reverse("admin:seckill_deadletter_changelist"),
        "letter": reverse("admin:seckill_deadletter_decide", args=[letter.pk]),
        "refunds-due": f"{reverse('admin:orders_payment_changelist')}?state__exact=REFUND_DUE",
        "refund-due": reverse("admin:orders_payment_refund", args=[due.pk]),
        "refund-paid": reverse("admin:orders_payment_refund", args=[paid.pk]),
        "item-edit": reverse("admin:seckill_saleitem_change", args=[draft.item.pk]),
        "item-delete": reverse("admin:seckill_saleitem_delete", args=[draft.item.pk]),
        "password": reverse("admin:auth_user_password_change", args=[due.order.buyer_id if due.order else 1]),
    }
    return {"index": "/admin/", **desk}


def ask_why(page: Page, visitor: Visitor) -> None:
    """The page that asks for the reason of an action of a list."""
    page.goto(visitor.url + reverse("admin:seckill_saleitem_changelist"))
    page.locator("[name=_selected_action]").first.check()
    page.locator("select[name=action]").select_option("pause")
    page.locator("button[name=index]").click()
    page.locator("#id_reason").wait_for()


@pytest.mark.parametrize("look", LOOKS)
def test_the_pages_of_a_night(visitor: Visitor, look: str) -> None:
    shop = shop_at_night()
    owner = User.objects.create_superuser("owner")
    page = visitor.open("/admin/", buyer=owner, **LOOKS[look])
    wide = {}
    for name, path in pages_of(shop).items():
        answer = page.goto(visitor.url + path)
        assert answer is not None
        assert answer.status == 200, path
        page.wait_for_timeout(150)
        shoot(page, f"look-{name}-{look}")
        if pixels := overflow(page):
            wide[name] = pixels
    ask_why(page, visitor)
    shoot(page, f"look-why-{look}")
    assert wide == {}
    assert not SaleItem.objects.filter(is_paused=True).exists()
