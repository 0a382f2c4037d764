"""The shop window over HTTP: public, cacheable, and never dark because a server is."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.staticfiles.finders import find
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from benchmarks.catalogue import PICTURES, PRODUCTS
from inventory.models import Product, Sku
from orders.models import Order
from orders.services import cancel_order
from rest.memory import forget_everything
from seckill.gate.connection import raw_client
from seckill.models import FlashSale
from seckill.pausing import pause_item
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from tests.support.aliases import NOWHERE, point
from tests.support.api import read, refusal, session_of
from tests.support.rows import make_sku
from tests.support.shop import Shop, buy, make_buyers, make_sale, make_tickets, open_sale

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse as ClientResponse

HOUR = timedelta(hours=1)


def get(path: str, *, etag: str = "", client: Client | None = None) -> "ClientResponse":
    headers = {"If-None-Match": etag} if etag else {}
    return (client or Client()).get(f"/api/v1/{path}", headers=headers)


def public(path: str, max_age: int = 1) -> dict[str, Any]:
    """Read an answer that caches may keep; nothing in it may be about one visitor (CASES 40d)."""
    response = get(path, client=session_of(make_buyers(1)[0]))
    assert (response.status_code, response["Cache-Control"]) == (200, f"public, max-age={max_age}")
    assert not response.cookies
    assert "Cookie" not in response["Vary"]
    body: dict[str, Any] = json.loads(response.content)
    return body


def shown(shop: Shop) -> dict[str, Any]:
    """What is left of a sale's first item, looked at anew."""
    forget_everything()
    availability: dict[str, Any] = public(f"sales/{shop.sale.pk}/")["items"][0]["availability"]
    return availability


def test_a_sale_says_what_a_buyer_wants_to_know() -> None:
    shop = open_sale(units=10, limit=2, opens_in=HOUR, closes_in=2 * HOUR)
    FlashSale.objects.update(rules="One each.\n每人一件。")
    sale = FlashSale.objects.get()
    sku = Sku.objects.select_related("product").get()
    body = public(f"sales/{sale.pk}/")
    assert abs(datetime.fromisoformat(body.pop("server_time")) - timezone.now()) < timedelta(seconds=5)
    assert body == {
        "id": sale.pk,
        "name": "秒杀 sale",
        "rules": "One each.\n每人一件。",
        "state": "preheated",
        "opens_at": sale.opens_at.isoformat(),
        "closes_at": sale.closes_at.isoformat(),
        "pay_window_minutes": 15,
        "items": [
            {
                "id": shop.item.pk,
                "pool": shop.pool.pk,
                "sku": {
                    "id": sku.pk,
                    "code": sku.code,
                    "name": "500 ml",
                    "list_price": "2999.00",
                    "product": {"id": sku.product.pk, "name": "飞天茅台 53°", "description": "", "picture": ""},
                },
                "price": "1499.00",
                "units": 10,
                "limit_per_buyer": 2,
                "is_paused": False,
                "availability": {"level": "plenty", "unpaid_until": None},
            }
        ],
    }


def test_a_sale_is_asked_for_again_by_its_etag() -> None:
    shop = open_sale(units=1)
    first = get(f"sales/{shop.sale.pk}/")
    forget_everything()
    same = get(f"sales/{shop.sale.pk}/", etag=first["ETag"])
    assert (same.status_code, same.content, same["ETag"]) == (304, b"", first["ETag"])
    buy(make_tickets(shop, 1)[0])
    forget_everything()
    assert get(f"sales/{shop.sale.pk}/", etag=first["ETag"]).status_code == 200


def test_a_crowd_costs_one_look_a_second(django_assert_num_queries: Callable[[int], Any]) -> None:
    shop = open_sale()
    get(f"sales/{shop.sale.pk}/")
    get("sales/")
    with django_assert_num_queries(0):
        assert get(f"sales/{shop.sale.pk}/").status_code == 200
        assert get("sales/").status_code == 200


