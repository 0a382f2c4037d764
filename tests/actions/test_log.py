"""The action log: every deed has its rows, and nobody changes one, neither by the model nor by the database."""

import json
from contextlib import suppress
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, OperationalError, connection
from django.test import Client
from django.utils import timezone

from actions import guard
from actions.log import Deed, of_command, record
from actions.models import ActionEntry, Stage
from inventory.models import Product
from seckill.models import FlashSale, SaleItem
from tests.support.api import session_of
from tests.support.shop import make_sale, open_sale


@pytest.fixture
def operator() -> Client:
    return session_of(User.objects.create_superuser("operator"))


def an_entry() -> ActionEntry:
    deed = Deed(by=of_command("test"), what="seckill.test", table="seckill.flashsale", key="1")
    record(deed=deed, now=timezone.now())
    return ActionEntry.objects.get()


def rows(*names: str) -> list[tuple[Any, ...]]:
    return list(ActionEntry.objects.order_by("pk").values_list(*names))


@pytest.mark.parametrize("sql", ["UPDATE actions_actionentry SET who = 'nobody'", "DELETE FROM actions_actionentry"])
def test_the_database_itself_refuses_to_change_or_delete_a_row(sql: str) -> None:
    an_entry()
    before = list(ActionEntry.objects.values())
    with pytest.raises(DatabaseError, match="the action log is only added to"), connection.cursor() as cursor:
        cursor.execute(sql)
    assert list(ActionEntry.objects.values()) == before


def test_the_model_refuses_too() -> None:
    entry = an_entry()
    for act in (entry.save, entry.delete, ActionEntry.objects.all().delete, lambda: ActionEntry.objects.update(who="")):
        with pytest.raises(TypeError):
            act()
    assert ActionEntry.objects.count() == 1


def test_triggers_that_are_missing_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP TRIGGER actions_actionentry_no_update")
    assert guard.missing() == ["actions_actionentry_no_update"]
    guard.guard_after_migrate(using="default")
    assert guard.missing() == []


def test_a_server_that_forbids_triggers_is_told_of_and_migrate_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """MySQL with a binary log and without SUPER answers 1419; any other error ends the migration."""

    def refuse(error: int) -> None:
        def raising(**_: object) -> None:
            raise OperationalError(error, "no")

        monkeypatch.setattr(guard, "guard", raising)

    refuse(1419)
    guard.guard_after_migrate(using="default")
    assert "guarded by the application alone" in caplog.text
    refuse(2006)
    with pytest.raises(OperationalError):
        guard.guard_after_migrate(using="default")


def test_an_edit_is_told_with_what_it_changed(operator: Client) -> None:
    product = Product.objects.create(name="old", created_at=timezone.now())
    form = {"name": "new", "is_active": "on", "why": "a slip of the pen"}
    form |= {"skus-TOTAL_FORMS": "0", "skus-INITIAL_FORMS": "0"}
    page = f"/admin/inventory/product/{product.pk}/change/"
    initial = operator.get(page).context["adminform"].form.initial
    form |= {name: value for name, value in initial.items() if name not in form and isinstance(value, str)}
    assert operator.post(page, form).status_code == 302
    entry = ActionEntry.objects.get()
    assert (entry.what, entry.table, entry.key) == ("inventory.change", "inventory.product", str(product.pk))
    assert (entry.before["name"], entry.after["name"]) == ("old", "new")
    assert (entry.who, entry.reason, entry.channel, entry.stage) == ("operator", "a slip of the pen", "DESK", "DONE")
    assert entry.address == "127.0.0.1"
    assert len(entry.request_id) == 32
    history = operator.get(f"/admin/inventory/product/{product.pk}/history/").content.decode()
    assert "a slip of the pen" in history


def test_who_is_in_which_group_is_told_and_no_password(operator: Client) -> None:
    person = User.objects.create_user("person", password="a long secret")
    group = Group.objects.create(name="some group")
    page = f"/admin/auth/user/{person.pk}/change/"
    form: dict[str, Any] = {"username": "person", "is_active": "on", "groups": [group.pk]}
    form |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00", "last_login_0": "", "last_login_1": ""}
    assert operator.post(page, form).status_code == 200
    assert not ActionEntry.objects.exists()
    form["why"] = "the new colleague"
    assert operator.post(page, form).status_code == 302
    entry = ActionEntry.objects.get()
    assert (entry.before["groups"], entry.after["groups"]) == ([], [group.pk])
    assert "password" not in json.dumps([entry.before, entry.after])


def test_what_reaches_redis_is_told_before_and_after(operator: Client) -> None:
    item = open_sale().item
    operator.post(
        "/admin/seckill/saleitem/", {"action": "pause", "_selected_action": [item.pk], "reason": "wrong picture"}
    )
    assert rows("what", "key", "stage") == [
        ("seckill.pause", str(item.pk), "BEGUN"),
        ("seckill.pause", str(item.pk), "DONE"),
    ]
    begun, done = ActionEntry.objects.order_by("pk")
    assert (begun.before["is_paused"], done.after["is_paused"]) == (False, True)
    assert begun.attempt == done.attempt


def test_a_call_of_the_api_is_told_and_how_it_failed(operator: Client) -> None:
    shop = make_sale()
    operator.post(f"/api/v1/operators/sales/{shop.sale.pk}/preheat/", content_type="application/json")
    operator.post(f"/api/v1/operators/sales/{shop.sale.pk}/preheat/", content_type="application/json")
    assert rows("channel", "what", "table", "key", "stage", "note") == [
        ("API", "api.operators-preheat", "seckill.flashsale", str(shop.sale.pk), "BEGUN", ""),
        ("API", "api.operators-preheat", "seckill.flashsale", str(shop.sale.pk), "DONE", ""),
        ("API", "api.operators-preheat", "seckill.flashsale", str(shop.sale.pk), "BEGUN", ""),
        ("API", "api.operators-preheat", "seckill.flashsale", str(shop.sale.pk), "FAILED", "409 sale_not_ready"),
    ]
    first = ActionEntry.objects.order_by("pk")[1]
    assert (first.before["state"], first.after["state"]) == ("DRAFT", "PREHEATED")


