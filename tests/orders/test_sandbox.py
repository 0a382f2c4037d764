"""The sandbox provider: its page, its notifications over real HTTP, and all the ways it misbehaves."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from orders import tasks
from orders.models import Order, Payment, PaymentAttempt, SandboxNotice, SandboxPayment
from orders.providers import StandingState, provider_named
from orders.providers.sandbox.delivery import TRIES_MAX, deliver_due
from orders.providers.sandbox.till import Behaviour, behaviour_by_amount, give_up
from orders.services.asking import ask_about
from tests.support.live import live_shop
from tests.support.payments import NOTIFY, begun_order, pay_at_sandbox

LATER = timedelta(minutes=1)


@pytest.fixture
def shop(settings: Settings) -> Iterator[None]:
    """A shop the sandbox can reach."""
    with live_shop() as url:
        settings.SANDBOX_NOTIFY_URL = f"{url}{NOTIFY}"
        yield


def page_of(attempt: PaymentAttempt) -> str:
    return f"/sandbox/pay/{SandboxPayment.objects.get(reference=attempt.reference).token}/"


def deliver(now: datetime | None = None) -> int:
    """Deliver what is due by then; signed by the same clock, unless the receiver's would not believe it."""
    return deliver_due(clock=lambda: now or timezone.now())


def outcome() -> tuple[str, list[tuple[str, str]]]:
    """The order's state, and each payment's with its problem."""
    return Order.objects.get().state, list(Payment.objects.order_by("pk").values_list("state", "problem"))


def test_the_page_shows_what_is_to_be_paid_and_takes_it() -> None:
    order, attempt = begun_order()
    client = Client()
    html = client.get(page_of(attempt)).content.decode()
    assert order.number in html
    assert "¥1,499.00" in html
    answer = client.post(page_of(attempt), {"pay": "1", "behaviour": "TWICE"})
    assert (answer.status_code, answer["Location"]) == (302, page_of(attempt))
    assert SandboxPayment.objects.get().state == "PAID"
    assert SandboxNotice.objects.count() == 2
    assert 'name="pay"' not in client.get(page_of(attempt)).content.decode()
    client.post(page_of(attempt), {"give_up": "1"})
    client.post(page_of(attempt), {"pay": "1"})
    assert (SandboxPayment.objects.get().charges.count(), SandboxNotice.objects.count()) == (1, 2)


def test_the_page_takes_no_for_an_answer() -> None:
    _, attempt = begun_order()
    Client().post(page_of(attempt), {"give_up": "1"})
    assert SandboxPayment.objects.get().state == "CLOSED"
    Client().post(page_of(attempt), {"pay": "1"})
    assert not SandboxPayment.objects.get().charges.exists()
    token = SandboxPayment.objects.get().token
    assert give_up(token=token, now=timezone.now()) == "CLOSED"


def test_the_page_refuses_what_it_does_not_offer() -> None:
    _, attempt = begun_order()
    assert Client().post(page_of(attempt), {"pay": "1", "behaviour": "FREE"}).status_code == 200
    assert SandboxPayment.objects.get().state == "OPEN"
    assert Client().get("/sandbox/pay/nobody/").status_code == 404
    assert Client(enforce_csrf_checks=True).post(page_of(attempt), {"pay": "1"}).status_code == 403


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("behaviour", "payments", "at_once", "later"),
    [
        (Behaviour.PROMPT, [("ACCEPTED", "")], 1, 0),
        (Behaviour.LATE, [("ACCEPTED", "")], 0, 1),
        (Behaviour.TWICE, [("ACCEPTED", "")], 1, 1),
        (Behaviour.OUT_OF_ORDER, [("ACCEPTED", "")], 1, 1),
        (Behaviour.PAID_TWICE, [("ACCEPTED", ""), ("REFUND_DUE", "SECOND_PAYMENT")], 2, 0),
    ],
)
def test_however_the_shop_is_told_the_order_is_paid_once(
    behaviour: Behaviour, payments: list[tuple[str, str]], at_once: int, later: int
) -> None:
    _, attempt = begun_order()
    pay_at_sandbox(attempt, behaviour)
    assert deliver() == at_once
    assert deliver(timezone.now() + LATER) == later
    assert outcome() == ("PAID", payments)


@pytest.mark.usefixtures("shop")
def test_too_little_is_refund_due() -> None:
    _, attempt = begun_order()
    pay_at_sandbox(attempt, Behaviour.TOO_LITTLE)
    assert deliver() == 1
    assert outcome() == ("PENDING_PAYMENT", [("REFUND_DUE", "WRONG_AMOUNT")])
    assert Payment.objects.get().amount == Decimal("1498.99")


@pytest.mark.usefixtures("shop")
def test_what_is_never_told_is_found_by_asking() -> None:
    _, attempt = begun_order()
    pay_at_sandbox(attempt, Behaviour.NEVER)
    assert deliver(timezone.now() + LATER) == 0
    ask_about(attempt_id=attempt.pk, clock=timezone.now)
    assert outcome() == ("PAID", [("ACCEPTED", "")])


def test_a_shop_that_does_not_answer_is_told_again_and_not_for_ever(settings: Settings) -> None:
    settings.SANDBOX_NOTIFY_URL = "http://127.0.0.1:1/"
    _, attempt = begun_order()
    pay_at_sandbox(attempt, Behaviour.PROMPT)
    now = timezone.now()
    for tries in range(1, TRIES_MAX + 1):
        now += timedelta(hours=1)
        assert deliver(now) == 0
        assert SandboxNotice.objects.get().tries == tries
    assert SandboxNotice.objects.get().due_at is None


def test_a_shop_that_answers_anything_but_200_is_told_again(settings: Settings) -> None:
    with live_shop() as url:
        settings.SANDBOX_NOTIFY_URL = f"{url}/nowhere/"
        _, attempt = begun_order()
        pay_at_sandbox(attempt, Behaviour.PROMPT)
        assert deliver() == 0
        assert SandboxNotice.objects.get().due_at is not None
        settings.SANDBOX_NOTIFY_URL = f"{url}{NOTIFY}"
        SandboxNotice.objects.update(due_at=timezone.now())
        assert deliver() == 1
    assert outcome()[0] == "PAID"


def test_the_cents_choose() -> None:
    cents = {0: "PROMPT", 1: "LATE", 2: "TWICE", 3: "OUT_OF_ORDER", 4: "NEVER", 5: "PAID_TWICE", 6: "TOO_LITTLE"}
    for number, behaviour in cents.items():
        assert behaviour_by_amount(amount=Decimal("1499.00") + Decimal(number) / 100) == behaviour
    assert behaviour_by_amount(amount=Decimal("0.50")) == Behaviour.PROMPT


def test_what_was_never_begun_is_closed_before_it_begins() -> None:
    provider = provider_named("sandbox")
    assert provider.query(reference="nothing").state is StandingState.CLOSED
    assert provider.close(reference="nothing").state is StandingState.CLOSED
    assert provider.close(reference="nothing").money == ()


def test_the_task_delivers_only_where_there_is_a_sandbox(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(tasks, "deliver_due", lambda **arguments: calls.append(arguments))
    settings.SANDBOX = False
    tasks.deliver_sandbox()
    assert calls == []
    settings.SANDBOX = True
    tasks.deliver_sandbox()
    assert calls == [{"clock": timezone.now}]
