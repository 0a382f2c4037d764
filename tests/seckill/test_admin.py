"""The operator's pages: what they show, what they do on request, and what nobody can edit there."""

from collections.abc import Sequence

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.db import models
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from accounts.admin import ExternalIdentityAdmin
from inventory.models import Stock, StockMovement
from orders.models import Order
from rest.desk import ReadOnlyDeskAdmin
from seckill.advice import advice_for
from seckill.alert_tables import Alert, AlertDelivery
from seckill.gate.connection import raw_client
from seckill.incidents import Severity, open_incident
from seckill.models import (
    Bucket,
    DeadLetter,
    FlashSale,
    Incident,
    ItemBucket,
    RebuildRun,
    ReconciliationRun,
    Repair,
    Reservation,
    SaleItem,
    SalePool,
    Ticket,
)
from seckill.repair import reconcile_and_repair
from tests.support.aliases import NOWHERE, point
from tests.support.desk import cells
from tests.support.shop import Shop, buy, make_sale, make_tickets, open_sale
from tests.support.state import dump

READ_ONLY = (
    Stock,
    StockMovement,
    Order,
    Reservation,
    Incident,
    DeadLetter,
    ReconciliationRun,
    Repair,
    Alert,
    AlertDelivery,
    RebuildRun,
)
# Pages that come from elsewhere, with rules of their own.
LIBRARIES = {"axes", "django_celery_beat"}
REGISTERED = sorted(admin.site._registry, key=lambda model: model._meta.label)


@pytest.fixture
def operator() -> Client:
    """The browser of somebody who may do everything."""
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    return client