@pytest.mark.parametrize(
    ("state", "opens_in", "closes_in", "told"),
    [
        ("SCHEDULED", HOUR, 2 * HOUR, "scheduled"),
        ("PREHEATED", HOUR, 2 * HOUR, "preheated"),
        ("PREHEATED", -HOUR, HOUR, "live"),
        ("PREHEATED", -2 * HOUR, -HOUR, "ended"),
        ("ARCHIVING", -2 * HOUR, -HOUR, "ended"),
        ("ARCHIVED", -2 * HOUR, -HOUR, "ended"),
    ],
)
def test_states(state: str, opens_in: timedelta, closes_in: timedelta, told: str) -> None:
    sale = make_sale(opens_in=opens_in, closes_in=closes_in).sale
    FlashSale.objects.update(state=state)
    assert public(f"sales/{sale.pk}/")["state"] == told
    for asked in ("scheduled", "preheated", "live", "ended"):
        found = public(f"sales/?state={asked}")["results"]
        assert [one["id"] for one in found] == ([sale.pk] if asked == told else []), asked


def test_drafts_are_nobody_s_business() -> None:
    sale = make_sale().sale
    assert refusal(read(get(f"sales/{sale.pk}/"))) == (404, "not_found")
    assert refusal(read(get(f"sales/{sale.pk + 1}/"))) == (404, "not_found")
    assert refusal(read(get(f"sales/{10**30}/"))) == (404, "not_found")
    assert public("sales/")["results"] == []


def test_sales_come_in_pages_the_last_opening_first() -> None:
    sales = [make_sale(opens_in=-hours * HOUR).sale.pk for hours in (3, 1, 2)]
    FlashSale.objects.update(state="SCHEDULED")
    first = public("sales/?page_size=2")
    assert [one["id"] for one in first["results"]] == [sales[1], sales[2]]
    second = public(f"sales/?page_size=2&after={first['next_after']}")
    assert ([one["id"] for one in second["results"]], second["next_after"]) == ([sales[0]], None)
    assert len(first["results"][0]["items"]) == 1


def test_levels() -> None:
    shop = open_sale(units=40)
    tickets = iter(make_tickets(shop, 40))
    told = []
    for left in (40, 9, 8, 3, 2, 1, 0):
        while int(raw_client().hget(shop.bucket.keys[0], f"{shop.item.pk}:left")) > left:
            buy(next(tickets))
        told.append(shown(shop)["level"])
    assert told == ["plenty", "plenty", "few", "few", "last", "last", "none_left"]


def test_taken_and_not_yet_paid_is_not_sold_out() -> None:
    """Law 6: until when units may come back is said while they may, and not a moment longer."""
    shop = open_sale(units=2)
    for ticket in make_tickets(shop, 2):
        buy(ticket)
    queued = shown(shop)
    assert queued["level"] == "none_left"
    wait = datetime.fromisoformat(queued["unpaid_until"]) - timezone.now()
    assert timedelta(minutes=14) < wait <= timedelta(minutes=15)
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    first, second = Order.objects.order_by("pk")
    later = first.pay_by_at + timedelta(minutes=1)
    Order.objects.filter(pk=second.pk).update(pay_by_at=later)
    assert shown(shop) == {"level": "none_left", "unpaid_until": later.isoformat()}
    Order.objects.filter(pk=second.pk).update(state="PAID")
    assert shown(shop) == {"level": "none_left", "unpaid_until": first.pay_by_at.isoformat()}
    Order.objects.filter(pk=first.pk).update(pay_by_at=timezone.now() - HOUR)
    assert shown(shop) == {"level": "none_left", "unpaid_until": None}
    Order.objects.filter(pk=first.pk).update(pay_by_at=timezone.now() + HOUR)
    cancel_order(number=first.number, buyer_id=first.buyer_id, now=timezone.now())
    return_closed_orders(clock=timezone.now)
    assert shown(shop) == {"level": "last", "unpaid_until": None}


def test_another_sale_s_unpaid_orders_do_not_count() -> None:
    shop = open_sale(units=1)
    other = open_sale(units=1)
    for one in (shop, other):
        buy(make_tickets(one, 1)[0])
        settle_bucket(bucket=one.bucket, clock=timezone.now)
    Order.objects.filter(number__startswith=f"{shop.pool.pk}-").update(state="PAID")
    Order.objects.update(sku_id=shop.item.sku_id)
    assert shown(shop) == {"level": "none_left", "unpaid_until": None}


