"""From the countdown to the order, with everything that happens to buyers on the way."""

import json
import re
import time
from datetime import timedelta
from itertools import pairwise

import pytest
from django.core.cache import cache
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from orders.models import Order
from orders.services import cancel_order
from rest.memory import forget_everything
from seckill import pausing
from seckill.gate import gate
from seckill.models import FlashSale
from seckill.preheat import preheat_sale
from seckill.returns import return_closed_orders
from seckill.tickets import Wish, ticket_for
from tests.browser.steps import (
    await_live,
    await_order,
    await_status,
    button,
    reservations,
    sale_path,
    sell,
    settle,
)
from tests.browser.visitor import Visitor
from tests.support.shop import make_buyers, make_sale, open_sale

PURCHASES = "**/api/v1/purchases/"
HOUR = 3600
SHIFTED_CLOCK = """(() => {
    const real = Date;
    const now = () => real.now() + SHIFT * 1000;
    window.Date = class extends real {
        constructor(...given) { given.length ? super(...given) : super(now()); }
        static now() { return now(); }
    };
})()"""


def purchases_of(page: Page) -> list[str]:
    """Collect the bodies of the purchases the page sends from now on."""
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.post_data or "") if is_purchase(request) else None)
    return sent


def assert_repeated(sent: list[str]) -> None:
    """Assert that the same purchase was sent twice, and that the second one said that it is a repeat."""
    first, second = (json.loads(body) for body in sent)
    assert (first.pop("attempt"), second.pop("attempt")) == (1, 2)
    assert first == second


def is_purchase(request: object) -> bool:
    return getattr(request, "method", "") == "POST" and getattr(request, "url", "").endswith("/purchases/")


@pytest.mark.parametrize("shift", [3 * HOUR, -12 * HOUR, 10])
def test_case_40b_the_countdown_is_the_servers(visitor: Visitor, shift: int) -> None:
    """However wrong the device's clock is, the page counts down right, and the button waits for the server's time."""
    shop = open_sale(opens_in=timedelta(seconds=3.5))
    page = visitor.open("/", buyer=make_buyers(1)[0], timezone_id="America/New_York")
    page.add_init_script(SHIFTED_CLOCK.replace("SHIFT", str(shift)))
    page.goto(visitor.url + sale_path(shop))
    await_status(page, "Your ticket is here. The button comes alive")
    left = (shop.sale.opens_at - timezone.now()).total_seconds()
    shown = page.locator(".when.big .clock").inner_text()
    assert shown[:3] == "00:"
    assert abs(int(shown[3:]) - left) < 2
    assert abs(page.evaluate("Date.now() / 1000") - time.time()) > abs(shift) - 1
    await_live(page)
    late = (timezone.now() - shop.sale.opens_at).total_seconds()
    assert -0.05 < late < 1.5
    button(page).click()
    await_status(page, "Accepted")


def test_ten_clicks_are_one_purchase(visitor: Visitor) -> None:
    shop = open_sale(limit=5)
    page = visitor.open(sale_path(shop), buyer=make_buyers(1)[0])
    sent = purchases_of(page)
    await_live(page)
    button(page).dblclick()
    page.evaluate("for (let i = 0; i < 10; i += 1) document.querySelector('button.buy').click()")
    expect(button(page)).to_have_attribute("aria-disabled", "true")
    await_status(page, "Accepted")
    settle(shop)
    await_order(page)
    assert (reservations(), len(sent)) == (1, 1)


def test_a_refused_click_greys_the_button_out_for_some_seconds(visitor: Visitor) -> None:
    shop = open_sale(units=3, limit=3)
    page = visitor.open(sale_path(shop), buyer=make_buyers(1)[0])
    await_live(page)
    sell(shop, make_buyers(1)[0], quantity=2)
    page.locator(".controls select").select_option("3")
    clicked_at = time.monotonic()
    button(page).click()
    await_status(page, "Only 1 left. Click again")
    expect(button(page)).to_have_attribute("aria-disabled", "true")
    await_live(page)
    assert time.monotonic() - clicked_at > 2.5
    button(page).click()
    await_status(page, "Accepted")
    assert gate.units_held(bucket=shop.bucket, limit_key=str(Order.objects.get().buyer_id)) == 2


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_reload_while_confirming(visitor: Visitor, is_forgotten: bool) -> None:  # noqa: FBT001
    """Also where the browser has forgotten all: the shop has not."""
    shop = open_sale()
    page = visitor.open(sale_path(shop), buyer=make_buyers(1)[0])
    await_live(page)
    button(page).click()
    await_status(page, "Accepted")
    if is_forgotten:
        page.evaluate("localStorage.clear()")
    page.reload()
    await_status(page, "Accepted")
    settle(shop)
    await_order(page)
    page.reload()
    await_order(page)
    assert reservations() == 1
    assert page.evaluate("localStorage.length") == 0