def staff(*codenames: str) -> Client:
    """The browser of an employee with some permissions."""
    user = User.objects.create_user("employee", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


def page(model: type[models.Model], action: str, *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{action}", args=args)


def act(client: Client, action: str, items: Sequence[SaleItem]) -> list[tuple[str, str]]:
    """Run an action on items; return the messages the operator sees, each with its kind."""
    data = {"action": action, "_selected_action": [item.pk for item in items], "reason": "as agreed"}
    response = client.post(page(SaleItem, "changelist"), data, follow=True)
    assert response.status_code == 200
    return [(message.level_tag, message.message) for message in response.context["messages"]]


def one_of_each() -> Shop:
    """A preheated sale with an order, a dead letter, incidents, a reconciliation and a repair."""
    shop = open_sale()
    buy(make_tickets(shop, 1)[0])
    raw_client().xadd(shop.bucket.keys[4], {"order": "x"})
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", 1)
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    AlertDelivery.objects.create(alert=Alert.objects.all()[0], channel="mail", due_at=timezone.now())
    RebuildRun.objects.create(pool=shop.pool, bucket_no=0, is_automatic=True, created_at=timezone.now())
    return shop


@pytest.mark.slow
def test_every_page_opens(operator: Client) -> None:
    one_of_each()
    for model in REGISTERED:
        assert operator.get(page(model, "changelist")).status_code == 200, model
        assert operator.get(page(model, "changelist"), {"q": "x"}).status_code in {200, 302}, model
        may_add = not isinstance(admin.site._registry[model], ReadOnlyDeskAdmin | ExternalIdentityAdmin)
        if model._meta.app_label not in LIBRARIES:
            assert operator.get(page(model, "add")).status_code == (200 if may_add else 403), model
        for row in model._default_manager.all()[:1]:
            assert operator.get(page(model, "change", row.pk)).status_code == 200, model


def test_every_table_of_the_shop_has_its_page_but_the_hot_ones() -> None:
    """A form's save() writes every column: Bucket and ItemBucket are editable nowhere, not even as rows of a page."""
    inlines = {inline.model for page_admin in admin.site._registry.values() for inline in page_admin.inlines}
    assert {Bucket, ItemBucket, Ticket} & (inlines | set(REGISTERED)) == set()
    assert {FlashSale, SalePool, SaleItem, *READ_ONLY} <= set(REGISTERED)


@pytest.mark.parametrize("model", READ_ONLY)
def test_what_services_write_nobody_edits(operator: Client, model: type[models.Model]) -> None:
    """CASES 7: neither stock nor ledger, neither orders nor reservations change by a form."""
    one_of_each()
    row = model._default_manager.all()[0]
    before = list(model._default_manager.values())
    assert operator.post(page(model, "add"), {}).status_code == 403
    assert operator.post(page(model, "change", row.pk), {}).status_code == 403
    assert operator.post(page(model, "delete", row.pk), {"post": "yes", "why": "old"}).status_code == 403
    operator.post(
        page(model, "changelist"),
        {"action": "delete_selected", "_selected_action": row.pk, "post": "yes", "why": "old"},
    )
    assert list(model._default_manager.values()) == before


def test_items_show_both_stores_side_by_side(operator: Client) -> None:
    shop = open_sale(units=10, limit=3)
    buy(make_tickets(shop, 1)[0], 3)
    html = operator.get(page(SaleItem, "changelist")).content.decode()
    assert cells(html, "in_mysql") == ["0 / 10"]
    assert cells(html, "in_redis") == ["7 + 3"]
    assert cells(html, "phase") == ["live"]
    raw_client().delete(*shop.bucket.keys)
    assert cells(operator.get(page(SaleItem, "changelist")).content.decode(), "in_redis") == ["–"]


def test_preheat_on_request(operator: Client) -> None:
    shop = make_sale(units=10, items=2)
    assert act(operator, "preheat", shop.items) == [("success", f"sale {shop.sale.pk}: done")]
    assert FlashSale.objects.get().state == "PREHEATED"
    assert [row.allocated for row in ItemBucket.objects.all()] == [10, 10]
    assert "-" in buy(make_tickets(shop, 1)[0])


def test_preheat_again_is_refused_in_words(operator: Client) -> None:
    """CASES 6: pressed twice, or in mid-sale, it says why not and changes nothing; the other sale gets its turn."""
    running, new = open_sale(), make_sale()
    buy(make_tickets(running, 1)[0])
    before = dump(running.bucket)
    assert act(operator, "preheat", [running.item, new.item]) == [
        ("error", f"sale {running.sale.pk}: the sale is preheated already; its balance is not touched again"),
        ("success", f"sale {new.sale.pk}: done"),
    ]
    assert dump(running.bucket) == before


def test_preheat_without_the_goods_is_refused_in_words(operator: Client) -> None:
    shop = make_sale(units=10)
    SaleItem.objects.update(units=11)
    words = f"sale {shop.sale.pk}: {shop.item.sku.code} needs 11 units, the warehouse has 10"
    assert act(operator, "preheat", shop.items) == [("error", words)]
    assert FlashSale.objects.get().state == "DRAFT"


def test_pause_and_resume_on_request(operator: Client) -> None:
    shop = open_sale(items=2)
    one, other = shop.items
    first, second, third = make_tickets(shop, 1, item=one) + make_tickets(shop, 2, item=other)
    assert act(operator, "pause", [one]) == [("success", f"{one}: done")]
    assert buy(first) == "Paused"
    assert "-" in buy(second)
    assert act(operator, "resume", [one]) == [("success", f"{one}: done")]
    assert "-" in buy(first)
    assert "-" in buy(third)


def test_a_redis_that_is_away_is_told_in_words_and_the_pause_is_kept(operator: Client, settings: Settings) -> None:
    shop = open_sale()
    point(settings, "stock", NOWHERE)
    ((kind, words),) = act(operator, "pause", shop.items)
    assert kind == "error"
    assert words.startswith(f"{shop.item}: pause: ")
    assert SaleItem.objects.get().is_paused


def test_an_incident_of_the_system_is_shown(operator: Client) -> None:
    shop = open_sale()
    open_incident(
        kind="phantom", severity=Severity.CRITICAL, bucket=shop.bucket, detail="Redis sold 1 unit", now=timezone.now()
    )
    assert str(advice_for("phantom").what) in operator.get(page(Incident, "changelist")).content.decode()
    html = operator.get(page(Incident, "change", Incident.objects.get().pk)).content.decode()
    assert str(advice_for("phantom").did) in html
    assert str(advice_for("phantom").can) in html


def test_whoever_has_no_permission_is_refused() -> None:
    shop = make_sale()
    anonymous = Client().get(page(SaleItem, "changelist"))
    assert anonymous.status_code == 302
    assert anonymous["Location"] == f"/admin/login/?next={page(SaleItem, 'changelist')}"
    nobody = staff()
    for model in REGISTERED:
        for action in ("changelist", "add"):
            assert nobody.get(page(model, action)).status_code == 403, model
    assert nobody.post(page(SaleItem, "changelist"), request_of("preheat", shop)).status_code == 403
    assert FlashSale.objects.get().state == "DRAFT"


def request_of(action: str, shop: Shop) -> dict[str, object]:
    return {"action": action, "_selected_action": [shop.item.pk], "reason": "as agreed"}


@pytest.mark.parametrize("action", ["preheat", "pause", "resume"])
def test_who_may_only_look_cannot_act(action: str) -> None:
    shop = make_sale()
    SaleItem.objects.update(is_paused=action == "resume")
    viewer = staff("view_saleitem")
    before = SaleItem.objects.values().get()
    assert viewer.post(page(SaleItem, "changelist"), request_of(action, shop)).status_code == 200
    assert SaleItem.objects.values().get() == before
    assert FlashSale.objects.get().state == "DRAFT"
    assert not Bucket.objects.exists()
