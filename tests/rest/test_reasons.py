"""Sensitive actions of the desk ask for a reason: without one nothing is done, with one the action log keeps it."""

import json
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.db import models
from django.test import Client, RequestFactory
from django.urls import reverse

from accounts.models import Block
from actions.models import ActionEntry
from inventory.models import Product
from orders.models import Honour, Refund
from seckill.alert_tables import Alert, AlertDelivery
from seckill.incidents import Severity, open_incident
from seckill.models import FlashSale, SaleItem
from tests.support.api import session_of
from tests.support.forms import fields_of
from tests.support.payments import unwelcome_payment
from tests.support.rows import NOW
from tests.support.shop import make_sale, open_sale


@pytest.fixture
def operator() -> Client:
    return session_of(User.objects.create_superuser("operator"))


def page(row: models.Model, action: str) -> str:
    args = [] if action in {"changelist", "add"} else [row.pk]
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_{action}", args=args)


def reasons() -> set[str]:
    return {entry.reason for entry in ActionEntry.objects.all()}


def test_every_action_of_every_list_asks_for_a_reason() -> None:
    request: Any = RequestFactory().get("/")
    request.user = User.objects.create_superuser("owner")
    pages: dict[Any, Any] = admin.site._registry
    actions = {
        f"{model._meta.label_lower}.{name}": getattr(action, "asks_reason", False)
        for model, desk_page in pages.items()
        for name, (action, _name, _description) in desk_page.get_actions(request).items()
    }
    assert {name for name, asks in actions.items() if not asks} == set()
    assert "seckill.saleitem.pause" in actions
    assert "inventory.product.delete_selected" in actions


@pytest.mark.parametrize("action", ["preheat", "withdraw", "pause", "resume"])
def test_no_reason_no_action_on_items(operator: Client, action: str) -> None:
    shop = make_sale() if action == "preheat" else open_sale()
    SaleItem.objects.update(is_paused=action == "resume")
    before = (FlashSale.objects.values().get(), SaleItem.objects.values().get())
    for reason in ("", "  ", "ab"):
        wish = {"action": action, "_selected_action": [shop.item.pk], "reason": reason}
        answer = operator.post(page(shop.item, "changelist"), wish)
        assert (answer.status_code, str(shop.item) in answer.content.decode()) == (200, True)
    assert (FlashSale.objects.values().get(), SaleItem.objects.values().get()) == before
    assert not ActionEntry.objects.exists()
    operator.post(page(shop.item, "changelist"), fields_of(answer.content) | {"reason": "as agreed"})
    assert (FlashSale.objects.values().get(), SaleItem.objects.values().get()) != before
    assert reasons() == {"as agreed"}


@pytest.mark.parametrize("action", ["refund_in_full", "honour"])
def test_no_reason_no_money(operator: Client, action: str) -> None:
    payment = unwelcome_payment()
    wish = {"action": action, "_selected_action": [payment.pk]}
    assert operator.post(page(payment, "changelist"), wish).status_code == 200
    assert (Refund.objects.count(), Honour.objects.count(), ActionEntry.objects.count()) == (0, 0, 0)
    operator.post(page(payment, "changelist"), wish | {"reason": "he has asked"})
    assert Refund.objects.count() + Honour.objects.count() == 1
    assert reasons() == {"he has asked"}


def test_no_reason_no_alert_again(operator: Client) -> None:
    bucket = open_sale().bucket
    open_incident(kind="phantom", severity=Severity.CRITICAL, bucket=bucket, detail="", now=NOW)
    alert = Alert.objects.all()[0]
    row = AlertDelivery.objects.create(alert=alert, channel="mail", state="GIVEN_UP", due_at=NOW)
    wish = {"action": "send_again", "_selected_action": [row.pk]}
    assert operator.post(page(row, "changelist"), wish).status_code == 200
    assert (AlertDelivery.objects.get().state, ActionEntry.objects.count()) == ("GIVEN_UP", 0)
    operator.post(page(row, "changelist"), wish | {"reason": "the mail server is back"})
    assert (AlertDelivery.objects.get().state, reasons()) == ("DUE", {"the mail server is back"})


def rows_to_edit() -> list[models.Model]:
    shop = make_sale()
    sku = shop.item.sku
    return [shop.sale, shop.pool, shop.item, sku, sku.product, User.objects.create_user("person"), Group(name="some")]


