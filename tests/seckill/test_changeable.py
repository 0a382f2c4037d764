"""What the table says may be changed is what can be changed, for every part of a sale in every state."""

from collections.abc import Callable, Mapping
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from actions.models import ActionEntry, Stage
from inventory.changes import ChangeState, approve, submit
from seckill.adjusting import apply_item_adjustment
from seckill.change_tables import ItemAdjustment, WindowChange
from seckill.changeable import EDITABLE, How, What, how_changed
from seckill.models import FlashSale, SaleItem, SalePool
from seckill.rebuild import rebuild_bucket
from seckill.states import SalePhase, SaleState
from seckill.windows import apply_window_change
from tests.support.forms import fields_of
from tests.support.people import person
from tests.support.shop import Shop, make_sale, open_sale

# The field of the form that shows the part, and another value for it.
FIELDS: Mapping[What, tuple[type[FlashSale | SalePool | SaleItem], str, str]] = {
    What.NAME: (FlashSale, "name", "another"),
    What.PAY_WINDOW: (FlashSale, "pay_window_minutes", "7"),
    What.OPENING: (FlashSale, "opens_at_0", "2020-01-01"),
    What.CLOSING: (FlashSale, "closes_at_0", "2100-01-01"),
    What.LIMIT: (SalePool, "limit_per_buyer", "3"),
    What.SKU: (SaleItem, "sku", ""),
    What.PRICE: (SaleItem, "price", "1600.00"),
    What.UNITS: (SaleItem, "units", "9"),
}


HOUR = timedelta(hours=1)
WINDOWS = {SalePhase.PREHEATED: (HOUR, 2 * HOUR), SalePhase.LIVE: (-HOUR, HOUR), SalePhase.ENDED: (-2 * HOUR, -HOUR)}


def shop_in(phase: SalePhase) -> Shop:
    """A sale in a phase; what no form of it may change there does not depend on how it came there."""
    if phase not in WINDOWS:
        shop = make_sale()
        FlashSale.objects.update(state=phase.value.upper())
        return shop
    shop, (opens_in, closes_in) = open_sale(), WINDOWS[phase]
    now = timezone.now()
    FlashSale.objects.update(opens_at=now + opens_in, closes_at=now + closes_in)
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
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
    data |= {field: value or str(make_sale().item.sku_id), "why": "it is tried"}
    if what is What.SKU:
        data["price_again"] = data.get("price", "")
    before = [fact for fact in facts() if fact]
    client.post(page, data)
    return facts() != before


def apply_window(shop: Shop, **moved: timedelta) -> ChangeState:
    """Ask for another window and approve it, whatever the page would say."""
    sale = FlashSale.objects.get(pk=shop.sale.pk)
    window = {"opens_at": sale.opens_at, "closes_at": sale.closes_at}
    window |= {name: window[name] + by for name, by in moved.items()}
    change = WindowChange(sale=sale, reason="another window", **window)
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


APPROVED: Mapping[What, Callable[[Shop], ChangeState]] = {
    What.OPENING: lambda shop: apply_window(shop, opens_at=-HOUR / 2),
    What.CLOSING: lambda shop: apply_window(shop, closes_at=3 * HOUR),
    What.UNITS: apply_units,
}
ACTIONS_OF = {What.PAUSE: ("pause", "resume"), What.END: ("end",), What.WITHDRAW: ("withdraw",)}


def is_done_at_once(shop: Shop, name: str) -> bool:
    """Press the button of the sale's page, with a reason; tell whether the log says that it is done."""
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    client.post(reverse("desk_sale_action", args=[shop.sale.pk, name]), {"reason": "wrong price"})
    return ActionEntry.objects.filter(what=f"seckill.{name}", stage=Stage.DONE).exists()


@pytest.mark.parametrize("phase", SalePhase)
@pytest.mark.parametrize("what", FIELDS)
def test_a_form_is_taken_exactly_where_the_table_says_freely(phase: SalePhase, what: What) -> None:
    is_free = how_changed(what=what, phase=phase) is How.FREELY
    assert is_form_taken(shop_in(phase), what) is is_free


@pytest.mark.parametrize("phase", SalePhase)
@pytest.mark.parametrize("what", APPROVED)
def test_an_approval_counts_exactly_where_the_table_says_so(phase: SalePhase, what: What) -> None:
    is_possible = how_changed(what=what, phase=phase) is How.BY_APPROVAL
    assert APPROVED[what](shop_in(phase)) is (ChangeState.APPLIED if is_possible else ChangeState.REFUSED)


@pytest.mark.parametrize("phase", SalePhase)
@pytest.mark.parametrize(("what", "name"), [(what, name) for what, names in ACTIONS_OF.items() for name in names])
def test_it_is_done_at_once_exactly_where_the_table_says_so(phase: SalePhase, what: What, name: str) -> None:
    assert is_done_at_once(shop_in(phase), name) is (how_changed(what=what, phase=phase) is How.AT_ONCE)


def test_every_part_is_tried_in_every_way_it_has() -> None:
    hows = {what: {how_changed(what=what, phase=phase) for phase in SalePhase} for what in What}
    assert {what for what in What if How.FREELY in hows[what]} == set(FIELDS)
    assert {what for what in What if How.BY_APPROVAL in hows[what]} == set(APPROVED)
    assert {what for what in What if How.AT_ONCE in hows[what]} == set(ACTIONS_OF)
    assert {SaleState.DRAFT, SaleState.SCHEDULED} == EDITABLE
