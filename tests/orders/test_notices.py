"""Notifications: genuine ones act once, unwelcome money is recorded, forged ones leave no trace."""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from orders.models import Order, OrderEvent, Payment, PaymentAttempt
from orders.providers.sandbox.signing import sign
from orders.services.money import judge, take_money
from orders.states import OrderState, PaymentProblem
from tests.support.payments import (
    PRICE,
    begin,
    begun_order,
    money_for,
    notice_of,
    notify,
    paid_order,
    unpaid_order,
)
from tests.support.rows import NOW, make_order
from tests.support.threads import run_together
from tests.support.unsafe_money import unsafe_take


def told(payment: Payment) -> tuple[str, str]:
    return payment.state, payment.problem


def test_a_genuine_notification_pays_the_order() -> None:
    order, attempt = begun_order()
    money = money_for(attempt)
    assert notify(notice_of(money)) == (200, "OK")
    order.refresh_from_db()
    attempt.refresh_from_db()
    payment, event = Payment.objects.get(), OrderEvent.objects.get()
    assert (order.state, order.payment_begun_at, order.closed_at) == ("PAID", None, None)
    assert (attempt.state, attempt.ask_at) == ("PAID", None)
    assert (payment.pays_id, payment.order_id, payment.amount, told(payment)) == (
        order.pk,
        order.pk,
        PRICE,
        ("ACCEPTED", ""),
    )
    assert (event.to_state, event.reason, event.actor_id) == ("PAID", "paid by sandbox", None)


def test_the_same_notification_three_times_at_once_is_one_payment() -> None:
    """CASES 5b and 25: one effect, each answered 200."""
    _, attempt = begun_order()
    body = notice_of(money_for(attempt))
    assert run_together(lambda _: notify(body), range(3)) == [(200, "OK")] * 3
    assert notify(body) == (200, "OK")
    assert (Payment.objects.count(), OrderEvent.objects.count()) == (1, 1)


def test_control_money_taken_by_reading_then_writing() -> None:
    """The control of the test above: three events for one payment."""
    order, _ = begun_order()
    assert run_together(unsafe_take(takers=3), [order.pk] * 3) == [True] * 3
    assert OrderEvent.objects.count() == 3


def test_money_for_no_order_three_times_at_once_is_recorded_once() -> None:
    """No order's lock keeps these apart; the unique key does."""
    _, attempt = begun_order()
    body = notice_of(money_for(attempt), order_reference="nobody's.1")
    assert run_together(lambda _: notify(body), range(3)) == [(200, "OK")] * 3
    payment = Payment.objects.get()
    assert (told(payment), payment.order_id, payment.order_reference) == (
        ("REFUND_DUE", "UNKNOWN_ORDER"),
        None,
        "nobody's.1",
    )


def test_two_payment_ids_for_one_order_at_once() -> None:
    """CASES 5c: paid once, the other is refund due, both are answered 200."""
    order, attempt = begun_order()
    bodies = [notice_of(money_for(attempt)) for _ in range(2)]
    assert run_together(notify, bodies) == [(200, "OK")] * 2
    assert sorted(told(payment) for payment in Payment.objects.all()) == [
        ("ACCEPTED", ""),
        ("REFUND_DUE", "SECOND_PAYMENT"),
    ]
    assert Payment.objects.get(pays=order).state == "ACCEPTED"
    assert OrderEvent.objects.count() == 1


def test_a_second_attempt_is_closed_once_the_first_has_paid() -> None:
    order = unpaid_order()
    first = begin(order)
    PaymentAttempt.objects.filter(pk=first.pk).update(provider="other")
    second = begin(order)
    take_money(provider="sandbox", money=money_for(second), now=NOW)
    first.refresh_from_db()
    assert (first.state, first.ask_at) == ("OPEN", NOW)


@pytest.mark.parametrize("amount", ["1498.99", "1499.01"])
def test_a_wrong_amount_is_refund_due_and_the_order_goes_on_waiting(amount: str) -> None:
    order, attempt = begun_order()
    assert notify(notice_of(money_for(attempt, amount=Decimal(amount)))) == (200, "OK")
    order.refresh_from_db()
    payment = Payment.objects.get()
    assert (told(payment), payment.pays_id) == (("REFUND_DUE", "WRONG_AMOUNT"), None)
    assert (order.state, order.payment_begun_at) == ("PENDING_PAYMENT", None)
    assert not OrderEvent.objects.exists()


@pytest.mark.parametrize("state", [OrderState.CANCELLED, OrderState.EXPIRED])
def test_money_for_a_closed_order_is_refund_due_and_the_order_stays_closed(state: OrderState) -> None:
    """Law 3: what is closed is not opened again."""
    order, attempt = begun_order()
    Order.objects.update(state=state, payment_begun_at=None, closed_at=NOW)
    before = Order.objects.values().get()
    assert notify(notice_of(money_for(attempt))) == (200, "OK")
    assert Order.objects.values().get() == before
    assert told(Payment.objects.get()) == ("REFUND_DUE", "CLOSED_ORDER")
    assert order.number


