"""CASES 7: posting a form never changes stock, and from preheat on nothing that was promised changes."""

import threading
from contextlib import suppress
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, models
from django.db.models.signals import pre_save
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from inventory.models import Product, Sku, Stock, StockMovement
from seckill.errors import SaleNotReady
from seckill.models import FlashSale, ItemBucket, SaleItem, SalePool
from seckill.preheat import preheat_sale
from tests.support.forms import fields_of
from tests.support.shop import Shop, buy, make_sale, make_tickets, open_sale
from tests.support.state import dump
from tests.support.threads import run_together

FIXED = (FlashSale, SalePool, SaleItem)
WHY = {"why": "a slip of the pen"}


@pytest.fixture
def operator() -> Client:
    """The browser of somebody who may do everything."""
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    return client


def page(row: models.Model, action: str = "change") -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_{action}", args=[row.pk])


def row_of(shop: Shop, table: type[models.Model]) -> models.Model:
    rows: dict[type[models.Model], models.Model] = {FlashSale: shop.sale, SalePool: shop.pool, SaleItem: shop.item}
    return rows[table]


def everything() -> list[dict[str, Any]]:
    """All rows that say what is sold, and how much of it."""
    tables: tuple[type[models.Model], ...] = (FlashSale, SalePool, SaleItem, ItemBucket, Stock, StockMovement)
    return [row for table in tables for row in table._default_manager.order_by("pk").values()]


@pytest.mark.parametrize("table", FIXED)
def test_a_preheated_sale_is_only_shown(operator: Client, table: type[models.Model]) -> None:
    shop = open_sale()
    html = operator.get(page(row_of(shop, table))).content.decode()
    assert 'name="_save"' not in html
    assert 'name="_addanother"' not in html
    assert 'name="units"' not in html


@pytest.mark.parametrize("table", FIXED)
def test_a_form_opened_before_preheat_is_refused_after_it(operator: Client, table: type[models.Model]) -> None:
    """Price, limit, units, SKU and window are what the buyers were promised, whatever an old page still says."""
    shop = make_sale(units=10)
    row = row_of(shop, table)
    form = fields_of(operator.get(page(row)).content)
    preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)
    buy(make_tickets(shop, 1)[0])
    before, in_redis = everything(), dump(shop.bucket)
    changed = {"name": "x", "units": "99", "price": "1.00", "limit_per_buyer": "9"}
    assert operator.post(page(row), form | changed | WHY).status_code == 403
    assert operator.post(page(row, "delete"), {"post": "yes", "why": "old"}).status_code == 403
    assert (everything(), dump(shop.bucket)) == (before, in_redis)


