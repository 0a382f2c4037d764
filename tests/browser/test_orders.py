"""Orders in the browser: paid, cancelled, not paid in time."""

from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import expect

from orders.models import Order
from orders.providers.sandbox.delivery import deliver_due
from orders.services.expiry import expire_orders
from seckill.returns import return_closed_orders
from tests.browser.steps import await_live, await_order, await_status, button, reservations, sale_path, sell, settle
from tests.browser.visitor import Visitor
from tests.support.shop import buy, make_buyers, open_sale, ticket_of


def take_back() -> None:
    """What beat does every two seconds."""
    return_closed_orders(clock=timezone.now)


def pay_until(seconds: float) -> None:
    """Move the end of the time to pay."""
    Order.objects.update(pay_by_at=timezone.now() + timedelta(seconds=seconds))


def test_from_the_click_to_paid_at_the_sandbox(visitor: Visitor) -> None:
    shop = open_sale(units=1)
    page = visitor.open(sale_path(shop), buyer=make_buyers(1)[0])
    await_live(page)
    button(page).click()
    await_status(page, "Accepted")
    settle(shop)
    await_order(page)
    page.get_by_role("button", name="Pay now").click()
    expect(page.get_by_role("heading", name="Sandbox payment")).to_be_visible()
    page.get_by_role("button", name="Pay", exact=True).click()
    expect(page.locator("dl")).to_contain_text("paid")
    page.get_by_role("link", name="Back to the shop").click()
    await_order(page)
    expect(page.locator(".order .status")).to_contain_text("Paid already?")
    assert deliver_due(clock=timezone.now) == 1
    await_order(page, "Paid. It is yours.")
    expect(page.locator(".order .buttons")).to_be_hidden()
    page.get_by_role("link", name="All my orders").click()
    expect(page.locator(".order-line .badge")).to_have_text("paid")
    Order.objects.update(closed_at=timezone.now())
    page.locator(".order-line a").click()
    await_order(page, "Refunded")


def test_who_cancels_is_asked_first_and_may_try_again(visitor: Visitor) -> None:
    shop = open_sale(units=1)
    (buyer,) = make_buyers(1)
    sell(shop, buyer)
    page = visitor.open(sale_path(shop), buyer=buyer)
    await_order(page)
    page.get_by_role("button", name="Cancel the order").click()
    page.get_by_role("button", name="No, keep it").click()
    assert Order.objects.get().state == "PENDING_PAYMENT"
    page.get_by_role("button", name="Cancel the order").click()
    page.get_by_role("button", name="Yes, cancel it").click()
    await_order(page, "Cancelled")
    take_back()
    await_live(page)
    button(page).click()
    await_status(page, "Accepted")
    settle(shop)
    await_order(page)
    assert reservations() == 2


def test_the_time_to_pay_ends_after_a_warning(visitor: Visitor) -> None:
    shop = open_sale(units=1)
    (buyer,) = make_buyers(1)
    number = sell(shop, buyer)
    pay_until(4)
    page = visitor.open(f"/orders/{number}/", buyer=buyer)
    status = page.locator(".order .status")
    expect(status).to_contain_text("Hurry: less than 1 min left to pay.")
    expect(status).to_contain_text("The time to pay is over. We are checking")
    expect(page.get_by_role("button", name="Pay now")).to_have_attribute("aria-disabled", "true")
    assert expire_orders(now=timezone.now(), batch_size=10) == 1
    await_order(page, "Not paid in time")
    expect(status).to_contain_text("While the sale is on you can try again.")


def test_an_order_that_is_being_written_is_waited_for(visitor: Visitor) -> None:
    shop = open_sale(units=1)
    (buyer,) = make_buyers(1)
    number = buy(ticket_of(shop, buyer))
    page = visitor.open("/", buyer=buyer)
    page.get_by_role("link", name="A purchase is being confirmed").click()
    expect(page.locator("#progress")).to_contain_text("Accepted")
    settle(shop)
    await_order(page)
    assert page.url == f"{visitor.url}/orders/{number}/"
    page.goto(f"{visitor.url}/orders/")
    page.get_by_role("link", name="An order waits to be paid").click()
    await_order(page)
