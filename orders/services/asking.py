"""Asking providers what became of begun payments: notifications get lost, and closing needs an answer.

While the order waits, its provider is asked now and then, so that a lost notification costs a
minute at most. When its time is over the payment is closed at the provider, then the order expires.
A provider that does not say may hold the units for two minutes; then they come back, and it is asked on:
money that turns up is refund due. No call stands inside a transaction.
"""

import logging
from collections.abc import Callable
from datetime import datetime

from django.db import transaction

from orders.conf import LIMITS, backed_off
from orders.errors import ProviderUnavailable, UnknownProvider
from orders.models import Order, PaymentAttempt
from orders.providers import Standing, StandingState, provider_named
from orders.services.expiry import NOT_PAID
from orders.services.money import forget_begun_payment, take_money
from orders.services.moves import lock_order, move_locked
from orders.states import ATTEMPT_TRANSITIONS, AttemptState, OrderState, sources_of

logger = logging.getLogger(__name__)

NOBODY_SAID = "not paid in time, as far as the provider tells"
UNKNOWN = Standing(state=StandingState.UNKNOWN)


def claim_due_attempts(*, now: datetime) -> list[int]:
    """Return the begun payments to ask about now, each given to one caller; unanswered ones come again later."""
    due = PaymentAttempt.objects.filter(ask_at__lte=now).select_related("order").order_by("ask_at")
    return [attempt.pk for attempt in due[: LIMITS.batch_size] if _claim(attempt=attempt, now=now)]


def next_ask_at(*, order: Order, asks: int, now: datetime) -> datetime:
    """Return when to ask again: soon while units wait for the answer, never past the time to pay without asking."""
    if order.state != OrderState.PENDING_PAYMENT:
        return now + backed_off(tries=asks, first=LIMITS.ask_when_due, longest=LIMITS.ask_when_closed_max)
    if now >= order.pay_by_at:
        return now + LIMITS.ask_when_due
    return min(now + backed_off(tries=asks, first=LIMITS.ask_after, longest=LIMITS.ask_interval_max), order.pay_by_at)


def ask_about(*, attempt_id: int, clock: Callable[[], datetime]) -> None:
    """Ask the provider about one begun payment, and do what its answer means."""
    attempt = PaymentAttempt.objects.select_related("order").get(pk=attempt_id)
    if attempt.state != AttemptState.OPEN:
        return
    order = attempt.order
    shall_close = order.state != OrderState.PENDING_PAYMENT or order.pay_by_at <= clock()
    standing = _standing_of(attempt=attempt, shall_close=shall_close)
    _note(attempt=attempt, standing=standing, now=clock())
    if standing.state is StandingState.UNKNOWN:
        _nobody_said(attempt=attempt, now=clock())


def ask_soon(*, provider: str, reference: str, now: datetime) -> None:
    """Have the provider asked about a begun payment, as it hinted that something happened."""
    PaymentAttempt.objects.filter(provider=provider, reference=reference, state=AttemptState.OPEN).update(ask_at=now)


def close_payments_of(*, order_id: int, now: datetime) -> None:
    """Close an order's begun payments at their providers; money that had arrived pays the order.

    Raises ``ProviderUnavailable`` when one of them does not say that it is closed or paid.
    """
    for attempt in PaymentAttempt.objects.filter(order_id=order_id, state=AttemptState.OPEN):
        standing = _standing_of(attempt=attempt, shall_close=True)
        _note(attempt=attempt, standing=standing, now=now)
        if standing.state in {StandingState.OPEN, StandingState.UNKNOWN}:
            raise ProviderUnavailable(f"{attempt} is {standing.state}")


def _claim(*, attempt: PaymentAttempt, now: datetime) -> bool:
    ask_at = next_ask_at(order=attempt.order, asks=attempt.asks, now=now)
    mine = PaymentAttempt.objects.filter(pk=attempt.pk, ask_at=attempt.ask_at)
    return mine.update(ask_at=ask_at, asks=attempt.asks + 1) == 1


def _standing_of(*, attempt: PaymentAttempt, shall_close: bool) -> Standing:
    """Ask, and close what is open if it shall be closed. Whatever goes wrong there is an unknown standing here."""
    try:
        provider = provider_named(attempt.provider)
        standing = provider.query(reference=attempt.reference)
        if shall_close and standing.state is StandingState.OPEN:
            standing = _closed(provider.close(reference=attempt.reference), attempt=attempt)
    except (ProviderUnavailable, UnknownProvider) as error:
        logger.warning("provider %s does not say what became of %s: %s", attempt.provider, attempt, error)
        return UNKNOWN
    except Exception:  # an adapter's fault must not hold an order's units for ever; it is logged
        logger.exception("provider %s cannot be asked about %s", attempt.provider, attempt)
        return UNKNOWN
    if standing.state is StandingState.PAID and not standing.money:
        logger.error("provider %s says that %s is paid, and not by what", attempt.provider, attempt)
        return UNKNOWN
    return standing


def _closed(standing: Standing, *, attempt: PaymentAttempt) -> Standing:
    """Take a payment that cannot be closed, say while its payer types, for one that nobody tells of: its grace ends."""
    if standing.state is not StandingState.OPEN:
        return standing
    logger.warning("provider %s does not close %s", attempt.provider, attempt)
    return UNKNOWN


def _note(*, attempt: PaymentAttempt, standing: Standing, now: datetime) -> None:
    for money in standing.money:
        take_money(provider=attempt.provider, money=money, now=now)
    if standing.state is StandingState.CLOSED:
        _close(attempt=attempt, now=now)


def _close(*, attempt: PaymentAttempt, now: datetime) -> None:
    """Note that a payment brings no money; when it was the last and its order's time is over, the order expires."""
    with transaction.atomic(durable=True):
        order = lock_order(order_id=attempt.order_id)
        _end(attempt=attempt, to_state=AttemptState.CLOSED, now=now)
        forget_begun_payment(order_id=order.pk)
        is_open = PaymentAttempt.objects.filter(order_id=order.pk, state=AttemptState.OPEN).exists()
        if order.state == OrderState.PENDING_PAYMENT and order.pay_by_at <= now and not is_open:
            move_locked(order=order, to_state=OrderState.EXPIRED, now=now, reason=NOT_PAID)


def _nobody_said(*, attempt: PaymentAttempt, now: datetime) -> None:
    """Give the units back when the grace is over; give the payment up when nobody told for days."""
    with transaction.atomic(durable=True):
        order = lock_order(order_id=attempt.order_id)
        if order.state == OrderState.PENDING_PAYMENT and now >= order.pay_by_at + LIMITS.grace:
            move_locked(order=order, to_state=OrderState.EXPIRED, now=now, reason=NOBODY_SAID)
        if order.state != OrderState.PENDING_PAYMENT and now >= attempt.created_at + LIMITS.ask_for:
            logger.error(
                "nobody told for %s what became of %s; it is not asked about any more", LIMITS.ask_for, attempt
            )
            _end(attempt=attempt, to_state=AttemptState.LOST, now=now)


def _end(*, attempt: PaymentAttempt, to_state: AttemptState, now: datetime) -> None:
    PaymentAttempt.objects.filter(pk=attempt.pk, state__in=sources_of(ATTEMPT_TRANSITIONS, to_state)).update(
        state=to_state, ask_at=None, updated_at=now
    )