def test_a_command_is_told_with_who_ran_it() -> None:
    shop = make_sale()
    call_command("preheat", shop.sale.pk, stdout=StringIO())
    with pytest.raises(CommandError):
        call_command("preheat", shop.sale.pk, stdout=StringIO())
    assert rows("channel", "what", "stage") == [
        ("COMMAND", "seckill.preheat", "BEGUN"),
        ("COMMAND", "seckill.preheat", "DONE"),
        ("COMMAND", "seckill.preheat", "BEGUN"),
        ("COMMAND", "seckill.preheat", "FAILED"),
    ]
    assert {who.partition(" (")[0] for (who,) in rows("who")} == {"manage.py preheat"}


@pytest.mark.slow
def test_every_command_that_changes_something_is_told_with_its_reason() -> None:
    shop = open_sale()
    pool, sale = str(shop.pool.pk), str(shop.sale.pk)
    FlashSale.objects.update(closes_at=timezone.now() + timedelta(hours=1))
    commands = [
        ["stop_sales", "--pool", pool],
        ["resume_sales", "--pool", pool],
        ["rebuild", pool],
        ["reconcile", "--repair", "--pool", pool],
        ["reconcile", "--repair"],
        ["withdraw", sale],
        ["preheat", sale],
        ["archive", "--sale", sale],
    ]
    for command in commands:
        with suppress(CommandError):
            call_command(*command, "--reason", "as agreed", stdout=StringIO(), stderr=StringIO())
    told = {(name, key) for name, key, reason in rows("what", "key", "reason") if reason == "as agreed"}
    assert told == {
        ("seckill.stop_sales", pool),
        ("seckill.resume_sales", pool),
        ("seckill.rebuild", pool),
        ("seckill.reconcile", pool),
        ("seckill.reconcile", "all"),
        ("seckill.withdraw", sale),
        ("seckill.preheat", sale),
        ("seckill.archive", sale),
    }
    assert {reason for (reason,) in rows("reason")} == {"as agreed"}
    ended = dict(rows("what", "stage"))
    assert ended == dict.fromkeys((what for what, _key in told), "DONE") | {"seckill.archive": "FAILED"}
    (rebuilt,) = {entry.thing for entry in ActionEntry.objects.all() if entry.what == "seckill.rebuild"}
    assert rebuilt == f"seckill.salepool {pool} bucket {shop.bucket}: commits MUST_BE_THERE, queue IS_DRAINED"


def test_a_look_is_not_told() -> None:
    shop = open_sale()
    for command in (["reconcile"], ["explain", "nobody"], ["archive", "--sale", str(shop.sale.pk), "--dry-run"]):
        with suppress(CommandError):
            call_command(*command, stdout=StringIO(), stderr=StringIO())
    assert not ActionEntry.objects.exists()


def test_a_call_of_the_api_may_say_why(operator: Client) -> None:
    path = f"/api/v1/operators/items/{open_sale().item.pk}/pause/"
    for body, status in (
        ({"reason": "wrong picture"}, 200),
        ({}, 200),
        ({"reason": 5}, 400),
        ({"reason": "x" * 201}, 400),
    ):
        assert operator.post(path, body, content_type="application/json").status_code == status
    reasons = [reason for reason, stage in rows("reason", "stage") if stage == "DONE"]
    assert reasons == ["wrong picture", ""]


def test_a_deletion_that_is_refused_is_not_told(operator: Client) -> None:
    """The sale was preheated meanwhile: neither the row nor its deletion is there."""
    shop = make_sale()
    SaleItem.objects.update(is_paused=False)
    request = {"action": "delete_selected", "_selected_action": [shop.sale.pk], "post": "yes", "why": "old"}
    FlashSale.objects.update(state="PREHEATED")
    operator.post("/admin/seckill/flashsale/", request)
    assert FlashSale.objects.count() == 1
    assert not ActionEntry.objects.filter(stage=Stage.DONE, what="seckill.delete").exists()


def test_the_log_is_searched_and_nobody_writes_it(operator: Client) -> None:
    entry = an_entry()
    page = "/admin/actions/actionentry/"
    assert operator.get(page, {"q": "seckill.test"}).context["cl"].result_count == 1
    assert operator.get(page, {"q": "nothing"}).context["cl"].result_count == 0
    assert operator.get(f"{page}{entry.pk}/change/").status_code == 200
    for path in (f"{page}add/", f"{page}{entry.pk}/change/", f"{page}{entry.pk}/delete/"):
        assert operator.post(path, {"post": "yes"}).status_code == 403


BAD_WRITES = [
    ("actionentry_stage_known", {"stage": "PERHAPS"}),
    ("actionentry_channel_known", {"channel": "PIGEON"}),
    ("actionentry_by_somebody", {"who": ""}),
]


@pytest.mark.parametrize(("rule", "values"), BAD_WRITES)
def test_the_rules_hold_in_the_database(rule: str, values: dict[str, str]) -> None:
    given = {"at": timezone.now(), "stage": "DONE", "channel": "DESK", "who": "somebody", **values}
    with pytest.raises(DatabaseError, match=rule):
        ActionEntry.objects.create(**given)
    assert not ActionEntry.objects.exists()


def test_every_rule_has_its_case() -> None:
    assert {rule.name for rule in ActionEntry._meta.constraints} == {rule for rule, _values in BAD_WRITES}
