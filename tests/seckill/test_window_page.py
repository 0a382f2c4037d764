"""The page that asks for another window: what it refuses in words, and what it leaves alone."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from inventory.changes import ChangeState, approve
from seckill.change_tables import WindowChange
from seckill.models import FlashSale
from seckill.windows import apply_window_change
from tests.seckill.test_sale_pages import HOUR, browser, page, words
from tests.support.forms import fields_of
from tests.support.people import person
from tests.support.shop import Shop, make_sale, open_sale

FORMAT = "%Y-%m-%dT%H:%M"


@pytest.fixture
def operator() -> Client:
    return browser("view_flashsale", "add_windowchange")


def in_shop(away: timedelta) -> str:
    """An instant from now, as it is typed."""
    return (timezone.localtime() + away).strftime(FORMAT)


def ask(client: Client, shop: Shop, **changed: str) -> str:
    """Fill in the page as a browser does, and send it."""
    address = page("desk_sale_window", shop)
    data = {**fields_of(client.get(address).content), "reason": "more time", **changed}
    return words(client.post(address, data, follow=True))


def applied(change: WindowChange) -> ChangeState:
    approve(
        table=WindowChange,
        change_id=change.pk,
        by=person("approve_windowchange"),
        reason="agreed",
        now=timezone.now(),
    )
    return apply_window_change(change_id=change.pk, clock=timezone.now)


def test_a_later_end_of_an_open_sale_is_asked_for_approved_and_applied(operator: Client) -> None:
    """The form shows minutes; the opening has its seconds, and must keep them, or the approval comes to nothing."""
    shop = open_sale()
    assert "Requested." in ask(operator, shop, closes_at=in_shop(3 * HOUR))
    change = WindowChange.objects.get()
    assert change.opens_at == shop.sale.opens_at
    assert applied(change) == ChangeState.APPLIED


def test_a_moment_that_was_not_touched_keeps_its_seconds(operator: Client) -> None:
    shop = open_sale(opens_in=HOUR, closes_in=2 * HOUR)
    assert "Requested." in ask(operator, shop, opens_at=in_shop(HOUR / 2))
    change = WindowChange.objects.get()
    assert change.closes_at == shop.sale.closes_at
    assert change.opens_at < shop.sale.opens_at
    assert applied(change) == ChangeState.APPLIED


def test_the_opening_of_an_open_sale_is_a_text(operator: Client) -> None:
    shop = open_sale()
    seen = operator.get(page("desk_sale_window", shop))
    assert set(fields_of(seen.content)) >= {"closes_at", "reason"}
    assert "opens_at" not in fields_of(seen.content)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"opens_at": 3 * HOUR}, "The sale closes before it opens"),
        ({"opens_at": -3 * HOUR, "closes_at": -2 * HOUR}, "The whole window is in the past"),
        ({}, "This is the window the sale has"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_asked_for(operator: Client, changed: dict[str, timedelta], said: str) -> None:
    shop = open_sale(opens_in=HOUR, closes_in=2 * HOUR)
    assert said in ask(operator, shop, **{name: in_shop(away) for name, away in changed.items()})
    assert not WindowChange.objects.exists()


def test_an_end_before_now_is_told_to_be_an_end_now(operator: Client) -> None:
    shop = open_sale(opens_in=-2 * HOUR)
    assert "The whole window is in the past" in ask(operator, shop, closes_at=in_shop(-HOUR))
    assert not WindowChange.objects.exists()


def test_a_draft_has_no_window_to_ask_for(operator: Client) -> None:
    """Its own form changes it; a request would only come to nothing when somebody approves it."""
    shop = make_sale()
    data = {"opens_at": in_shop(HOUR), "closes_at": in_shop(2 * HOUR), "reason": "more time"}
    said = words(operator.post(page("desk_sale_window", shop), data, follow=True))
    assert "this cannot be done now" in said
    assert not WindowChange.objects.exists()
    assert FlashSale.objects.get().closes_at == shop.sale.closes_at
