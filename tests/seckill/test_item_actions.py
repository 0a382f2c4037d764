"""One item paused and resumed from the sale's page: the others go on, a reason is asked for, the log is told."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from actions.models import ActionEntry
from seckill.errors import GateUnavailable
from seckill.gate import gate
from seckill.models import FlashSale, SaleItem
from tests.seckill.test_sale_pages import QUERIES_MAX, browser, page, words
from tests.support.shop import Shop, buy, make_buyers, make_sale, open_sale, ticket_of


@pytest.fixture
def operator() -> Client:
    return browser("view_flashsale", "change_flashsale")


def address(shop: Shop, name: str, *, number: int = 0) -> str:
    return reverse("desk_item_action", args=[shop.sale.pk, shop.items[number].pk, name])


def act(client: Client, shop: Shop, name: str, reason: str = "wrong picture") -> str:
    return words(client.post(address(shop, name), {"reason": reason}, follow=True))


def test_one_item_is_paused_and_resumed_while_the_other_goes_on(operator: Client) -> None:
    shop = open_sale(items=2)
    paused, other = (ticket_of(shop, buyer, item=i) for i, buyer in zip(shop.items, make_buyers(2), strict=True))
    assert f"{shop.item.sku.code} is paused." in act(operator, shop, "pause")
    assert buy(paused) == "Paused"
    assert "-" in buy(other)
    seen = words(operator.get(page("desk_sale", shop)))
    assert address(shop, "resume") in seen
    assert address(shop, "pause", number=1) in seen
    assert f"{shop.item.sku.code} is on sale again." in act(operator, shop, "resume")
    assert "-" in buy(paused)
    entries = ActionEntry.objects.order_by("pk").values_list("what", "table", "key", "reason", "stage")
    told = [("seckill.saleitem", str(shop.item.pk), "wrong picture")] * 2
    assert [entry[1:4] for entry in entries] == told * 2
    assert [entry[0] for entry in entries] == ["seckill.pause"] * 2 + ["seckill.resume"] * 2


def test_the_page_costs_little_and_changes_nothing(operator: Client) -> None:
    shop = open_sale(items=12)
    with CaptureQueriesContext(connection) as queries:
        seen = operator.get(address(shop, "pause"))
    assert len(queries) <= QUERIES_MAX
    assert "the others go on" in words(seen)
    act(operator, shop, "pause", reason=" ")
    assert not SaleItem.objects.filter(is_paused=True).exists()


def test_what_is_not_there_or_not_on_sale_is_refused(operator: Client) -> None:
    shop, other = make_sale(), open_sale()
    assert "this cannot be done now" in act(operator, shop, "pause")
    assert not SaleItem.objects.filter(is_paused=True).exists()
    assert operator.get(address(other, "burn")).status_code == 404
    strange = reverse("desk_item_action", args=[shop.sale.pk, other.item.pk, "pause"])
    assert operator.post(strange, {"reason": "because"}).status_code == 404


def test_who_may_only_look_can_pause_nothing() -> None:
    shop = open_sale()
    auditor = browser("view_flashsale")
    assert address(shop, "pause") not in words(auditor.get(page("desk_sale", shop)))
    assert auditor.get(address(shop, "pause")).status_code == 403
    assert auditor.post(address(shop, "pause"), {"reason": "because"}).status_code == 403
    assert not SaleItem.objects.filter(is_paused=True).exists()


def test_a_pause_that_redis_did_not_hear_is_said_to_be_stored(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = open_sale()

    def away(**_: object) -> None:
        raise GateUnavailable("away")

    monkeypatch.setattr(gate, "pause", away)
    assert "Redis could not be told yet" in act(operator, shop, "pause")
    assert SaleItem.objects.get().is_paused


def test_an_ended_sale_has_nothing_to_pause(operator: Client) -> None:
    shop = open_sale()
    FlashSale.objects.update(closes_at=timezone.now())
    assert address(shop, "pause") not in words(operator.get(page("desk_sale", shop)))