def test_the_connection_is_lost_and_comes_back(visitor: Visitor) -> None:
    shop = open_sale()
    page = visitor.open(sale_path(shop), buyer=make_buyers(1)[0])
    await_live(page)
    page.context.set_offline(True)
    button(page).click()
    await_status(page, "You are offline")
    page.context.set_offline(False)
    await_status(page, "Accepted")
    page.context.set_offline(True)
    await_status(page, "You are offline")
    settle(shop)
    page.context.set_offline(False)
    await_order(page)
    assert reservations() == 1


def test_a_lost_reply_while_the_item_sells_out_ends_on_the_order(visitor: Visitor) -> None:
    """The purchase was carried out and its reply dropped; what then says "sold out" is not believed unasked."""
    shop = open_sale(units=2)
    buyer, rival = make_buyers(2)
    page = visitor.open(sale_path(shop), buyer=buyer)
    await_live(page)
    sent = purchases_of(page)
    lost: list[int] = []

    def lose(route: Route) -> None:
        if route.request.method != "POST":
            route.continue_()
        elif not lost:
            lost.append(route.fetch().status)
            sell(shop, rival)
            route.abort("connectionreset")
        else:
            route.fulfill(status=409, content_type="application/problem+json", body='{"code": "sold_out"}')

    page.route(PURCHASES, lose)
    button(page).click()
    await_order(page)
    assert lost == [202]
    assert_repeated(sent)
    assert (reservations(), Order.objects.filter(buyer_id=buyer.pk).count()) == (2, 1)


def test_a_shop_that_does_not_answer_is_asked_again_with_the_same_ticket(visitor: Visitor) -> None:
    shop = open_sale()
    page = visitor.open(sale_path(shop), buyer=make_buyers(1)[0])
    await_live(page)
    sent = purchases_of(page)
    silent: list[Route] = []
    page.route(PURCHASES, lambda route: silent.append(route) if not silent else route.continue_())
    started = time.monotonic()
    button(page).click()
    await_status(page, "No answer yet")
    assert 3.8 < time.monotonic() - started < 6
    await_status(page, "Accepted")
    settle(shop)
    await_order(page)
    assert_repeated(sent)
    assert reservations() == 1


def test_a_busy_shop_is_asked_again_within_what_it_asked_for(visitor: Visitor) -> None:
    """429 and 503: the page waits as it was told, and a random part of a second more; nobody needs F5."""
    shop = open_sale()
    page = visitor.open(sale_path(shop), buyer=make_buyers(1)[0])
    await_live(page)
    times: list[float] = []
    told = {1: (503, "busy", "Very many are buying"), 2: (429, "throttled", "There is a queue")}

    def refuse(route: Route) -> None:
        times.append(time.monotonic())
        if (refusal := told.get(len(times))) is None:
            route.continue_()
            return
        status, code, _ = refusal
        headers = {"Retry-After": "1", "Content-Type": "application/problem+json"}
        route.fulfill(status=status, headers=headers, body=f'{{"code": "{code}"}}')

    page.route(PURCHASES, refuse)
    button(page).click()
    for _, _, words in told.values():
        await_status(page, words)
    await_status(page, "Accepted")
    assert all(1 <= later - earlier < 3 for earlier, later in pairwise(times))
    settle(shop)
    await_order(page)
    assert reservations() == 1


def test_sold_out_while_waiting_and_back_again(visitor: Visitor) -> None:
    """All taken but not paid is told apart from sold out; what comes back makes the button live again."""
    shop = open_sale(units=2)
    buyer, rival, other = make_buyers(3)
    page = visitor.open(sale_path(shop), buyer=buyer)
    await_live(page)
    numbers = [sell(shop, rival), sell(shop, other)]
    await_status(page, "All are taken, but some are not paid until")
    expect(button(page)).to_have_attribute("aria-disabled", "true")
    Order.objects.filter(number=numbers[0]).update(state="PAID")
    cancel_order(number=numbers[1], buyer_id=other.pk, now=timezone.now())
    return_closed_orders(clock=timezone.now)
    await_live(page)
    page.route(PURCHASES, lambda route: (sell(shop, make_buyers(1)[0]), route.continue_()))
    button(page).click()
    await_status(page, "You were too late for this one")
    Order.objects.update(state="PAID")
    await_status(page, "Sold out. Every unit is paid for.")


