"""Asking providers: lost notifications, and the closing of orders whose payment has begun."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import pytest

from orders.conf import LIMITS
from orders.errors import ProviderUnavailable, TransitionRefused
from orders.models import Order, OrderEvent, Payment, PaymentAttempt, SandboxPayment
from orders.providers import Standing, StandingState
from orders.providers.sandbox.provider import SandboxProvider
from orders.services import asking
from orders.services.asking import ask_about, claim_due_attempts, next_ask_at
from orders.services.cancelling import cancel_order
from orders.services.expiry import expire_orders
from orders.services.money import take_money
from orders.states import OrderState
from tests.support.payments import (
    IN_TIME,
    begin,
    begun_order,
    money_for,
    pay_at_sandbox,
    silent,
    unpaid_order,
)
from tests.support.rows import NOW
from tests.support.threads import run_together
from tests.support.unsafe_writes import unsafe_move

BEFORE = IN_TIME - timedelta(seconds=1)
GRACE_OVER = IN_TIME + timedelta(minutes=2)


def at(now: datetime) -> Callable[[], datetime]:
    return lambda: now


def expire(now: datetime) -> int:
    return expire_orders(now=now, batch_size=10)


def ask(now: datetime) -> int:
    """Do what the periodic task does; return how many were asked about."""
    due = claim_due_attempts(now=now)
    for attempt_id in due:
        ask_about(attempt_id=attempt_id, clock=at(now))
    return len(due)


def state() -> str:
    return Order.objects.get().state


def test_a_lost_notification_is_found_by_asking() -> None:
    """CASES 5: the buyer has paid, the provider never tells."""
    _, attempt = begun_order()
    pay_at_sandbox(attempt)
    assert ask(BEFORE) == 1
    assert state() == "PAID"
    assert Payment.objects.get().state == "ACCEPTED"


def test_while_it_can_be_paid_an_open_payment_is_left_alone() -> None:
    begun_order()
    assert ask(BEFORE) == 1
    assert SandboxPayment.objects.get().state == "OPEN"
    assert state() == "PENDING_PAYMENT"


def test_an_order_whose_payment_has_begun_is_not_expired_unasked() -> None:
    """CASES 5a: paid at the provider, unknown to the shop, past its time."""
    _, attempt = begun_order()
    pay_at_sandbox(attempt)
    assert expire(IN_TIME) == 0
    assert ask(IN_TIME) == 1
    assert state() == "PAID"
    assert expire(IN_TIME) == 0


def test_open_at_its_time_it_is_closed_there_then_expired() -> None:
    _, attempt = begun_order()
    assert ask(IN_TIME) == 1
    order = Order.objects.get()
    assert SandboxPayment.objects.get().state == "CLOSED"
    assert (order.state, order.payment_begun_at, order.closed_at) == ("EXPIRED", None, IN_TIME)
    assert order.units_due_at == IN_TIME
    assert OrderEvent.objects.get().reason == "not paid in time"
    attempt.refresh_from_db()
    assert (attempt.state, attempt.ask_at) == ("CLOSED", None)


def test_closed_by_the_payer_before_its_time_it_may_be_begun_again() -> None:
    order, attempt = begun_order()
    SandboxPayment.objects.update(state="CLOSED")
    assert ask(BEFORE) == 1
    order.refresh_from_db()
    assert (order.state, order.payment_begun_at) == ("PENDING_PAYMENT", None)
    assert begin(order, now=BEFORE).reference == f"{order.number}.2"
    assert attempt.pk != PaymentAttempt.objects.latest("pk").pk


def test_an_unknown_standing_has_two_minutes_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the units come back; the provider is asked on, and what turns up is refund due."""
    _, attempt = begun_order()
    pay_at_sandbox(attempt)
    with monkeypatch.context() as patch:
        patch.setattr(SandboxProvider, "query", silent)
        for now in (IN_TIME, GRACE_OVER - timedelta(seconds=1)):
            PaymentAttempt.objects.update(ask_at=now)
            assert ask(now) == 1
            assert expire(now) == 0
            assert state() == "PENDING_PAYMENT"
        assert ask(GRACE_OVER + LIMITS.ask_when_due) == 1
    assert state() == "EXPIRED"
    assert "as far as the provider tells" in OrderEvent.objects.get().reason
    attempt.refresh_from_db()
    assert attempt.state == "OPEN"
    assert ask(GRACE_OVER + timedelta(hours=2)) == 1
    payment = Payment.objects.get()
    assert (payment.state, payment.problem, state()) == ("REFUND_DUE", "CLOSED_ORDER", "EXPIRED")


