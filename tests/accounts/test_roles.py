"""Who may do what: each role at each page of the desk and each operators' call. What is new has to be added here."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.test import RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from accounts.roles import NAMES, set_roles
from actions.models import ActionEntry
from config import urls  # noqa: F401  registers every page
from inventory.changes import ManualChange, submit
from inventory.models import StockAdjustment
from seckill.change_tables import ItemAdjustment, WindowChange
from tests.seckill.test_replay import park_one
from tests.support.payments import unwelcome_payment
from tests.support.roles import browser_of, in_role
from tests.support.shop import make_buyers, open_sale

ROLES = ("operator", "approver", "auditor")
ALL, ASK, DECIDE = set(ROLES), {"operator"}, {"approver"}

# Of each page what a role may: v(iew), a(dd), c(hange), d(elete), and the actions of its list.
PAGES: dict[str, tuple[str, str, str]] = {
    "accounts.block": ("vacd delete_selected", "v", "v"),
    "accounts.externalidentity": ("vd delete_selected", "v", "v"),
    "actions.actionentry": ("", "", "v"),
    "auth.group": ("v", "v", "v"),
    "auth.user": ("v", "v", "v"),
    "axes.accessattempt": ("vd delete_selected", "v", "v"),
    "django_celery_beat.periodictask": ("v", "v", "v"),
    "inventory.product": ("vacd delete_selected", "v", "v"),
    "inventory.sku": ("vacd delete_selected", "v", "v"),
    "inventory.stock": ("v", "v", "v"),
    "inventory.stockadjustment": ("va", "v", "v"),
    "inventory.stockmovement": ("v", "v", "v"),
    "orders.honour": ("v", "v", "v"),
    "orders.order": ("v", "v", "v"),
    "orders.payment": ("v refund_in_full honour", "v", "v"),
    "orders.paymentattempt": ("v", "v", "v"),
    "orders.refund": ("v ask_again", "v", "v"),
    "seckill.alert": ("v", "v", "v"),
    "seckill.alertdelivery": ("v send_again", "v", "v"),
    "seckill.archiverun": ("v", "v", "v"),
    "seckill.buyerarchive": ("v", "v", "v"),
    "seckill.deadletter": ("v replay refuse", "v", "v"),
    "seckill.flashsale": ("vacd delete_selected", "v", "v"),
    "seckill.incident": ("v", "v", "v"),
    "seckill.itemadjustment": ("va", "v", "v"),
    "seckill.rebuildrun": ("v", "v", "v"),
    "seckill.reconciliationrun": ("v", "v", "v"),
    "seckill.repair": ("v", "v", "v"),
    "seckill.reservation": ("v", "v", "v"),
    "seckill.saleitem": ("vacd delete_selected preheat withdraw pause resume", "v", "v"),
    "seckill.salepool": ("vacd delete_selected", "v", "v"),
    "seckill.windowchange": ("va", "v", "v"),
}

# Pages that are no model's, by the roles that may open them. Who may not is refused with 403.
OTHER_PAGES: dict[str, set[str]] = {
    "index": ALL,
    "search": ALL,
    "desk_monitor": ALL,
    "desk_monitor_stages": ALL,
    "desk_explain": ALL,
    "desk_inbox": ALL,
    "desk_ledger_file": ALL,
    "desk_sale_new": {"operator"},
    "desk_sale_template": ALL,
}
# Pages of one row, by the roles that may open them; each is opened with a row of its own.
PAGES_OF_ROWS: dict[str, set[str]] = {
    "desk_sale": ALL,
    "desk_sale_preheat": {"operator"},
    "desk_sale_import": {"operator"},
    "desk_sale_window": {"operator"},
    "desk_sale_action": {"operator"},
    "desk_item_action": {"operator"},
    "desk_monitor_sale": ALL,
    "desk_monitor_now": ALL,
    "desk_monitor_history": ALL,
    "desk_audit_item": ALL,
    "desk_audit_runs": ALL,
    "desk_audit_reconcile": {"operator"},
    "desk_audit_sku": ALL,
    "seckill_itemadjustment_decide": {"approver"},
    "seckill_windowchange_decide": {"approver"},
    "seckill_deadletter_decide": {"operator"},
    "inventory_stockadjustment_decide": {"approver"},
    "orders_payment_refund": {"operator"},
}
# Django's own: about the asker, or with nothing to see.
OF_DJANGO = {
    "login",
    "logout",
    "password_change",
    "password_change_done",
    "auth_user_password_change",
    "autocomplete",
    "jsi18n",
    "view_on_site",
    "app_list",
}
OF_MODELS = {"changelist", "add", "history", "delete", "change"}

CALLS: dict[tuple[str, str], set[str]] = {
    ("POST", "operators-preheat"): {"operator"},
    ("POST", "operators-withdraw"): {"operator"},
    ("POST", "operators-pause"): {"operator"},
    ("POST", "operators-resume"): {"operator"},
    ("GET", "operators-audit"): ALL,
    ("POST", "operators-reconcile"): {"operator"},
    ("GET", "operators-stock-adjustments"): ALL,
    ("POST", "operators-stock-adjustments"): ASK,
    ("POST", "operators-stock-adjustment-approve"): DECIDE,
    ("POST", "operators-stock-adjustment-reject"): DECIDE,
    ("GET", "operators-item-adjustments"): ALL,
    ("POST", "operators-item-adjustments"): ASK,
    ("POST", "operators-item-adjustment-approve"): DECIDE,
    ("POST", "operators-item-adjustment-reject"): DECIDE,
    ("GET", "operators-window-changes"): ALL,
    ("POST", "operators-window-changes"): ASK,
    ("POST", "operators-window-change-approve"): DECIDE,
    ("POST", "operators-window-change-reject"): DECIDE,
}
WINDOW = {"sale": 1, "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2026-01-02T00:00:00Z", "reason": "later"}
BODIES: dict[str, dict[str, Any]] = {
    "operators-stock-adjustments": {"sku": 1, "delta": 1, "reason": "counted"},
    "operators-item-adjustments": {"item": 1, "delta": 1, "reason": "counted"},
    "operators-window-changes": WINDOW,
}


def routes(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Every address of the project."""
    for pattern in resolver.url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern, route)
        else:
            yield route, pattern