def test_nothing_is_said_of_what_is_not_on_sale() -> None:
    shop = make_sale()
    FlashSale.objects.update(state="SCHEDULED")
    assert public(f"sales/{shop.sale.pk}/")["items"][0]["availability"] is None


def test_a_pause_is_shown() -> None:
    shop = open_sale()
    pause_item(item_id=shop.item.pk)
    assert public(f"sales/{shop.sale.pk}/")["items"][0]["is_paused"] is True


def delete(shop: Shop) -> None:
    raw_client().delete(*shop.bucket.keys)


def spoil(shop: Shop) -> None:
    raw_client().hset(shop.bucket.keys[0], f"{shop.item.pk}:left", "1e3x")


def freeze(shop: Shop) -> None:
    raw_client().hset(shop.bucket.keys[1], "frozen", "token")


def change_type(shop: Shop) -> None:
    raw_client().delete(shop.bucket.keys[0])
    raw_client().set(shop.bucket.keys[0], "10")


def age(shop: Shop) -> None:
    raw_client().hset(shop.bucket.keys[1], "epoch", "99")


@pytest.mark.parametrize("damage", [delete, spoil, freeze, change_type, age])
def test_a_damaged_bucket_is_unknown(damage: Callable[[Shop], None]) -> None:
    shop = open_sale()
    damage(shop)
    assert shown(shop) == {"level": "unknown", "unpaid_until": None}


def test_redis_away_is_unknown(settings: Settings) -> None:
    """The shop window stays open."""
    shop = open_sale()
    point(settings, "stock", NOWHERE)
    assert shown(shop) == {"level": "unknown", "unpaid_until": None}


def test_products_and_their_variants() -> None:
    sku = make_sku()
    hidden = make_sku()
    Product.objects.filter(pk=hidden.product_id).update(is_active=False)
    Product.objects.filter(pk=sku.product_id).update(picture="pictures/liquor.svg", description="500 ml")
    product = {
        "id": sku.product_id,
        "name": "飞天茅台 53°",
        "description": "500 ml",
        "picture": "/static/pictures/liquor.svg",
    }
    variant = {"id": sku.pk, "code": sku.code, "name": "500 ml", "list_price": "2999.00"}
    assert public("products/", 30) == {"results": [{**product, "skus": [variant]}], "next_after": None}
    assert public(f"products/{sku.product_id}/", 30) == {**product, "skus": [variant]}
    assert public("skus/", 30) == {"results": [{**variant, "product": product}], "next_after": None}
    assert public(f"skus/?product={sku.product_id}&code={sku.code}", 30)["results"][0]["id"] == sku.pk
    assert public("skus/?code=nothing", 30)["results"] == []
    assert public("products/?search=茅台", 30)["results"][0]["id"] == sku.product_id
    assert public("products/?search=手机", 30)["results"] == []
    assert refusal(read(get(f"products/{hidden.product_id}/"))) == (404, "not_found")


@pytest.mark.parametrize("query", ["page_size=0", "page_size=101", "page_size=１", "page_size=", "after=-1", "after=x"])
@pytest.mark.parametrize("path", ["sales/", "products/", "skus/"])
def test_pages_that_are_none(path: str, query: str) -> None:
    assert refusal(read(get(f"{path}?{query}"))) == (400, "bad_request")


def test_filters_that_are_none() -> None:
    for path in ("sales/?state=draft", "sales/?state=", "skus/?product=x", "skus/?code=%00", f"skus/?code={'x' * 65}"):
        assert refusal(read(get(path))) == (400, "bad_request"), path


def test_pictures_are_there_and_harmless() -> None:
    assert len(PICTURES) == len(PRODUCTS)
    for name in PICTURES:
        path = find(f"pictures/{name}.svg")
        assert isinstance(path, str)
        text = Path(path).read_text()
        assert "<script" not in text
        assert "href" not in text
        assert len(text) < 4_000


@pytest.mark.parametrize("picture", ["javascript:alert(1)", "http://x/y.png", "/etc/passwd.png", "../x.svg", "x.html"])
def test_a_picture_is_a_static_file_or_an_https_address(picture: str) -> None:
    product = Product(name="x", picture=picture)
    with pytest.raises(ValidationError):
        product.clean_fields()
    Product(name="x", picture="https://cdn.example/a.png").clean_fields()
    Product(name="x", picture="pictures/phone.svg").clean_fields()