def test_a_provider_that_never_tells_is_given_up_after_days(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _, attempt = begun_order()
    monkeypatch.setattr(SandboxProvider, "query", silent)
    ask_about(attempt_id=attempt.pk, clock=at(GRACE_OVER))
    ask_about(attempt_id=attempt.pk, clock=at(NOW + timedelta(days=2)))
    attempt.refresh_from_db()
    assert attempt.state == "OPEN"
    ask_about(attempt_id=attempt.pk, clock=at(NOW + timedelta(days=4)))
    attempt.refresh_from_db()
    assert (attempt.state, attempt.ask_at) == ("LOST", None)
    assert "not asked about any more" in caplog.text
    taken = take_money(provider="sandbox", money=money_for(attempt), now=NOW)
    assert taken.problem == "CLOSED_ORDER"


@pytest.mark.parametrize(
    "answer", [lambda *_, **__: 1 / 0, lambda *_, **__: Standing(state=StandingState.PAID), silent]
)
def test_an_adapter_that_fails_is_an_unknown_standing(
    answer: Callable[..., Standing], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not hold the units for ever, nor be taken for an answer."""
    begun_order()
    monkeypatch.setattr(SandboxProvider, "query", answer)
    ask(IN_TIME)
    assert state() == "PENDING_PAYMENT"
    ask(GRACE_OVER)
    assert state() == "EXPIRED"


def test_of_two_payments_both_must_be_closed() -> None:
    order = unpaid_order()
    first = begin(order)
    PaymentAttempt.objects.filter(pk=first.pk).update(provider="gone")
    second = begin(order)
    ask_about(attempt_id=second.pk, clock=at(IN_TIME))
    assert (state(), Order.objects.get().payment_begun_at) == ("PENDING_PAYMENT", NOW)
    ask_about(attempt_id=first.pk, clock=at(IN_TIME))
    assert state() == "PENDING_PAYMENT"
    ask_about(attempt_id=first.pk, clock=at(GRACE_OVER))
    assert state() == "EXPIRED"


def test_what_was_wrong_and_left_unpaid_expires_as_any_other() -> None:
    _, attempt = begun_order()
    take_money(provider="sandbox", money=money_for(attempt, amount=attempt.amount + 1), now=NOW)
    assert expire(IN_TIME) == 1


def test_a_question_is_given_to_one_of_ten_workers() -> None:
    """CASES 28: overlapping runs."""
    begun_order()
    assert sum(len(claimed) for claimed in run_together(lambda _: claim_due_attempts(now=IN_TIME), range(10))) == 1


def test_questions_come_rarely_at_first_then_at_the_very_end() -> None:
    order, _ = begun_order()
    seconds = [(next_ask_at(order=order, asks=asks, now=NOW) - NOW).total_seconds() for asks in range(4)]
    assert seconds == [15, 30, 60, 60]
    assert next_ask_at(order=order, asks=5, now=BEFORE) == IN_TIME
    assert next_ask_at(order=order, asks=5, now=IN_TIME) == IN_TIME + timedelta(seconds=5)
    order.state = OrderState.EXPIRED
    assert next_ask_at(order=order, asks=1, now=NOW) == NOW + timedelta(seconds=10)
    assert next_ask_at(order=order, asks=60, now=NOW) == NOW + timedelta(hours=1)


def test_what_was_paid_meanwhile_is_not_asked_about() -> None:
    _, attempt = begun_order()
    take_money(provider="sandbox", money=money_for(attempt), now=NOW)
    ask_about(attempt_id=attempt.pk, clock=at(IN_TIME))
    assert SandboxPayment.objects.get().state == "OPEN"


def cancel(order: Order, now: datetime = BEFORE) -> None:
    cancel_order(number=order.number, buyer_id=order.buyer_id, now=now)


def test_cancelling_closes_the_begun_payment_first() -> None:
    order, attempt = begun_order()
    cancel(order)
    attempt.refresh_from_db()
    assert (state(), SandboxPayment.objects.get().state, attempt.state) == ("CANCELLED", "CLOSED", "CLOSED")


def test_cancelling_what_was_paid_unseen_finds_the_money() -> None:
    order, attempt = begun_order()
    pay_at_sandbox(attempt)
    with pytest.raises(TransitionRefused):
        cancel(order)
    assert (state(), Payment.objects.get().state) == ("PAID", "ACCEPTED")


def test_cancelling_waits_for_a_provider_that_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law 5: unknown is not closed."""
    order, _ = begun_order()
    monkeypatch.setattr(SandboxProvider, "close", silent)
    with pytest.raises(ProviderUnavailable):
        cancel(order)
    assert (state(), OrderEvent.objects.count()) == ("PENDING_PAYMENT", 0)


def test_a_payment_begun_between_the_closing_and_the_cancelling_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order's own row says that money may come: what is closed at the provider is not what was begun since."""
    order, _ = begun_order()
    close = asking._close

    def close_and_begin(**arguments: object) -> None:
        close(**arguments)  # type: ignore[arg-type]
        begin(order, now=BEFORE)

    monkeypatch.setattr(asking, "_close", close_and_begin)
    with pytest.raises(TransitionRefused):
        cancel(order)
    assert state() == "PENDING_PAYMENT"
    monkeypatch.setattr(asking, "_close", close)
    cancel(order)
    assert state() == "CANCELLED"


@pytest.mark.parametrize("door", ["expire", "cancel"])
def test_money_racing_a_closing_is_never_lost(door: str) -> None:
    """CASES 5: either it pays the order, or the order is closed and the money is refund due; time and again."""
    for _ in range(5):
        order, attempt = begun_order()
        # The provider said closed, and money comes all the same.
        PaymentAttempt.objects.update(state="CLOSED", ask_at=None)
        Order.objects.update(payment_begun_at=None)
        pay = partial(take_money, provider="sandbox", money=money_for(attempt), now=NOW)
        close = partial(expire, IN_TIME) if door == "expire" else partial(try_cancel, order)
        doors: list[Callable[[], object]] = [pay, close]
        run_together(lambda go: go(), doors)
        order.refresh_from_db()
        payment = Payment.objects.get(order=order)
        paid = (order.state, payment.state, payment.problem) == ("PAID", "ACCEPTED", "")
        closed = order.closed_at is not None and (payment.state, payment.problem) == ("REFUND_DUE", "CLOSED_ORDER")
        assert paid != closed
        assert OrderEvent.objects.filter(order=order).count() == 1


def try_cancel(order: Order) -> bool:
    try:
        cancel(order)
    except TransitionRefused:
        return False
    return True


def test_control_expiry_that_reads_then_writes() -> None:
    """The control: the order is paid and expired, by two who both believe it."""
    order = unpaid_order()
    move = unsafe_move(writers=2)
    wishes = [OrderState.PAID, OrderState.EXPIRED]
    assert run_together(lambda wish: move(order.number, wish), wishes) == [True, True]


def test_a_payment_that_begins_while_the_order_expires_is_seen() -> None:
    """Of a beginning and an expiry at the same instant one wins; nobody pays for what is expired."""
    for _ in range(5):
        order = unpaid_order()
        doors: list[Callable[[], object]] = [partial(try_begin, order), partial(expire, IN_TIME)]
        run_together(lambda go: go(), doors)
        order.refresh_from_db()
        has_begun = PaymentAttempt.objects.filter(order=order).exists()
        assert (order.state == "PENDING_PAYMENT") == has_begun
        assert (order.payment_begun_at is not None) == has_begun
        Order.objects.all().update(state="PAID", payment_begun_at=None, closed_at=None, units_due_at=None)


def try_begin(order: Order) -> bool:
    try:
        begin(order, now=BEFORE)
    except TransitionRefused:
        return False
    return True


def test_a_payment_that_stays_open_holds_no_unit_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some providers close nothing while the payer is at it; after the grace his money is refund due."""
    _, attempt = begun_order()
    monkeypatch.setattr(SandboxProvider, "close", lambda *_, **__: Standing(state=StandingState.OPEN))
    assert ask(IN_TIME) == 1
    assert state() == "PENDING_PAYMENT"
    assert ask(GRACE_OVER) == 1
    assert state() == "EXPIRED"
    take_money(provider="sandbox", money=money_for(attempt), now=GRACE_OVER)
    assert Payment.objects.get().state == "REFUND_DUE"