def may(role: str) -> Iterator[tuple[str, str]]:
    """What somebody of a role may at each page."""
    request: Any = RequestFactory().get("/")
    request.user = in_role(role)
    for model, page in admin.site._registry.items():
        letters = {
            "v": page.has_view_permission(request),
            "a": page.has_add_permission(request),
            "c": page.has_change_permission(request),
            "d": page.has_delete_permission(request),
        }
        rights = "".join(letter for letter, is_given in letters.items() if is_given)
        yield model._meta.label_lower, " ".join([rights, *page.get_actions(request)]).strip()


@pytest.mark.parametrize("role", ROLES)
def test_each_role_at_each_page(role: str) -> None:
    assert dict(may(role)) == {page: rights[ROLES.index(role)] for page, rights in PAGES.items()}


def test_a_buyer_has_no_business_at_the_desk() -> None:
    assert {rights for _page, rights in may("buyer")} == {""}
    assert browser_of("buyer").get("/admin/").status_code == 302


def test_every_page_that_is_no_model_s_is_in_the_matrix() -> None:
    names = {str(pattern.name) for route, pattern in routes(get_resolver()) if route.startswith("admin/")} - {"None"}
    others = {name for name in names if name.rpartition("_")[2] not in OF_MODELS or name.startswith("desk_")}
    assert others - OF_DJANGO == (OTHER_PAGES.keys() | PAGES_OF_ROWS.keys()) - OF_DJANGO


@pytest.mark.parametrize("role", ROLES)
def test_each_role_at_the_pages_that_are_no_model_s(role: str) -> None:
    client = browser_of(role)
    for name, roles in OTHER_PAGES.items():
        path = reverse(name if name.startswith("desk_") else f"admin:{name}")
        assert client.get(path).status_code == (200 if role in roles else 403), name


def keys_of_rows() -> dict[str, list[Any]]:
    """What stands in the address of each page of one row, of rows that are there."""
    shop = open_sale(units=20)
    sale, item, sku = shop.sale.pk, shop.item.pk, shop.item.sku_id
    by, now = in_role("operator"), timezone.now()
    window = {"opens_at": shop.sale.opens_at, "closes_at": shop.sale.closes_at + timedelta(hours=1)}
    window_change: ManualChange = WindowChange(sale=shop.sale, reason="the queue is long", **window)
    changes = {
        "seckill_windowchange_decide": window_change,
        "inventory_stockadjustment_decide": StockAdjustment(sku_id=sku, delta=-2, reason="two were broken"),
        "seckill_itemadjustment_decide": ItemAdjustment(item=shop.item, delta=1, reason="a box was found"),
    }
    of_sale = ("desk_sale", "desk_sale_preheat", "desk_sale_import", "desk_sale_window", "desk_monitor_sale")
    of_item = ("desk_audit_item", "desk_audit_runs", "desk_audit_reconcile")
    return {
        **{name: [submit(change=change, by=by, now=now).pk] for name, change in changes.items()},
        **{name: [sale] for name in (*of_sale, "desk_monitor_now", "desk_monitor_history")},
        **{name: [item] for name in of_item},
        "desk_sale_action": [sale, "pause"],
        "desk_item_action": [sale, item, "pause"],
        "desk_audit_sku": [sku],
        "seckill_deadletter_decide": [park_one(shop, make_buyers(1)[0]).pk],
        "orders_payment_refund": [unwelcome_payment().pk],
    }


