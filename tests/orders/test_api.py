"""The orders' API: the buyer's own orders, pay, cancel; nobody else's are told from none at all."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from orders.conf import LIMITS
from orders.models import Order, PaymentAttempt, SandboxPayment
from orders.providers.sandbox.provider import SandboxProvider
from tests.support.api import Answer, post_raw, read, refusal, session_of
from tests.support.payments import paid_order, pay_at_sandbox, silent, unpaid_order
from tests.support.rows import make_order
from tests.support.shop import make_buyers

ORDERS = "/api/v1/orders/"


@pytest.fixture
def order() -> Order:
    """An order that can be paid now."""
    return unpaid_order(pay_by_at=timezone.now() + timedelta(minutes=15))


@pytest.fixture
def buyer(order: Order) -> Client:
    """Its buyer's browser."""
    return session_of(order.buyer)


def post(client: Client, order: Order, verb: str, body: Any = None) -> Answer:
    path = f"{ORDERS}{order.number}/{verb}/"
    return read(client.post(path, data=json.dumps(body or {}), content_type="application/json"))


def get(client: Client, path: str) -> Answer:
    return read(client.get(path))


def test_an_order_says_what_its_buyer_wants_to_know(order: Order, buyer: Client) -> None:
    answer = get(buyer, f"{ORDERS}{order.number}/")
    assert answer.status == 200
    assert answer.body == {
        "number": order.number,
        "state": "PENDING_PAYMENT",
        "state_text": "waiting for payment",
        "item": "飞天茅台 53°",
        "variant": "500 ml",
        "quantity": 1,
        "unit_price": "1499.00",
        "amount": "1499.00",
        "created_at": order.created_at.isoformat(),
        "pay_by": order.pay_by_at.isoformat(),
        "closed_at": None,
        "payments": [],
    }


def test_a_paid_order_shows_its_money() -> None:
    order, payment = paid_order()
    answer = get(session_of(order.buyer), f"{ORDERS}{order.number}/")
    assert (answer.body["state"], answer.body["payments"]) == (
        "PAID",
        [{"amount": "1499.00", "state": "ACCEPTED", "paid_at": payment.created_at.isoformat(), "refunds": []}],
    )


def test_orders_are_listed_newest_first_and_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    (user, other) = make_buyers(2)
    orders = [make_order(buyer=user) for _ in range(LIMITS.page_size + 2)]
    make_order(buyer=other)
    first = get(session_of(user), ORDERS)
    assert [row["number"] for row in first.body["results"]] == [order.number for order in reversed(orders[2:])]
    second = get(session_of(user), first.body["next"])
    assert [row["number"] for row in second.body["results"]] == [orders[1].number, orders[0].number]
    assert second.body["next"] is None


def test_a_list_costs_as_many_queries_as_one_order(django_assert_num_queries: Any) -> None:
    (user,) = make_buyers(1)
    client = session_of(user)
    for _ in range(3):
        make_order(buyer=user)
    with django_assert_num_queries(3):
        get(client, ORDERS)


def test_paying_answers_where_to_pay_and_the_same_again(order: Order, buyer: Client) -> None:
    first = post(buyer, order, "pay")
    page = SandboxPayment.objects.get()
    assert (first.status, first.body) == (
        200,
        {"number": order.number, "pay_url": f"http://127.0.0.1:8000/sandbox/pay/{page.token}/"},
    )
    assert post(buyer, order, "pay", {"provider": "sandbox"}).body == first.body
    assert PaymentAttempt.objects.count() == 1


def test_cancelling_twice_is_cancelling_once(order: Order, buyer: Client) -> None:
    """CASES 3: the second click gets the answer of the first."""
    post(buyer, order, "pay")
    first, second = post(buyer, order, "cancel"), post(buyer, order, "cancel")
    assert (first.status, first.body["state"]) == (200, "CANCELLED")
    assert second.body == first.body
    assert SandboxPayment.objects.get().state == "CLOSED"


def test_what_is_paid_is_not_cancelled_and_not_paid_again(order: Order, buyer: Client) -> None:
    post(buyer, order, "pay")
    pay_at_sandbox(PaymentAttempt.objects.get())
    assert refusal(post(buyer, order, "cancel")) == (409, "transition_refused")
    assert get(buyer, f"{ORDERS}{order.number}/").body["state"] == "PAID"
    assert refusal(post(buyer, order, "pay")) == (409, "transition_refused")


def test_the_time_to_pay_is_over(order: Order, buyer: Client) -> None:
    Order.objects.update(pay_by_at=timezone.now())
    assert refusal(post(buyer, order, "pay")) == (410, "pay_window_over")


def test_a_provider_that_does_not_answer(order: Order, buyer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(SandboxProvider, "start", silent)
        assert refusal(post(buyer, order, "pay")) == (503, "provider_unavailable")
    monkeypatch.setattr(SandboxProvider, "query", silent)
    assert refusal(post(buyer, order, "cancel")) == (503, "provider_unavailable")
    assert Order.objects.get().state == "PENDING_PAYMENT"


def test_a_way_to_pay_that_is_not_there(order: Order, buyer: Client, settings: Settings) -> None:
    assert refusal(post(buyer, order, "pay", {"provider": "cash"})) == (404, "unknown_provider")
    settings.PAYMENT_PROVIDERS = {}
    assert refusal(post(buyer, order, "pay")) == (404, "unknown_provider")


@pytest.mark.parametrize("body", [{"provider": 7}, {"provider": None}, {"provider": "x" * 33}, {"provider": ""}])
def test_bad_input_is_told(body: dict[str, Any], order: Order, buyer: Client) -> None:
    assert refusal(post(buyer, order, "pay", body)) == (400, "bad_request")
    assert not PaymentAttempt.objects.exists()


@pytest.mark.parametrize("verb", ["pay/", "cancel/"])
def test_somebody_else_is_told_nothing(verb: str, order: Order) -> None:
    """CASES 40: another's order is as unknown as one that never was."""
    (stranger,) = make_buyers(1)
    client = session_of(stranger)
    for number in (order.number, "1-0-aaaaaaaaaaaaaaaa"):
        path = f"{ORDERS}{number}/"
        assert refusal(get(client, path)) == (404, "not_found")
        assert refusal(read(client.post(path + verb, data="{}", content_type="application/json"))) == (404, "not_found")
    assert refusal(get(client, f"{ORDERS}?before={order.number}")) == (404, "not_found")
    assert refusal(get(client, f"{ORDERS}?before={'x' * 41}")) == (400, "bad_request")
    assert Order.objects.get().state == "PENDING_PAYMENT"


@pytest.mark.parametrize("verb", ["pay", "cancel"])
def test_nobody_in_particular_is_sent_away(verb: str, order: Order) -> None:
    assert refusal(read(Client().get(ORDERS))) == (401, "not_authenticated")
    assert refusal(post_raw("{}", path=f"{ORDERS}{order.number}/{verb}/")) == (401, "not_authenticated")


def test_a_foreign_page_cannot_cancel(order: Order) -> None:
    """CASES 40e: a session alone is not enough."""
    client = session_of(order.buyer, enforce_csrf_checks=True)
    assert refusal(post(client, order, "cancel")) == (403, "forbidden")
    assert Order.objects.get().state == "PENDING_PAYMENT"
