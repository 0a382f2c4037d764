"""Paying: a payment is begun at a provider, under a reference of its own, and the buyer is sent there."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.db import transaction

from orders.conf import LIMITS
from orders.errors import OrderNotFound, PayWindowOver, TransitionRefused
from orders.models import Order, PaymentAttempt
from orders.providers import PaymentWish, provider_named
from orders.services.moves import lock_order, move_locked
from orders.states import AttemptState, OrderState


@dataclass(frozen=True, kw_only=True)
class BegunPayment:
    """Where the buyer pays. The same address for every repeat while the payment is open."""

    number: str
    pay_url: str


def begin_payment(*, number: str, buyer_id: int, provider: str, now: datetime) -> BegunPayment:
    """Begin to pay a buyer's own order at a provider, or go on with what he began there before.

    The begun payment is committed before the provider hears of it: killed in between, the provider
    is asked about it all the same, and the next call starts it again under the same reference.
    Raises ``OrderNotFound``, ``UnknownProvider``, ``PayWindowOver``, ``TransitionRefused`` for an order
    that is not waiting for payment, ``ProviderUnavailable``.
    """
    chosen = provider_named(provider)
    with transaction.atomic(durable=True):
        order = _locked_payable(number=number, buyer_id=buyer_id, now=now)
        amount = order.unit_price * order.quantity
        if amount == 0:
            move_locked(order=order, to_state=OrderState.PAID, now=now, reason="nothing to pay", actor_id=buyer_id)
            return BegunPayment(number=number, pay_url=_return_url(number))
        attempt = _open_attempt(order=order, provider=provider, amount=amount, now=now)
    if not attempt.pay_url:
        wish = PaymentWish(
            reference=attempt.reference, amount=amount, description=number, return_url=_return_url(number)
        )
        attempt.pay_url = chosen.start(wish=wish)
        PaymentAttempt.objects.filter(pk=attempt.pk).update(pay_url=attempt.pay_url, updated_at=now)
    return BegunPayment(number=number, pay_url=attempt.pay_url)


def _locked_payable(*, number: str, buyer_id: int, now: datetime) -> Order:
    order_id = Order.objects.values_list("pk", flat=True).filter(number=number, buyer_id=buyer_id).first()
    if order_id is None:
        raise OrderNotFound
    order = lock_order(order_id=order_id)
    if order.state != OrderState.PENDING_PAYMENT:
        raise TransitionRefused(number=number, to_state=OrderState.PAID)
    if order.pay_by_at <= now:
        raise PayWindowOver
    return order


def _open_attempt(*, order: Order, provider: str, amount: Decimal, now: datetime) -> PaymentAttempt:
    """Return the order's open payment at the provider, or a new one; the order is locked."""
    attempts = PaymentAttempt.objects.filter(order_id=order.pk)
    current = attempts.filter(provider=provider, state=AttemptState.OPEN).first()
    if current is not None:
        return current
    Order.objects.filter(pk=order.pk, payment_begun_at__isnull=True).update(payment_begun_at=now)
    return PaymentAttempt.objects.create(
        order_id=order.pk,
        provider=provider,
        reference=f"{order.number}.{attempts.count() + 1}",
        amount=amount,
        state=AttemptState.OPEN,
        ask_at=min(now + LIMITS.ask_after, order.pay_by_at),
        created_at=now,
        updated_at=now,
    )


def _return_url(number: str) -> str:
    return f"{settings.PUBLIC_URL}{settings.PAYMENT_RETURN_PATH.format(number=number)}"
