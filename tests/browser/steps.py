"""What several tests do on a page, and what they wait for to stand there."""

from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from seckill.models import Reservation
from seckill.settlement import settle_bucket
from tests.support.shop import Shop, buy, ticket_of

expect.set_options(timeout=12_000)

OPEN_ORDER = "It is yours. Please pay."


def sale_path(shop: Shop) -> str:
    """Where the sale's page is."""
    return f"/sales/{shop.sale.pk}/"


def button(page: Page) -> Locator:
    """The button that buys."""
    return page.locator(".controls button.buy")


def await_live(page: Page) -> None:
    """Wait until the button can be clicked."""
    expect(button(page)).to_have_attribute("aria-disabled", "false")


def await_status(page: Page, text: str) -> None:
    """Wait until the panel says something."""
    expect(page.locator(".panel > .status")).to_contain_text(text)


def await_order(page: Page, title: str = OPEN_ORDER) -> None:
    """Wait until the order stands there in a state."""
    expect(page.locator(".order h3")).to_have_text(title)


def settle(shop: Shop) -> None:
    """Write into MySQL what is queued."""
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


def sell(shop: Shop, buyer: User, quantity: int = 1) -> str:
    """Let a buyer buy without a browser; return the order's number."""
    number = buy(ticket_of(shop, buyer), quantity)
    settle(shop)
    return number


def reservations() -> int:
    """How many reservations there are."""
    return Reservation.objects.count()