@pytest.mark.parametrize("role", ["buyer", *ROLES])
def test_each_role_at_the_pages_of_one_row(role: str) -> None:
    client, keys = browser_of(role), keys_of_rows()
    assert keys.keys() == PAGES_OF_ROWS.keys()
    for name, roles in PAGES_OF_ROWS.items():
        path = reverse(name if name.startswith("desk_") else f"admin:{name}", args=keys[name])
        answer = client.post(path) if name == "desk_audit_reconcile" else client.get(path)
        if role == "buyer":
            assert answer["Location"].startswith("/admin/login/"), name
        else:
            assert (answer.status_code == 403) == (role not in roles), (name, answer.status_code)
            assert answer.status_code < 404, name


def test_every_operators_call_is_in_the_matrix() -> None:
    found = set()
    for _route, pattern in routes(get_resolver()):
        if (pattern.name or "").startswith("operators-"):
            view: Any = pattern.callback
            verbs = [verb for verb in ("get", "post", "put", "patch", "delete") if hasattr(view.view_class, verb)]
            found |= {(verb.upper(), str(pattern.name)) for verb in verbs}
    assert found == CALLS.keys()


@pytest.mark.parametrize("role", ["buyer", *ROLES])
def test_each_role_at_each_operators_call(role: str) -> None:
    """Who may gets past the door and finds that there is no such row; who may not is refused and changes nothing."""
    client = browser_of(role)
    for (method, name), roles in CALLS.items():
        body = json.dumps(BODIES.get(name, {"reason": "a reason"}))
        status = client.generic(method, address_of(name), body, content_type="application/json").status_code
        assert (status == 403) == (role not in roles), (method, name, status)
        assert status < 500
    if role in {"buyer", "auditor"}:
        assert not ActionEntry.objects.filter(stage="DONE").exists()


def address_of(name: str) -> str:
    for _route, pattern in routes(get_resolver()):
        if pattern.name == name:
            return reverse(name, args=[1] * len(pattern.pattern.converters))
    raise LookupError(name)


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_the_pages_answer_as_the_matrix_says(role: str) -> None:
    client = browser_of(role)
    for model in admin.site._registry:
        rights = PAGES[model._meta.label_lower][ROLES.index(role)].partition(" ")[0]
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        assert client.get(reverse(f"{name}_changelist")).status_code == (200 if "v" in rights else 403), name
        assert client.get(reverse(f"{name}_add")).status_code == (200 if "a" in rights else 403), name


@pytest.mark.parametrize("role", ["approver", "auditor"])
def test_who_may_only_look_deletes_nobody(role: str) -> None:
    client = browser_of(role)
    group = Group.objects.create(name="some group")
    client.post(
        "/admin/auth/group/", {"action": "delete_selected", "_selected_action": [group.pk], "post": "yes", "why": "old"}
    )
    assert client.post(f"/admin/auth/group/{group.pk}/delete/", {"post": "yes", "why": "old"}).status_code == 403
    assert Group.objects.filter(pk=group.pk).exists()
    assert not ActionEntry.objects.exists()


def test_setting_the_roles_again_takes_back_what_somebody_added() -> None:
    in_role("auditor")
    before = {group.name: set(group.permissions.values_list("pk", flat=True)) for group in Group.objects.all()}
    auditor, operator = Group.objects.get(name="auditor"), Group.objects.get(name="operator")
    auditor.permissions.add(*operator.permissions.all())
    set_roles(using="default")
    assert {group.name: set(group.permissions.values_list("pk", flat=True)) for group in Group.objects.all()} == before
    assert set(before) == set(NAMES)


def test_a_group_of_the_deployer_s_own_is_left_alone() -> None:
    own = Group.objects.create(name="night shift")
    in_role("operator")
    own.permissions.set(Group.objects.get(name="operator").permissions.all()[:3])
    set_roles(using="default")
    assert own.permissions.count() == 3
