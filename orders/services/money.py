"""Taking money: whatever a provider says has arrived is recorded, once, and pays its order if it may."""

import logging
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import IntegrityError, transaction

from orders.models import Order, Payment, PaymentAttempt
from orders.providers import Paid
from orders.services.moves import lock_order, move_locked
from orders.states import (
    ATTEMPT_TRANSITIONS,
    AttemptState,
    OrderState,
    PaymentProblem,
    PaymentState,
    sources_of,
)

logger = logging.getLogger(__name__)

DUPLICATE_KEY = 1062


@dataclass(frozen=True, kw_only=True)
class MoneyTaken:
    """What became of money; ``is_new`` the first time it is told."""

    payment_id: int
    state: PaymentState
    problem: str
    is_new: bool


def judge(*, state: OrderState | None, amount_due: Decimal, amount: Decimal) -> PaymentProblem | None:
    """Return why money for an order in that state (None: no such order) is unwelcome, or None.

    That its time to pay is over is no reason: an order that waits is paid.
    """
    if state is None:
        return PaymentProblem.UNKNOWN_ORDER
    if amount != amount_due:
        return PaymentProblem.WRONG_AMOUNT
    if state is OrderState.PAID:
        return PaymentProblem.SECOND_PAYMENT
    if state is not OrderState.PENDING_PAYMENT:
        return PaymentProblem.CLOSED_ORDER
    return None


def take_money(*, provider: str, money: Paid, now: datetime) -> MoneyTaken:
    """Record money once per provider and reference; pay its order with it, or leave it refund due.

    Told again, at once or later, it changes nothing.
    """
    try:
        return _take(provider=provider, money=money, now=now)
    except IntegrityError as error:
        if error.args[0] != DUPLICATE_KEY:
            raise
    # Somebody else was told of the same money for no order, which no lock of an order keeps apart.
    return _take(provider=provider, money=money, now=now)


def _take(*, provider: str, money: Paid, now: datetime) -> MoneyTaken:
    attempt = PaymentAttempt.objects.filter(provider=provider, reference=money.order_reference).first()
    with transaction.atomic(durable=True):
        order = None if attempt is None else lock_order(order_id=attempt.order_id)
        known = Payment.objects.filter(provider=provider, provider_reference=money.provider_reference).first()
        if known is not None:
            return _told_again(known=known, money=money)
        payment = _record(provider=provider, money=money, order=order, now=now)
        if attempt is not None and order is not None:
            _settle_attempt(attempt=attempt, order=order, is_accepted=payment.pays_id is not None, now=now)
    if payment.problem:
        logger.warning("payment %s of %s is unwelcome, its refund is due: %s", payment, payment.amount, payment.problem)
    return _taken(payment=payment, is_new=True)


def _record(*, provider: str, money: Paid, order: Order | None, now: datetime) -> Payment:
    problem = judge(
        state=None if order is None else OrderState(order.state),
        amount_due=Decimal(0) if order is None else order.unit_price * order.quantity,
        amount=money.amount,
    )
    return Payment.objects.create(
        order=order,
        pays=order if problem is None else None,
        provider=provider,
        provider_reference=money.provider_reference,
        order_reference=money.order_reference,
        amount=money.amount,
        state=PaymentState.ACCEPTED if problem is None else PaymentState.REFUND_DUE,
        problem=problem or "",
        created_at=now,
        updated_at=now,
    )


def _settle_attempt(*, attempt: PaymentAttempt, order: Order, is_accepted: bool, now: datetime) -> None:
    """Mark the begun payment as paid; what else is open for a paid order is to be closed at its provider."""
    sources = sources_of(ATTEMPT_TRANSITIONS, AttemptState.PAID)
    PaymentAttempt.objects.filter(pk=attempt.pk, state__in=sources).update(
        state=AttemptState.PAID, ask_at=None, updated_at=now
    )
    if is_accepted:
        move_locked(order=order, to_state=OrderState.PAID, now=now, reason=f"paid by {attempt.provider}")
        PaymentAttempt.objects.filter(order_id=order.pk, state=AttemptState.OPEN).update(ask_at=now)
    else:
        forget_begun_payment(order_id=order.pk)


def forget_begun_payment(*, order_id: int) -> None:
    """Note on a locked order that no begun payment can bring money any more, if that is so."""
    if not PaymentAttempt.objects.filter(order_id=order_id, state=AttemptState.OPEN).exists():
        Order.objects.filter(pk=order_id).update(payment_begun_at=None)


def _told_again(*, known: Payment, money: Paid) -> MoneyTaken:
    if (known.amount, known.order_reference) != (money.amount, money.order_reference):
        logger.error("the provider tells payment %s in two ways; the first stands, the other is %s", known, money)
    return _taken(payment=known, is_new=False)


def _taken(*, payment: Payment, is_new: bool) -> MoneyTaken:
    return MoneyTaken(payment_id=payment.pk, state=PaymentState(payment.state), problem=payment.problem, is_new=is_new)
