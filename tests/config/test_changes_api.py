"""Changes by hand of what is on sale, over HTTP: two people, one effect, and the number that would be possible."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from inventory.models import Stock
from seckill.change_tables import ItemAdjustment, WindowChange
from seckill.models import FlashSale, ItemBucket
from tests.config.test_operators_api import get, post, staff
from tests.support.api import Answer, refusal
from tests.support.shop import Shop, buy, make_tickets, open_sale
from tests.support.state import dump, numbers

UNITS = "item-adjustments/"
WINDOWS = "window-changes/"
HOUR = timedelta(hours=1)


def decided(table: str, body: dict[str, Any], name: str, decision: str = "approve") -> tuple[Answer, Answer]:
    """Let one person ask and another decide; return both answers."""
    asked = post(staff(f"seckill.add_{name}"), table, body)
    assert asked.status == 201, asked.body
    second = staff(f"seckill.approve_{name}")
    return asked, post(second, f"{table}{asked.body['id']}/{decision}/", {"reason": "it is right"})


def more(shop: Shop, delta: int, decision: str = "approve") -> tuple[Answer, Answer]:
    body = {"item": shop.item.pk, "delta": delta, "reason": "sells well"}
    return decided(UNITS, body, "itemadjustment", decision)


def test_more_units_are_on_sale_once_a_second_person_agrees() -> None:
    shop = open_sale(units=2)
    Stock.objects.update(on_hand=5)
    asked, done = more(shop, 3)
    assert (asked.body["state"], asked.body["counterpart"], asked.body["may_decide"]) == (
        "REQUESTED",
        "WAREHOUSE",
        False,
    )
    assert (done.status, done.body["state"], done.body["item"]) == (200, "APPLIED", shop.item.pk)
    assert numbers(shop).left == {shop.item.pk: 5}
    assert (ItemBucket.objects.get().allocated, Stock.objects.get().on_hand) == (5, 2)
    assert len(get(staff("seckill.view_itemadjustment"), UNITS).body["results"]) == 1


def test_fewer_than_are_sold_is_refused_with_what_would_be_possible() -> None:
    shop = open_sale(units=3)
    for ticket in make_tickets(shop, 2):
        buy(ticket)
    before = dump(shop.bucket)
    _, done = more(shop, -2)
    assert (done.status, done.body["state"], done.body["units_possible"]) == (200, "REFUSED", -1)
    assert dump(shop.bucket)[0] == before[0]
    assert ItemBucket.objects.get().allocated == 3


def test_a_no_leaves_the_units() -> None:
    shop = open_sale(units=2)
    _, done = more(shop, -1, "reject")
    assert (done.body["state"], numbers(shop).left) == ("REJECTED", {shop.item.pk: 2})


def test_another_window() -> None:
    shop = open_sale(opens_in=HOUR, closes_in=2 * HOUR)
    opens, closes = timezone.now() + 3 * HOUR, timezone.now() + 4 * HOUR
    body = {
        "sale": shop.sale.pk,
        "opens_at": opens.isoformat(),
        "closes_at": closes.isoformat(),
        "reason": "the delivery is late",
    }
    asked, done = decided(WINDOWS, body, "windowchange")
    assert datetime.fromisoformat(asked.body["opens_at"]) == opens
    assert (done.status, done.body["state"]) == (200, "APPLIED")
    sale = FlashSale.objects.get()
    assert (sale.opens_at, sale.closes_at) == (opens, closes)
    assert len(get(staff("seckill.view_windowchange"), WINDOWS).body["results"]) == 1
    _, rejected = decided(WINDOWS, body, "windowchange", "reject")
    assert rejected.body["state"] == "REJECTED"


@pytest.mark.parametrize(
    "change",
    [
        {"opens_at": "2026-06-18"},
        {"opens_at": "2026-06-18T20:00:00"},
        {"opens_at": "soon"},
        {"closes_at": "2020-01-01T00:00:00Z"},
        {"sale": 10**15},
        {"sale": "1"},
        {"opens_at": 20_260_618},
        {"reason": ""},
    ],
)
def test_windows_that_are_none(change: dict[str, Any]) -> None:
    """CASES 38."""
    shop = open_sale()
    body = {
        "sale": shop.sale.pk,
        "opens_at": timezone.now().isoformat(),
        "closes_at": (timezone.now() + HOUR).isoformat(),
        "reason": "the delivery is late",
    }
    answer = post(staff("seckill.add_windowchange"), WINDOWS, {**body, **change})
    assert refusal(answer) == (400, "bad_request")
    assert not WindowChange.objects.exists()


@pytest.mark.parametrize("change", [{"item": 10**15}, {"delta": 0}, {"delta": "1"}, {"counterpart": "POCKET"}])
def test_adjustments_that_are_none(change: dict[str, Any]) -> None:
    """CASES 38."""
    body = {"item": open_sale().item.pk, "delta": 1, "reason": "sells well"}
    answer = post(staff("seckill.add_itemadjustment"), UNITS, {**body, **change})
    assert refusal(answer) == (400, "bad_request")
    assert not ItemAdjustment.objects.exists()


def test_nobody_without_the_permission() -> None:
    shop = open_sale()
    nobody = staff()
    now = timezone.now().isoformat()
    for table, body in (
        (UNITS, {"item": shop.item.pk, "delta": 1, "reason": "sells well"}),
        (WINDOWS, {"sale": shop.sale.pk, "opens_at": now, "closes_at": "2099-01-01T00:00:00Z", "reason": "later"}),
    ):
        assert refusal(post(nobody, table, body)) == (403, "change_not_allowed")
        assert refusal(get(nobody, table)) == (403, "change_not_allowed")
        assert refusal(post(nobody, f"{table}1/approve/", {"reason": "it is right"})) == (403, "change_not_allowed")
    assert refusal(post(nobody, f"sales/{shop.sale.pk}/withdraw/")) == (403, "forbidden")


def test_a_sale_is_taken_back_while_nobody_has_bought() -> None:
    operator = staff("seckill.change_saleitem")
    shop = open_sale(units=3)
    answer = post(operator, f"sales/{shop.sale.pk}/withdraw/")
    assert (answer.status, answer.body) == (200, {"sale": shop.sale.pk, "state": "draft"})
    assert (FlashSale.objects.get().state, Stock.objects.get().on_hand) == ("DRAFT", 3)
    assert refusal(post(operator, f"sales/{shop.sale.pk + 1}/withdraw/")) == (404, "not_found")


def test_a_sale_somebody_has_bought_from_is_not_taken_back() -> None:
    shop = open_sale(units=3)
    buy(make_tickets(shop, 1)[0])
    answer = post(staff("seckill.change_saleitem"), f"sales/{shop.sale.pk}/withdraw/")
    assert refusal(answer) == (409, "sale_not_ready")
    assert FlashSale.objects.get().state == "PREHEATED"


def test_a_word_that_is_no_text_at_all_is_not_said_back() -> None:
    """CASES 38: half of a surrogate pair is a string in JSON, and in no encoding."""
    shop = open_sale()
    body = {"item": shop.item.pk, "delta": 1, "reason": "sells well", "counterpart": "\ud800"}
    answer = post(staff("seckill.add_itemadjustment"), UNITS, body)
    assert refusal(answer) == (400, "bad_request")
    assert list(answer.body["errors"]) == ["counterpart"]
