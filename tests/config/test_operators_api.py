"""What operators call: with the permission, with the exact answers, and nothing sold that should not be."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from pytest_django import Settings

from inventory.models import Stock, StockAdjustment, StockMovement
from seckill import operators_api
from seckill.errors import GateUnavailable
from seckill.gate.connection import raw_client
from seckill.models import FlashSale, ReconciliationRun, SaleItem
from tests.support.api import Answer, post_purchase, read, refusal, session_of
from tests.support.rows import make_sku
from tests.support.shop import Shop, buy, make_buyers, make_sale, make_ticket, make_tickets, open_sale
from tests.support.state import dump, numbers

OPERATORS = "/api/v1/operators/"
ADJUSTMENTS = "stock-adjustments/"


def staff(*permissions: str) -> Client:
    """Log in an account of the staff with permissions such as ``seckill.change_saleitem``."""
    (user,) = make_buyers(1)
    user.is_staff = True
    user.save()
    for name in permissions:
        app, codename = name.split(".")
        user.user_permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
    return session_of(User.objects.get(pk=user.pk))


def operator() -> Client:
    return staff("seckill.change_saleitem", "seckill.view_saleitem")


def post(client: Client, path: str, body: dict[str, Any] | None = None) -> Answer:
    return read(client.post(OPERATORS + path, data=json.dumps(body or {}), content_type="application/json"))


def get(client: Client, path: str) -> Answer:
    return read(client.get(OPERATORS + path))


def calls(shop: Shop) -> list[tuple[str, str]]:
    """Every operators' call, as method and path."""
    return [
        ("POST", f"sales/{shop.sale.pk}/preheat/"),
        ("POST", f"items/{shop.item.pk}/pause/"),
        ("POST", f"items/{shop.item.pk}/resume/"),
        ("GET", f"items/{shop.item.pk}/audit/"),
        ("POST", f"pools/{shop.pool.pk}/reconcile/"),
        ("GET", ADJUSTMENTS),
        ("POST", ADJUSTMENTS),
        ("POST", f"{ADJUSTMENTS}1/approve/"),
        ("POST", f"{ADJUSTMENTS}1/reject/"),
    ]


def test_nobody_but_the_staff_gets_in() -> None:
    shop = make_sale()
    buyer = session_of(make_buyers(1)[0])
    for method, path in calls(shop):
        for client, told in ((Client(), (401, "not_authenticated")), (buyer, (403, "forbidden"))):
            response = client.generic(method, OPERATORS + path, "{}", content_type="application/json")
            assert refusal(read(response)) == told, path
    assert FlashSale.objects.get().state == "DRAFT"
    assert not SaleItem.objects.get().is_paused


def test_staff_without_the_permission_may_not_either() -> None:
    shop = make_sale()
    client = staff()
    for method, path in calls(shop):
        answer = read(
            client.generic(
                method,
                OPERATORS + path,
                json.dumps({"reason": "because", "sku": shop.item.sku_id, "delta": 1}),
                content_type="application/json",
            )
        )
        assert refusal(answer)[0] == 403, path
    assert FlashSale.objects.get().state == "DRAFT"
    assert not StockAdjustment.objects.exists()


def test_a_session_alone_is_not_enough() -> None:
    """CASES 40e: another site can make an operator's browser post, but not with the token."""
    shop = open_sale()
    strict = session_of(User.objects.create_superuser("boss"), enforce_csrf_checks=True)
    assert refusal(post(strict, f"items/{shop.item.pk}/pause/")) == (403, "forbidden")
    assert not SaleItem.objects.get().is_paused


def test_preheat_brings_a_sale_into_redis_once() -> None:
    shop = make_sale(units=3)
    client = operator()
    answer = post(client, f"sales/{shop.sale.pk}/preheat/")
    assert (answer.status, answer.body) == (200, {"sale": shop.sale.pk, "state": "preheated", "is_in_redis": True})
    assert numbers(shop).left == {shop.item.pk: 3}
    before = dump(shop.bucket)
    again = post(client, f"sales/{shop.sale.pk}/preheat/")
    assert refusal(again) == (409, "sale_not_ready")
    assert "already" in again.body["detail"]
    assert dump(shop.bucket) == before


def test_preheat_says_why_not() -> None:
    shop = make_sale(units=3)
    Stock.objects.update(on_hand=2)
    answer = post(operator(), f"sales/{shop.sale.pk}/preheat/")
    assert refusal(answer) == (409, "sale_not_ready")
    assert "needs 3 units, the warehouse has 2" in answer.body["detail"]
    assert FlashSale.objects.get().state == "DRAFT"