def test_paused_by_the_shop_and_over(visitor: Visitor) -> None:
    shop = open_sale()
    page = visitor.open(sale_path(shop), buyer=make_buyers(1)[0])
    await_live(page)
    pausing.pause_item(item_id=shop.item.pk)
    await_status(page, "The shop has paused this item")
    expect(button(page)).to_have_attribute("aria-disabled", "true")
    pausing.resume_item(item_id=shop.item.pk)
    await_live(page)
    FlashSale.objects.update(closes_at=timezone.now())
    await_status(page, "This sale is over")
    expect(button(page)).to_be_hidden()


def test_who_is_at_his_limit_is_shown_what_he_has(visitor: Visitor) -> None:
    """Bought on another device meanwhile: "you have one, pay it", not just "no"."""
    shop = open_sale()
    (buyer,) = make_buyers(1)
    page = visitor.open(sale_path(shop), buyer=buyer)
    await_live(page)
    number = sell(shop, buyer)
    button(page).click()
    page.get_by_role("link", name="You have one, pay it").click()
    await_order(page)
    assert page.url == f"{visitor.url}/orders/{number}/"


def test_what_was_bought_of_a_pool_of_several_stands_at_its_item(visitor: Visitor) -> None:
    """Also after a reload: the last ticket is another item's, and says nothing of it."""
    shop = open_sale(items=2)
    (buyer,) = make_buyers(1)
    for item in shop.items:
        ticket_for(buyer=buyer, item_id=item.pk, wish=Wish.FIRST, now=timezone.now())
    page = visitor.open(sale_path(shop), buyer=buyer)
    first, second = page.locator(".panel").all()
    expect(first.locator("button.buy").first).to_have_attribute("aria-disabled", "false")
    expect(second.locator("button.buy").first).to_have_attribute("aria-disabled", "false")
    first.locator("button.buy").first.click()
    expect(first.locator(".status").first).to_contain_text("Accepted")
    settle(shop)
    page.reload()
    expect(first.locator("h3")).to_have_text("It is yours. Please pay.")
    second.locator("button.buy").first.click()
    expect(second.locator(".links a")).to_have_text("You have one, pay it")


def test_one_more_where_the_limit_allows_it(visitor: Visitor) -> None:
    shop = open_sale(limit=2)
    (buyer,) = make_buyers(1)
    sell(shop, buyer)
    Order.objects.update(pay_by_at=timezone.now() + timedelta(minutes=5))
    page = visitor.open(sale_path(shop), buyer=buyer)
    page.get_by_role("button", name="Buy another one").click()
    await_live(page)
    button(page).click()
    await_status(page, "Accepted")
    settle(shop)
    await_order(page)
    expect(page.locator(".order .timer")).to_have_text(re.compile("^14:"))
    assert reservations() == 2


def test_a_stranger_is_sent_to_log_in_and_comes_back(visitor: Visitor) -> None:
    shop = open_sale()
    (buyer,) = make_buyers(1)
    buyer.set_password("correct horse battery")
    buyer.save()
    page = visitor.open(sale_path(shop))
    await_status(page, "Log in before the opening")
    page.get_by_role("link", name="Log in to buy").click()
    page.get_by_label("Username").fill(buyer.username)
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Log in").click()
    await_live(page)
    assert page.url == visitor.url + sale_path(shop)


def test_who_was_logged_out_meanwhile_is_told_and_sent_to_log_in(visitor: Visitor) -> None:
    shop = open_sale()
    page = visitor.open("/", buyer=make_buyers(1)[0])

    def end_sessions(route: Route) -> None:
        cache.clear()
        route.continue_()

    page.route("**/ticket/", end_sessions)
    page.goto(visitor.url + sale_path(shop))
    await_status(page, "You are not logged in any more")
    link = page.locator(".links").get_by_role("link", name="Log in")
    expect(link).to_have_attribute("href", f"/accounts/login/?next=%2Fsales%2F{shop.sale.pk}%2F")


def test_a_page_that_waits_gets_its_ticket_once_there_are_some(visitor: Visitor) -> None:
    shop = make_sale(opens_in=timedelta(minutes=5))
    FlashSale.objects.update(state="SCHEDULED")
    page = visitor.open(sale_path(shop), buyer=make_buyers(1)[0])
    await_status(page, "Tickets are given shortly before")
    preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)
    forget_everything()
    page.wait_for_timeout(1_100)  # So long the browser keeps what it knows of the sale.
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await_status(page, "Your ticket is here")