@pytest.mark.parametrize("table", FIXED)
def test_a_preheated_sale_is_not_deleted_from_the_list(operator: Client, table: type[models.Model]) -> None:
    shop = open_sale()
    row = row_of(shop, table)
    before = everything()
    path = reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_changelist")
    operator.post(path, {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes", "why": "old"})
    assert everything() == before


def test_a_draft_is_edited(operator: Client) -> None:
    """The control of the above: before preheat the same forms work."""
    shop = make_sale(units=10)
    for row, change in ((shop.sale, {"name": "n"}), (shop.pool, {"limit_per_buyer": "3"}), (shop.item, {"units": "7"})):
        form = fields_of(operator.get(page(row)).content)
        assert operator.post(page(row), form | change | WHY).status_code == 302
    assert FlashSale.objects.get().name == "n"
    assert (SalePool.objects.get().limit_per_buyer, SaleItem.objects.get().units) == (3, 7)


def test_a_sale_is_made_by_forms_alone(operator: Client) -> None:
    """Sale with its pool, then the item: as an operator does it on the first day."""
    sku = make_sale().item.sku
    add = fields_of(operator.get(reverse("admin:seckill_flashsale_add")).content)
    window = {"opens_at_0": "2100-06-18", "opens_at_1": "10:00", "closes_at_0": "2100-06-18", "closes_at_1": "12:00"}
    pool = {
        "pools-TOTAL_FORMS": "1",
        "pools-0-limit_per_buyer": "2",
        "pools-0-max_queue": "20000",
        "pools-0-bucket_count": "1",
    }
    made = operator.post(reverse("admin:seckill_flashsale_add"), add | window | pool | {"name": "六一八"})
    assert made.status_code == 302
    sale = FlashSale.objects.get(name="六一八")
    assert (sale.state, sale.pools.get().limit_per_buyer) == ("DRAFT", 2)
    item = {"pool": sale.pools.get().pk, "sku": sku.pk, "price": "1.00", "price_again": "1.00", "units": "5"}
    assert operator.post(reverse("admin:seckill_saleitem_add"), item).status_code == 302
    assert SaleItem.objects.get(pool__sale=sale).units == 5


def test_wrong_numbers_are_refused_by_the_form(operator: Client) -> None:
    """CASES 38, on paper: in words beside the field, never as a server error."""
    shop = make_sale(units=10)
    form = fields_of(operator.get(page(shop.item)).content)
    before = everything()
    for name, value in (("units", "0"), ("units", "-1"), ("units", "1.5"), ("units", "9" * 11), ("price", "-0.01")):
        response = operator.post(page(shop.item), form | {name: value} | WHY)
        assert response.status_code == 200, value
        assert list(response.context["adminform"].form.errors) == [name], value
    assert everything() == before


def test_a_window_that_ends_before_it_begins_is_refused_by_the_form(operator: Client) -> None:
    shop = make_sale()
    form = fields_of(operator.get(page(shop.sale)).content)
    before = everything()
    response = operator.post(page(shop.sale), form | {"closes_at_0": "2020-01-01"} | WHY)
    assert response.status_code == 200
    assert list(response.context["adminform"].form.errors) == ["closes_at"]
    assert everything() == before


@pytest.mark.parametrize("table", [Product, Sku])
def test_a_title_saved_late_leaves_the_stock_alone(operator: Client, table: type[models.Model]) -> None:
    """The form is opened at stock 100; 30 are sold; only the title is changed and saved."""
    shop = make_sale(units=100)
    SaleItem.objects.update(units=30)
    row = table._default_manager.get()
    form = fields_of(operator.get(page(row)).content)
    preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)
    numbers, ledger = Stock.objects.values().get(), list(StockMovement.objects.values())
    assert operator.post(page(row), form | {"name": "another"} | WHY).status_code == 302
    assert table._default_manager.values().get()["name"] == "another"
    assert numbers["on_hand"] == 70
    assert (Stock.objects.values().get(), list(StockMovement.objects.values())) == (numbers, ledger)


def test_nothing_is_added_to_a_preheated_sale(operator: Client) -> None:
    """An item or pool added later would be shown as on sale and be in no Redis, for good."""
    running, draft = open_sale(), make_sale()
    item = {"pool": running.pool.pk, "sku": draft.item.sku_id, "price": "1.00", "price_again": "1.00", "units": "5"}
    pool = {"sale": running.sale.pk, "name": "late", "limit_per_buyer": "1", "max_queue": "1", "bucket_count": "1"}
    no_items = {"items-TOTAL_FORMS": "0", "items-INITIAL_FORMS": "0"}
    before = everything()
    adding_item = operator.post(reverse("admin:seckill_saleitem_add"), item)
    adding_pool = operator.post(reverse("admin:seckill_salepool_add"), pool | no_items)
    assert everything() == before
    assert {adding_item.status_code, adding_pool.status_code} <= {200, 403}


@pytest.mark.parametrize(("table", "parent"), [(SaleItem, "pool"), (SalePool, "sale")])
def test_nothing_is_moved_into_a_preheated_sale(operator: Client, table: type[models.Model], parent: str) -> None:
    running, draft = open_sale(), make_sale()
    row = row_of(draft, table)
    form = fields_of(operator.get(page(row)).content)
    before = everything()
    answer = operator.post(page(row), form | {parent: str(getattr(running, parent).pk)} | WHY)
    assert everything() == before
    assert answer.status_code in {200, 403}


def preheat_in_a_thread(shop: Shop) -> None:
    """Preheat from elsewhere; who holds the row makes it give up after a second."""

    def preheat(sale_id: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        with suppress(SaleNotReady):
            preheat_sale(sale_id=sale_id, clock=timezone.now)

    run_together(preheat, [shop.sale.pk])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "change"),
    [(FlashSale, {"name": "x"}), (SalePool, {"limit_per_buyer": "9"}), (SaleItem, {"units": "5"})],
)
def test_a_form_saved_while_the_sale_is_preheated(
    operator: Client, table: type[models.Model], change: dict[str, str]
) -> None:
    """One of the two comes first: the sale is what was preheated, or a draft with the change and no units yet.

    The form has read its row and is about to write all of its columns when the preheat happens.
    """
    shop = make_sale(units=10)
    row = row_of(shop, table)
    form = fields_of(operator.get(page(row)).content)
    draft = table._default_manager.values().get()
    has_begun = threading.Event()

    def preheat_once(**_kwargs: object) -> None:
        if not has_begun.is_set():
            has_begun.set()
            preheat_in_a_thread(shop)

    pre_save.connect(preheat_once, sender=table)
    try:
        operator.post(page(row), form | change | WHY)
    finally:
        pre_save.disconnect(preheat_once, sender=table)
    assert has_begun.is_set()
    is_preheated = ItemBucket.objects.exists()
    assert FlashSale.objects.get().state == ("PREHEATED" if is_preheated else "DRAFT")
    saved = table._default_manager.values().get()
    if is_preheated:
        assert saved | {"state": ""} == draft | {"state": ""}
        assert ItemBucket.objects.get().allocated == SaleItem.objects.get().units
    else:
        assert str(saved[next(iter(change))]) == next(iter(change.values()))
