"""What the table says may be changed is what can be changed, for every part of a sale in every state."""

from collections.abc import Callable, Mapping
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from inventory.changes import ChangeState, approve, submit
from seckill.adjusting import apply_item_adjustment
from seckill.change_tables import ItemAdjustment, WindowChange
from seckill.changeable import EDITABLE, How, What, how_changed
from seckill.errors import SaleNotReady
from seckill.models import FlashSale, SaleItem, SalePool
from seckill.states import SaleState
from seckill.whole_sale import end_sale, pause_sale
from seckill.windows import apply_window_change
from tests.support.forms import fields_of
from tests.support.people import person
from tests.support.shop import Shop, make_sale, open_sale

# The field of the form that shows the part, and another value for it.
FIELDS: Mapping[What, tuple[type[FlashSale | SalePool | SaleItem], str, str]] = {
    What.NAME: (FlashSale, "name", "another"),
    What.PAY_WINDOW: (FlashSale, "pay_window_minutes", "7"),
    What.WINDOW: (FlashSale, "closes_at_0", "2100-01-01"),
    What.LIMIT: (SalePool, "limit_per_buyer", "3"),
    What.SKU: (SaleItem, "sku", ""),
    What.PRICE: (SaleItem, "price", "1600.00"),
    What.UNITS: (SaleItem, "units", "9"),
}


def shop_in(state: SaleState) -> Shop:
    """A sale in a state; what no form of it may change there does not depend on how it came there."""
    shop = open_sale() if state is SaleState.PREHEATED else make_sale()
    FlashSale.objects.update(state=state)
    return shop


def facts() -> list[object]:
    """Everything that buyers were promised."""
    return [row for table in (FlashSale, SalePool, SaleItem) for row in table.objects.order_by("pk").values()]


def is_form_taken(shop: Shop, what: What) -> bool:
    """Post the part's form with another value, as a browser would; tell whether anything was changed."""
    table, field, value = FIELDS[what]
    row = {FlashSale: shop.sale, SalePool: shop.pool, SaleItem: shop.item}[table]
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    page = reverse(f"admin:seckill_{table._meta.model_name}_change", args=[row.pk])
    data = fields_of(client.get(page).content)
    data[field] = value or str(make_sale().item.sku_id)
    if what is What.SKU:
        data["price_again"] = data.get("price", "")
    before = [fact for fact in facts() if fact]
    client.post(page, data)
    return facts() != before


def apply_window(shop: Shop) -> ChangeState:
    sale = FlashSale.objects.get(pk=shop.sale.pk)
    change = WindowChange(
        sale=sale, opens_at=sale.opens_at, closes_at=sale.closes_at + timedelta(hours=1), reason="longer"
    )
    submit(change=change, by=person("add_windowchange"), now=timezone.now())
    by = person("approve_windowchange")
    approve(table=WindowChange, change_id=change.pk, by=by, reason="", now=timezone.now())
    return apply_window_change(change_id=change.pk, clock=timezone.now)


def apply_units(shop: Shop) -> ChangeState:
    change = ItemAdjustment(item=shop.item, delta=-1, reason="fewer")
    submit(change=change, by=person("add_itemadjustment"), now=timezone.now())
    by = person("approve_itemadjustment")
    approve(table=ItemAdjustment, change_id=change.pk, by=by, reason="", now=timezone.now())
    return apply_item_adjustment(adjustment_id=change.pk, clock=timezone.now)


APPROVED: Mapping[What, Callable[[Shop], ChangeState]] = {What.WINDOW: apply_window, What.UNITS: apply_units}


def is_done_at_once(shop: Shop, what: What) -> bool:
    try:
        if what is What.PAUSE:
            pause_sale(sale_id=shop.sale.pk)
        else:
            end_sale(sale_id=shop.sale.pk, actor_id=person().pk, reason="wrong price", clock=timezone.now)
    except SaleNotReady:
        return False
    return True


@pytest.mark.parametrize("state", SaleState)
@pytest.mark.parametrize("what", FIELDS)
def test_a_form_is_taken_exactly_where_the_table_says_freely(state: SaleState, what: What) -> None:
    is_free = how_changed(what=what, state=state) is How.FREELY
    assert is_form_taken(shop_in(state), what) is is_free


@pytest.mark.parametrize("state", SaleState)
@pytest.mark.parametrize("what", APPROVED)
def test_an_approval_counts_exactly_where_the_table_says_so(state: SaleState, what: What) -> None:
    is_possible = how_changed(what=what, state=state) is How.BY_APPROVAL
    assert APPROVED[what](shop_in(state)) is (ChangeState.APPLIED if is_possible else ChangeState.REFUSED)


@pytest.mark.parametrize("state", SaleState)
@pytest.mark.parametrize("what", [What.PAUSE, What.END])
def test_it_is_done_at_once_exactly_where_the_table_says_so(state: SaleState, what: What) -> None:
    assert is_done_at_once(shop_in(state), what) is (how_changed(what=what, state=state) is How.AT_ONCE)


def test_every_part_is_tried_in_every_way_it_has() -> None:
    hows = {what: {how_changed(what=what, state=state) for state in SaleState} for what in What}
    assert {what for what in What if How.FREELY in hows[what]} == set(FIELDS)
    assert {what for what in What if How.BY_APPROVAL in hows[what]} == set(APPROVED)
    assert {what for what in What if How.AT_ONCE in hows[what]} == {What.PAUSE, What.END}
    assert {SaleState.DRAFT, SaleState.SCHEDULED} == EDITABLE
