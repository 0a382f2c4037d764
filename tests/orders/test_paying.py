"""Beginning to pay: who may, until when, and that a repeat goes on where the first stopped."""

from datetime import timedelta
from decimal import Decimal

import pytest
from pytest_django import Settings

from orders.errors import OrderNotFound, PayWindowOver, ProviderUnavailable, TransitionRefused, UnknownProvider
from orders.models import Order, OrderEvent, PaymentAttempt, SandboxPayment
from orders.providers import default_provider, provider_named
from orders.providers.sandbox.provider import SandboxProvider
from orders.services.paying import begin_payment
from orders.states import OrderState
from tests.support.payments import IN_TIME, PRICE, begin, begun_order, silent, unpaid_order
from tests.support.rows import NOW, make_order
from tests.support.threads import run_together


def test_a_begun_payment_is_committed_with_a_reference_of_its_own() -> None:
    order, attempt = begun_order()
    assert (attempt.reference, attempt.amount, attempt.state) == (f"{order.number}.1", PRICE, "OPEN")
    assert order.payment_begun_at == attempt.created_at
    page = SandboxPayment.objects.get()
    assert (page.reference, page.amount) == (attempt.reference, PRICE)
    assert attempt.pay_url == f"http://127.0.0.1:8000/sandbox/pay/{page.token}/"
    assert page.return_url == f"http://127.0.0.1:8000/orders/{order.number}/"


def test_ten_clicks_on_pay_are_one_payment() -> None:
    """CASES 39: the same address for each."""
    order = unpaid_order()

    def click(_: int) -> str:
        return begin_payment(number=order.number, buyer_id=order.buyer_id, provider="sandbox", now=NOW).pay_url

    assert len(set(run_together(click, range(10)))) == 1
    assert PaymentAttempt.objects.count() == 1


def test_a_provider_that_was_not_reached_is_tried_again_under_the_same_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The attempt stands before the call: should the provider have heard it all the same, it is asked about."""
    order = unpaid_order()
    with monkeypatch.context() as patch:
        patch.setattr(SandboxProvider, "start", silent)
        with pytest.raises(ProviderUnavailable):
            begin(order)
    first = PaymentAttempt.objects.get()
    assert (first.pay_url, first.state) == ("", "OPEN")
    assert begin(order).pk == first.pk


@pytest.mark.parametrize("state", [OrderState.PAID, OrderState.CANCELLED, OrderState.EXPIRED])
def test_what_is_not_waiting_cannot_be_paid(state: OrderState) -> None:
    order = make_order(state=state)
    with pytest.raises(TransitionRefused):
        begin(order)
    assert not PaymentAttempt.objects.exists()


def test_the_time_to_pay_ends_at_its_very_instant() -> None:
    order = unpaid_order()
    with pytest.raises(PayWindowOver):
        begin(order, now=IN_TIME)
    begin(order, now=IN_TIME - timedelta(microseconds=1))


def test_nobody_pays_an_order_that_is_not_his() -> None:
    order = unpaid_order()
    with pytest.raises(OrderNotFound):
        begin_payment(number=order.number, buyer_id=order.buyer_id + 1, provider="sandbox", now=NOW)


def test_a_gift_is_paid_at_once() -> None:
    order = unpaid_order()
    Order.objects.update(unit_price=Decimal(0))
    begun = begin_payment(number=order.number, buyer_id=order.buyer_id, provider="sandbox", now=NOW)
    assert begun.pay_url.endswith(f"/orders/{order.number}/")
    assert (Order.objects.get().state, OrderEvent.objects.get().reason) == ("PAID", "nothing to pay")
    assert not PaymentAttempt.objects.exists()


def test_providers_are_named_in_the_settings(settings: Settings) -> None:
    assert default_provider() == "sandbox"
    assert provider_named("sandbox").acknowledgement == "OK"
    settings.PAYMENT_PROVIDERS = {}
    with pytest.raises(UnknownProvider):
        default_provider()
    with pytest.raises(UnknownProvider):
        begin(unpaid_order())