@pytest.mark.parametrize("number", range(7))
def test_no_reason_no_edit(operator: Client, number: int) -> None:
    row = rows_to_edit()[number]
    row.save()
    if isinstance(row, Group):
        row.permissions.add(Permission.objects.all()[0])
    form = fields_of(operator.get(page(row, "change")).content)
    change = {"limit_per_buyer": "3"} if "limit_per_buyer" in form else {"units": "7", "name": "n", "username": "n"}
    change = {name: value for name, value in change.items() if name in form}
    before = type(row)._default_manager.filter(pk=row.pk).values().get()
    for why in ("", " ", "ab"):
        answer = operator.post(page(row, "change"), form | change | {"why": why})
        assert list(answer.context["adminform"].form.errors) == ["why"]
    assert type(row)._default_manager.filter(pk=row.pk).values().get() == before
    assert not ActionEntry.objects.exists()
    assert operator.post(page(row, "change"), form | change | {"why": "a slip of the pen"}).status_code == 302
    after = type(row)._default_manager.filter(pk=row.pk).values().get()
    assert {name: str(after[name]) for name in change} == change
    assert reasons() == {"a slip of the pen"}
    # The form of an account shows whole seconds.
    assert set(ActionEntry.objects.get().after) - {"date_joined"} == set(change)


def test_no_reason_no_deletion(operator: Client) -> None:
    product = Product.objects.create(name="old", created_at=NOW)
    shown = operator.get(page(product, "delete"))
    assert fields_of(shown.content)["why"] == ""
    answer = operator.post(page(product, "delete"), fields_of(shown.content))
    assert (answer.status_code, answer["Location"]) == (302, page(product, "delete"))
    chosen = {"action": "delete_selected", "_selected_action": [product.pk]}
    asked = operator.post(page(product, "changelist"), chosen)
    assert fields_of(asked.content)["why"] == ""
    operator.post(page(product, "changelist"), chosen | {"post": "yes"})
    assert (Product.objects.count(), ActionEntry.objects.count()) == (1, 0)


def test_a_deletion_is_told_with_its_reason(operator: Client) -> None:
    one, other = [Product.objects.create(name=name, created_at=NOW) for name in ("one", "other")]
    operator.post(page(one, "delete"), {"post": "yes", "why": "made twice"})
    wish = {"action": "delete_selected", "_selected_action": [other.pk], "post": "yes", "why": "never sold"}
    operator.post(page(other, "changelist"), wish)
    told = list(ActionEntry.objects.order_by("pk").values_list("what", "key", "reason"))
    assert told == [
        ("inventory.delete", str(one.pk), "made twice"),
        ("inventory.delete", str(other.pk), "never sold"),
    ]
    assert not Product.objects.exists()


def test_who_may_not_delete_is_refused_whatever_he_says() -> None:
    product = Product.objects.create(name="old", created_at=NOW)
    clerk = session_of(User.objects.create_user("clerk", is_staff=True))
    for why in ("", "made twice"):
        assert clerk.post(page(product, "delete"), {"post": "yes", "why": why}).status_code == 403


def test_another_s_password_is_not_changed_without_a_reason(operator: Client) -> None:
    person = User.objects.create_user("person", password="the old one, long")
    path = reverse("admin:auth_user_password_change", args=[person.pk])
    words = "a new one, long"
    form = fields_of(operator.get(path).content) | {"password1": words, "password2": words, "usable_password": "true"}
    assert operator.post(path, form).status_code == 200
    person.refresh_from_db()
    assert (person.check_password(words), ActionEntry.objects.count()) == (False, 0)
    assert operator.post(path, form | {"why": "he has lost his phone"}).status_code == 302
    person.refresh_from_db()
    entry = ActionEntry.objects.get()
    assert (person.check_password(words), entry.reason, entry.key) == (True, "he has lost his phone", str(person.pk))
    assert words not in json.dumps([entry.before, entry.after, entry.note])


def test_a_column_named_reason_is_the_reason(operator: Client) -> None:
    """Of a block the shop asks once, and tells it in both places."""
    form = {"network": "192.0.2.0/24", "reason": "a thousand tries", "account": ""}
    assert operator.post(reverse("admin:accounts_block_add"), form).status_code == 302
    assert (Block.objects.get().reason, reasons()) == ("a thousand tries", {"a thousand tries"})
    assert "why" not in fields_of(operator.get(page(Block.objects.get(), "change")).content)
