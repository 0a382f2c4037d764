"""The buyers' pages as the server makes them; what moves on them is tested in a browser (tests/browser)."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.test import Client
from django.utils import timezone

from inventory.models import Product
from seckill import pages
from seckill.settlement import settle_bucket
from seckill.texts import TEXTS
from tests.support.api import session_of
from tests.support.shop import Shop, buy, make_buyers, make_sale, open_sale, ticket_of

STATIC = Path(__file__).resolve().parent.parent.parent / "seckill" / "static" / "shop"
WEIGHT_MAX = 100_000


def sell(shop: Shop, buyer: User) -> str:
    number = buy(ticket_of(shop, buyer))
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    return number


def text_of(client: Client, path: str, status: int = 200) -> str:
    response = client.get(path)
    assert response.status_code == status
    return response.content.decode()


def test_the_front_page_sorts_the_sales() -> None:
    make_sale(opens_in=timedelta(hours=1), closes_in=timedelta(hours=2))  # a draft: nobody sees it
    live, coming = open_sale(), open_sale(opens_in=timedelta(hours=1), closes_in=timedelta(hours=2))
    over = open_sale(opens_in=timedelta(hours=-2))
    type(over.sale).objects.filter(pk=over.sale.pk).update(closes_at=timezone.now())
    html = text_of(Client(), "/")
    links = re.findall(r'href="(/sales/\d+/)"', html)
    assert links == [f"/sales/{shop.sale.pk}/" for shop in (live, coming, over)]
    assert html.index("On sale now") < html.index("Coming soon") < html.index(">Over<")
    assert "¥1,499.00" in html


def test_rules_limit_units_and_time_to_pay_stand_there_before_the_opening() -> None:
    shop = open_sale(units=7, limit=2, opens_in=timedelta(hours=1), closes_in=timedelta(hours=2))
    type(shop.sale).objects.update(rules="Two a head.")
    html = text_of(Client(), f"/sales/{shop.sale.pk}/")
    for words in ("Two a head.", "<dd>7</dd>", "<dd>2</dd>", "15 min", "Pay within 15 minutes"):
        assert words in html
    assert f'href="/accounts/login/?next=/sales/{shop.sale.pk}/"' in html
    assert "<button" not in html.split("data-item")[1].split("</section>")[0]


def test_who_is_logged_in_has_a_button_that_is_still_grey() -> None:
    shop = open_sale(limit=3)
    html = text_of(session_of(make_buyers(1)[0]), f"/sales/{shop.sale.pk}/")
    assert re.search(r'class="button buy"\s+aria-disabled="true"', html)
    assert [int(number) for number in re.findall(r'<option value="(\d+)"', html)] == [1, 2, 3]


@pytest.mark.parametrize("path", ["/sales/999/", "/nowhere/"])
def test_what_is_not_there_says_so_in_the_shops_own_page(path: str) -> None:
    assert "This page does not exist" in text_of(Client(), path, 404)


def test_a_bug_has_a_page_of_the_shops_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "front", None)
    client = Client(raise_request_exception=False)
    assert "What you have bought is not lost" in text_of(client, "/", 500)


def test_a_draft_is_not_there() -> None:
    text_of(Client(), f"/sales/{make_sale().sale.pk}/", 404)


def test_orders_are_for_who_is_logged_in() -> None:
    for path in ("/orders/", "/orders/1-0-abcdefghijklmnop/"):
        response = Client().get(path)
        assert (response.status_code, response["Location"]) == (302, f"/accounts/login/?next={path}")
        assert "no-store" in response["Cache-Control"]


def test_another_persons_order_is_not_there() -> None:
    shop = open_sale()
    buyer, other = make_buyers(2)
    number = sell(shop, buyer)
    assert number in text_of(session_of(buyer), f"/orders/{number}/")
    text_of(session_of(other), f"/orders/{number}/", 404)
    text_of(session_of(other), f"/orders/?before={number}", 404)
    assert number not in text_of(session_of(other), "/orders/")
    for guess in ("x", "1-0-aaaaaaaaaaaaaaaa"):
        text_of(session_of(buyer), f"/orders/{guess}/", 404)


def test_an_order_that_is_being_written_has_a_page_already() -> None:
    shop = open_sale()
    buyer, other = make_buyers(2)
    number = buy(ticket_of(shop, buyer))
    assert 'data-written="0"' in text_of(session_of(buyer), f"/orders/{number}/")
    text_of(session_of(other), f"/orders/{number}/", 404)
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert 'data-written="1"' in text_of(session_of(buyer), f"/orders/{number}/")


def test_my_orders_go_on_on_further_pages() -> None:
    shop = open_sale(units=30, limit=30)
    (buyer,) = make_buyers(1)
    numbers = [sell(shop, buyer) for _ in range(21)]
    first = text_of(session_of(buyer), "/orders/")
    shown = re.findall(r'href="/orders/([^"]+)/"', first)
    assert shown == numbers[:0:-1]
    assert f'href="?before={numbers[1]}"' in first
    assert re.findall(r'href="/orders/([^"]+)/"', text_of(session_of(buyer), f"/orders/?before={numbers[1]}")) == [
        numbers[0]
    ]


def test_pages_are_kept_by_no_shared_cache_and_have_nothing_inline() -> None:
    shop = open_sale()
    buyer = session_of(make_buyers(1)[0])
    for path in ("/", f"/sales/{shop.sale.pk}/", "/orders/"):
        response = buyer.get(path)
        assert {"no-store"} <= set(re.split(", *", response["Cache-Control"])) or "private" in response["Cache-Control"]
        assert "unsafe" not in response["Content-Security-Policy"]
        html = response.content.decode()
        assert re.search(r"<style|style=|<script>|\son[a-z]+=|javascript:", html) is None
        assert all('src="' in tag for tag in re.findall(r"<script[^>]*>", html))


def test_pages_are_only_read() -> None:
    assert Client().post("/").status_code == 405


def test_the_first_load_is_light() -> None:
    """Under 100 KB without pictures, and without counting on compression."""
    shop = open_sale()
    Product.objects.update(picture="pictures/liquor.svg")
    html = text_of(session_of(make_buyers(1)[0]), f"/sales/{shop.sale.pk}/")
    files = set(re.findall(r'(?:href|src)="/static/(shop/[^"]+\.(?:js|css))"', html))
    assert modules_from("sale.js") <= {name.removeprefix("shop/") for name in files} | {"challenge-worker.js"}
    weight = len(html.encode()) + sum(Path(str(finders.find(name))).stat().st_size for name in files)
    assert weight < WEIGHT_MAX


def modules_from(name: str) -> set[str]:
    """All modules that one loads, itself among them."""
    found = {name}
    for further in re.findall(r'from "\./([a-z0-9-]+\.js)"', (STATIC / name).read_text()):
        found |= modules_from(further)
    return found


def words_in(call: str, source: str) -> list[str]:
    """The words a call may say: its first argument, or either end of a condition there."""
    found = re.findall(call, source)
    return [word for given in found for word in re.findall(r'(?:^|[?:] )"([a-z_]+)"', given.split("{")[0])]


def test_scripts_say_only_what_is_there_to_be_said() -> None:
    """Each key a script names is a text, and each text is named by a script."""
    source = "\n".join(path.read_text() for path in STATIC.glob("*.js"))
    named = set(words_in(r"\bt\(([^()]*)", source)) | {f"state_{key}" for key in words_in(r"\btell\(([^()]*)", source)}
    assert len(named) > 40
    assert named <= set(TEXTS)
    prefixes = {*re.findall(r"`([a-z]+_)\$\{", source), "order_"}
    loose = [key for key in TEXTS if f'"{key}"' not in source and not key.startswith(tuple(prefixes))]
    assert loose == []


def test_texts_come_with_the_page() -> None:
    html = text_of(Client(), "/")
    found = re.search(r'<template id="texts" data-texts="([^"]*)"', html)
    assert found is not None
    assert json.loads(found[1].replace("&quot;", '"').replace("&#x27;", "'")).keys() == TEXTS.keys()