def test_what_is_not_there() -> None:
    client = operator()
    for path in ("sales/1/preheat/", "items/1/pause/", "items/1/resume/", f"pools/{10**20}/reconcile/"):
        assert refusal(post(client, path)) == (404, "not_found"), path
    assert refusal(get(client, "items/1/audit/")) == (404, "not_found")


def test_pause_and_resume() -> None:
    shop = open_sale()
    client, ticket = operator(), make_ticket(shop)
    for _ in range(2):
        answer = post(client, f"items/{shop.item.pk}/pause/")
        assert (answer.status, answer.body) == (
            200,
            {"item": shop.item.pk, "is_paused": True, "is_in_redis": True},
        )
    assert refusal(post_purchase(ticket=ticket)) == (409, "paused")
    for _ in range(2):
        answer = post(client, f"items/{shop.item.pk}/resume/")
        assert (answer.status, answer.body["is_paused"]) == (200, False)
    assert post_purchase(ticket=ticket).status == 202


@pytest.mark.parametrize("name", ["pause_item", "resume_item", "preheat_sale"])
def test_a_wish_is_kept_while_redis_is_away(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep carries it there; the operator is told so, and not that it failed."""
    shop = open_sale()
    real: Callable[..., None] = getattr(operators_api, name)

    def away(**kwargs: Any) -> None:
        if name != "preheat_sale":
            real(**kwargs)
        raise GateUnavailable

    monkeypatch.setattr(operators_api, name, away)
    what = f"sales/{shop.sale.pk}/preheat/" if name == "preheat_sale" else f"items/{shop.item.pk}/{name[:-5]}/"
    answer = post(operator(), what)
    assert (answer.status, answer.body["is_in_redis"]) == (202, False)


def test_the_books_of_an_item() -> None:
    shop = open_sale(units=5, limit=5)
    first, second = make_tickets(shop, 2)
    buy(first, 2)
    post(operator(), f"pools/{shop.pool.pk}/reconcile/")
    buy(second, 1)
    before = dump(shop.bucket)
    answer = get(operator(), f"items/{shop.item.pk}/audit/")
    (books,) = answer.body["buckets"]
    terms = books.pop("numbers")
    assert answer.body["is_balanced"] is True
    assert books == {
        "bucket": f"{shop.pool.pk}:0",
        "verdict": "BALANCED",
        "allocated": 5,
        "sold": 2,
        "ledger": 3,
        "explanation": "",
    }
    told = {name: terms[name] for name in ("allocated", "sold", "left", "in_flight", "owed", "drift")}
    assert told == {"allocated": 5, "sold": 2, "left": 2, "in_flight": 1, "owed": 0, "drift": 0}
    assert dump(shop.bucket) == before


@pytest.mark.parametrize(("units", "verdict", "drift"), [(1, "EXCESS", -1), (-1, "LEAK", 1)])
def test_the_books_show_drift_and_leave_it(units: int, verdict: str, drift: int) -> None:
    shop = open_sale(units=5)
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", units)
    answer = get(operator(), f"items/{shop.item.pk}/audit/")
    assert answer.body["is_balanced"] is False
    assert (answer.body["buckets"][0]["verdict"], answer.body["buckets"][0]["numbers"]["drift"]) == (verdict, drift)
    assert numbers(shop).left == {shop.item.pk: 5 + units}


def test_the_books_while_redis_cannot_tell() -> None:
    shop = open_sale(units=5)
    raw_client().delete(*shop.bucket.keys)
    answer = get(operator(), f"items/{shop.item.pk}/audit/")
    (books,) = answer.body["buckets"]
    assert (answer.status, answer.body["is_balanced"]) == (200, False)
    assert (books["verdict"], books["numbers"], books["allocated"], books["sold"]) == ("UNAVAILABLE", None, 5, 0)
    assert books["explanation"]


def test_the_ledger_is_part_of_the_books() -> None:
    shop = open_sale(units=5)
    StockMovement.objects.filter(account=f"item:{shop.item.pk}:0").update(units=4)
    answer = get(operator(), f"items/{shop.item.pk}/audit/")
    assert (answer.body["is_balanced"], answer.body["buckets"][0]["ledger"]) == (False, 4)


def test_an_item_not_yet_preheated_has_no_books() -> None:
    shop = make_sale()
    answer = get(operator(), f"items/{shop.item.pk}/audit/")
    assert answer.body == {"item": shop.item.pk, "is_balanced": True, "buckets": []}


def test_reconcile_now_settles_and_lowers_what_is_too_much() -> None:
    shop = open_sale(units=5)
    buy(make_ticket(shop))
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", 2)
    client = operator()
    answer = post(client, f"pools/{shop.pool.pk}/reconcile/")
    (report,) = answer.body["buckets"]
    assert (report["verdict"], report["drift"], report["items"][0]["sold"]) == ("EXCESS", 2, 1)
    assert numbers(shop).left == {shop.item.pk: 4}
    again = post(client, f"pools/{shop.pool.pk}/reconcile/")
    assert again.body["buckets"][0]["verdict"] == "BALANCED"
    assert ReconciliationRun.objects.count() == 2


def asked(client: Client, **body: Any) -> Answer:
    return post(client, ADJUSTMENTS, body)


ADD = "inventory.add_stockadjustment"
APPROVE = "inventory.approve_stockadjustment"


def test_two_people_change_the_warehouse() -> None:
    """Law 10: nothing happens before the second one said yes, and then it happens once."""
    sku = make_sku()
    first, second = staff(ADD), staff(APPROVE)
    request = asked(first, sku=sku.pk, delta=7, reason="counted anew")
    assert request.status == 201
    change = request.body["id"]
    assert {name: request.body[name] for name in ("sku", "delta", "state", "reason", "decided_by", "may_decide")} == {
        "sku": sku.pk,
        "delta": 7,
        "state": "REQUESTED",
        "reason": "counted anew",
        "decided_by": None,
        "may_decide": False,
    }
    assert not Stock.objects.filter(sku=sku, on_hand__gt=0).exists()
    waiting = get(second, f"{ADJUSTMENTS}?inbox=waiting").body
    assert [(one["id"], one["may_decide"]) for one in waiting["results"]] == [(change, True)]
    done = post(second, f"{ADJUSTMENTS}{change}/approve/", {"reason": "I counted too"})
    assert (done.status, done.body["state"], done.body["on_hand_after"]) == (200, "APPLIED", 7)
    assert Stock.objects.get(sku=sku).on_hand == 7
    again = post(second, f"{ADJUSTMENTS}{change}/approve/", {"reason": "I counted too"})
    assert refusal(again) == (409, "already_decided")
    assert again.body["state"] == "APPLIED"
    assert Stock.objects.get(sku=sku).on_hand == 7
    assert get(second, f"{ADJUSTMENTS}?inbox=waiting").body["results"] == []
    assert len(get(first, f"{ADJUSTMENTS}?inbox=mine&state=APPLIED").body["results"]) == 1


def test_nobody_decides_on_his_own_request(settings: Settings) -> None:
    settings.ONE_PERSON_SHOP = False
    alone = staff(ADD, APPROVE)
    change = asked(alone, sku=make_sku().pk, delta=7, reason="counted anew").body["id"]
    answer = post(alone, f"{ADJUSTMENTS}{change}/approve/", {"reason": "it is right"})
    assert refusal(answer) == (403, "change_not_allowed")
    assert StockAdjustment.objects.get().state == "REQUESTED"


def test_a_no_changes_nothing() -> None:
    sku = make_sku()
    change = asked(staff(ADD), sku=sku.pk, delta=7, reason="counted anew").body["id"]
    answer = post(staff(APPROVE), f"{ADJUSTMENTS}{change}/reject/", {"reason": "I counted less"})
    assert (answer.status, answer.body["state"], answer.body["decision_reason"]) == (200, "REJECTED", "I counted less")
    assert not Stock.objects.filter(sku=sku, on_hand__gt=0).exists()
    assert refusal(post(staff(APPROVE), f"{ADJUSTMENTS}{10**20}/reject/", {"reason": "no such"})) == (404, "not_found")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"delta": 0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": "1"}, "delta"),
        ({"delta": 2**31 + 1}, "delta"),
        ({"delta": 2**31 - 1}, "delta"),
        ({"sku": 10**15}, "sku"),
        ({"sku": "1"}, "sku"),
        ({"reason": "no"}, "reason"),
        ({"reason": "x" * 151}, "reason"),
        ({"reason": None}, "reason"),
    ],
)
def test_requests_that_are_none(change: dict[str, Any], field: str) -> None:
    """CASES 38."""
    answer = asked(staff(ADD), **({"sku": make_sku().pk, "delta": 1, "reason": "counted anew"} | change))
    assert refusal(answer) == (400, "bad_request")
    assert field in answer.body["errors"] or "__all__" in answer.body["errors"]
    assert not StockAdjustment.objects.exists()
