"""Paying on the running shop: the sandbox's page, its notification by HTTP, and a question in place of a lost one."""

import re
from datetime import timedelta

import pytest
import requests
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from benchmarks.shop import Shop as ShopProcesses
from orders.models import Order, Payment, PaymentAttempt
from orders.services.refunding import RefundRequest, request_refund
from orders.states import RefundedUnitsTo, RefundReason
from seckill.settlement import settle_bucket
from tests.support.api import session_of
from tests.support.shop import Shop, buy, make_buyers, open_sale, ticket_of
from tests.support.state import numbers
from tests.support.web import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("all_running")]


@pytest.fixture
def all_running(running: ShopProcesses) -> None:
    """Start again what an earlier test has ended."""
    running.start()


def sell(shop: Shop, buyer: User) -> str:
    number = buy(ticket_of(shop, buyer))
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    wait_until(Order.objects.filter(number=number).exists, seconds=10)
    return number


def browser_of(buyer: User) -> requests.Session:
    """A browser in which the buyer is logged in."""
    browser = requests.Session()
    session = session_of(buyer).cookies[settings.SESSION_COOKIE_NAME].value
    browser.headers["Cookie"] = f"{settings.SESSION_COOKIE_NAME}={session}; csrftoken={'c' * 32}"
    browser.headers["X-CSRFToken"] = "c" * 32
    return browser


def pay(running: ShopProcesses, buyer: User, number: str, behaviour: str) -> None:
    """Begin to pay by the API, then pay on the sandbox's page."""
    begun = browser_of(buyer).post(f"{running.url}/api/v1/orders/{number}/pay/", json={}, timeout=10)
    assert begun.status_code == 200, begun.text
    url = begun.json()["pay_url"]
    assert url.startswith(running.url)
    payer = requests.Session()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', payer.get(url, timeout=10).text)
    assert token is not None
    form = {"csrfmiddlewaretoken": token[1], "behaviour": behaviour, "pay": "1"}
    assert payer.post(url, data=form, timeout=10).status_code == 200


def is_paid(number: str) -> bool:
    return Order.objects.get(number=number).state == "PAID"


def test_an_order_is_paid_refunded_and_its_unit_bought_again(running: ShopProcesses) -> None:
    shop = open_sale(units=1)
    buyer, late = make_buyers(2)
    number = sell(shop, buyer)
    pay(running, buyer, number, "TWICE")
    wait_until(lambda: is_paid(number), seconds=15)
    payment = Payment.objects.get()
    wanted = RefundRequest(
        payment_id=payment.pk,
        amount=payment.amount,
        reason=RefundReason.WITHDRAWN,
        units_to=RefundedUnitsTo.ON_SALE,
    )
    request_refund(request=wanted, now=timezone.now())
    wait_until(lambda: numbers(shop).left == {shop.item.pk: 1}, seconds=10)
    assert "-" in buy(ticket_of(shop, late))
    wait_until(lambda: Payment.objects.get().state == "REFUNDED", seconds=30)


def test_what_the_sandbox_never_tells_is_asked_for(running: ShopProcesses) -> None:
    """CASES 5: the worker asks by itself; expiry does not take the order meanwhile."""
    shop = open_sale(units=1)
    (buyer,) = make_buyers(1)
    number = sell(shop, buyer)
    pay(running, buyer, number, "NEVER")
    past = timezone.now() - timedelta(seconds=1)
    Order.objects.filter(number=number).update(pay_by_at=past)
    PaymentAttempt.objects.update(ask_at=past)
    wait_until(lambda: is_paid(number), seconds=20)
    assert numbers(shop).left == {shop.item.pk: 0}
