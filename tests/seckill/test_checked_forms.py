"""A sale that is changed on its own pages is checked as one that is made: a scheduled one is preheated by itself."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from actions.models import ActionEntry
from inventory.models import Sku
from inventory.services import receive
from seckill.models import FlashSale, SaleItem, SalePool
from seckill.states import SaleState
from tests.seckill.test_sale_pages import words
from tests.support.forms import fields_of
from tests.support.shop import Shop, make_sale, open_sale

HOUR = timedelta(hours=1)


@pytest.fixture
def root() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def shop() -> Shop:
    """A scheduled sale of one item at 1,499.00 of 2,999.00, which is below half; the warehouse has 10."""
    shop = make_sale(units=10, opens_in=HOUR, closes_in=2 * HOUR)
    FlashSale.objects.update(state=SaleState.SCHEDULED)
    return shop


def address(row: FlashSale | SalePool | SaleItem) -> str:
    return reverse(f"admin:seckill_{row._meta.model_name}_change", args=[row.pk])


def change(client: Client, row: FlashSale | SalePool | SaleItem, **changed: str) -> str:
    """Change a row on its page as a browser does; return what the page says then."""
    data = {
        **fields_of(client.get(address(row)).content),
        "why": "a slip of the pen",
        **{key.replace("__", "-"): to for key, to in changed.items()},
    }
    return words(client.post(address(row), data, follow=True))


def price() -> Decimal:
    return SaleItem.objects.get().price


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"price": "14.99"}, "14.99 is below half of the list price"),
        ({"price": "14.99", "price_again": "14.90"}, "The two prices differ: 14.99 and 14.90"),
        ({"price": "3000"}, "3000 is above the list price"),
        ({"units": "11"}, "the warehouse has 10. Plan 10 or fewer"),
    ],
)
def test_an_item_that_would_be_a_mistake_is_not_saved(
    root: Client, shop: Shop, changed: dict[str, str], said: str
) -> None:
    assert said in change(root, shop.item, **changed)
    assert (price(), SaleItem.objects.get().units) == (Decimal("1499.00"), 10)
    inline = {f"items__0__{name}": value for name, value in changed.items()}
    assert said in change(root, shop.pool, **inline)
    assert (price(), SaleItem.objects.get().units) == (Decimal("1499.00"), 10)


def test_a_low_price_typed_twice_is_saved_and_told_once(root: Client, shop: Shop) -> None:
    change(root, shop.item, price="14.99", price_again="14.99")
    assert price() == Decimal("14.99")
    entry = ActionEntry.objects.get()
    assert (entry.before, entry.after) == ({"price": "1499.00"}, {"price": "14.99"})
    change(root, shop.pool, items__0__price="15.00", items__0__price_again="15.00")
    assert price() == Decimal("15.00")


def test_what_was_checked_before_is_not_asked_for_again(root: Client, shop: Shop) -> None:
    """Fewer units of a cheap item: its price was typed twice when it was made."""
    change(root, shop.item, units="9")
    assert SaleItem.objects.get().units == 9


def test_a_cheap_price_moved_to_a_dearer_sku_is_asked_for_again(root: Client, shop: Shop) -> None:
    dear = Sku.objects.create(product=shop.item.sku.product, code="DEAR", name="5 l", list_price=Decimal("9999.00"))
    receive(sku_id=dear.pk, units=10, reference="dear", now=timezone.now())
    assert "1499.00 is below half of the list price of DEAR" in change(root, shop.item, sku=str(dear.pk))
    change(root, shop.item, sku=str(dear.pk), price_again="1499.00")
    assert SaleItem.objects.get().sku_id == dear.pk


def test_an_item_is_compared_with_the_others_of_its_sale_as_they_are_stored(root: Client) -> None:
    shop = make_sale(units=10, items=3)
    SaleItem.objects.update(price=Decimal("600.00"))
    said = change(root, shop.item, price="2000")
    assert "2000 is 67 % of the list price" in said
    assert "the other variants of the product stand at 20 %" in said


def test_a_window_upside_down_or_over_is_told_in_words(root: Client, shop: Shop) -> None:
    assert "The sale closes before it opens. Choose a later end." in change(root, shop.sale, closes_at_0="2020-01-01")
    over = change(root, shop.sale, opens_at_0="2020-01-01", closes_at_0="2020-01-02")
    assert "The whole window is in the past" in over
    assert FlashSale.objects.get().closes_at == shop.sale.closes_at


def test_a_name_is_mended_while_the_window_is_over(root: Client, shop: Shop) -> None:
    now = timezone.now()
    FlashSale.objects.update(opens_at=now - 2 * HOUR, closes_at=now - HOUR)
    change(root, shop.sale, name="another")
    assert FlashSale.objects.get().name == "another"


def test_a_limit_that_is_none_is_told_in_words(root: Client, shop: Shop) -> None:
    assert "A limit of 1001 is no limit" in change(root, shop.pool, limit_per_buyer="1001")
    assert "A limit of 1001 is no limit" in change(root, shop.sale, pools__0__limit_per_buyer="1001")
    assert SalePool.objects.get().limit_per_buyer == 1


def test_what_is_fixed_has_no_second_price(root: Client) -> None:
    shop = open_sale()
    for row in (shop.item, shop.pool):
        seen = words(root.get(address(row)))
        assert "1499.00" in seen
        assert "price again" not in seen.lower()