def test_a_late_notification_for_an_order_still_waiting_pays_it() -> None:
    order, attempt = begun_order(pay_by_at=NOW)
    take_money(provider="sandbox", money=money_for(attempt), now=NOW + timedelta(hours=1))
    order.refresh_from_db()
    assert order.state == "PAID"


@pytest.mark.parametrize("state", [None, *OrderState])
def test_every_state_has_its_judgement(state: OrderState | None) -> None:
    right = {
        None: PaymentProblem.UNKNOWN_ORDER,
        OrderState.PENDING_PAYMENT: None,
        OrderState.PAID: PaymentProblem.SECOND_PAYMENT,
        OrderState.CANCELLED: PaymentProblem.CLOSED_ORDER,
        OrderState.EXPIRED: PaymentProblem.CLOSED_ORDER,
    }[state]
    assert judge(state=state, amount_due=PRICE, amount=PRICE) == right
    wrong = PaymentProblem.UNKNOWN_ORDER if state is None else PaymentProblem.WRONG_AMOUNT
    assert judge(state=state, amount_due=PRICE, amount=PRICE + 1) == wrong


def test_money_told_in_two_ways_stays_as_it_was_told_first(caplog: pytest.LogCaptureFixture) -> None:
    _, payment = paid_order()
    other = begun_order()[1]
    money = money_for(other, reference=payment.provider_reference, amount=Decimal(1))
    assert not take_money(provider="sandbox", money=money, now=NOW).is_new
    assert "in two ways" in caplog.text
    payment.refresh_from_db()
    assert payment.amount == PRICE


def forged(body: bytes) -> list[tuple[bytes, str]]:
    """Bodies and signatures that do not belong together."""
    now = int(timezone.now().timestamp())
    good = sign(body=body, at=now)
    return [
        (body, ""),
        (body, "t=1,v1=0"),
        (body, "nonsense"),
        (body, good[:-1] + ("0" if good[-1] != "0" else "1")),
        (body + b" ", good),
        (body, good.replace(f"t={now}", f"t={now - 1}")),
        (body, sign(body=body, at=now - 400)),
        (body, sign(body=body, at=now + 400)),
        (body, f"t=٣,v1={good}"),
        (body, f"t={'9' * 30},v1=0"),
    ]


@pytest.mark.parametrize("case", range(10))
def test_a_forged_notification_changes_nothing(case: int, caplog: pytest.LogCaptureFixture) -> None:
    order, attempt = begun_order()
    body, header = forged(notice_of(money_for(attempt)))[case]
    before = Order.objects.values().get()
    status, answer = notify(body, header=header)
    assert (status, json.loads(answer)["code"]) == (400, "notice_invalid")
    assert Order.objects.values().get() == before
    assert not Payment.objects.exists()
    assert "is not genuine" in caplog.text
    assert order.number


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"\xff",
        b'{"kind": "paid"}',
        b'{"kind": "paid", "payment": 7, "order_reference": "x", "amount": "1.00"}',
        b'{"kind": "paid", "payment": "p", "order_reference": "x", "amount": "NaN"}',
        b'{"kind": "paid", "payment": "p", "order_reference": "x", "amount": "-1"}',
        b'{"kind": "paid", "payment": "p", "order_reference": "x", "amount": "0.001"}',
        b'{"kind": "paid", "payment": "p", "order_reference": "x", "amount": "1e30"}',
        b'{"kind": "refund", "refund": "r", "outcome": "perhaps"}',
    ],
)
def test_a_genuine_one_that_cannot_be_read_is_refused(body: bytes) -> None:
    assert notify(body)[0] == 400
    assert not Payment.objects.exists()


def test_a_body_without_end_is_refused() -> None:
    assert notify(b" " * 4_097)[0] == 413


def test_another_kind_of_notification_only_has_the_provider_asked() -> None:
    """Out of order, it can do no harm."""
    order, attempt = begun_order()
    soon = timezone.now()
    assert notify(notice_of(money_for(attempt), kind="closed")) == (200, "OK")
    attempt.refresh_from_db()
    assert attempt.state == "OPEN"
    assert attempt.ask_at is not None
    assert soon <= attempt.ask_at <= timezone.now()
    take_money(provider="sandbox", money=money_for(attempt), now=NOW)
    assert notify(notice_of(money_for(attempt), kind="pending")) == (200, "OK")
    order.refresh_from_db()
    assert order.state == "PAID"
    assert PaymentAttempt.objects.get().ask_at is None


def test_a_provider_the_shop_does_not_have() -> None:
    response = Client().post("/api/v1/payments/cash/notify/", data=b"{}", content_type="application/json")
    assert (response.status_code, response.json()["code"]) == (404, "unknown_provider")


def test_what_is_not_pending_is_left_alone_by_the_unsafe_version_too() -> None:
    order = make_order(state=OrderState.PAID)
    takers: Any = unsafe_take(takers=1)
    assert not takers(order.pk)
