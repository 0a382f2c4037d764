"""Sending refunds: providers are told, then asked until they say what became of them.

An answer that got lost is no answer: the same refund is sent again under the same reference, which a
provider takes for one. No call stands inside a transaction.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal

from django.db import transaction
from django.db.models import F, Sum

from orders.conf import LIMITS, backed_off
from orders.errors import ProviderUnavailable, UnknownProvider
from orders.models import Payment, Refund
from orders.providers import RefundAnswer, RefundStanding, RefundWish, provider_named
from orders.states import (
    PAYMENT_TRANSITIONS,
    REFUND_TRANSITIONS,
    PaymentState,
    RefundState,
    sources_of,
)

logger = logging.getLogger(__name__)


def claim_due_refunds(*, now: datetime) -> list[int]:
    """Return the refunds to send or ask about now, each given to one caller; they come again until they end."""
    due = Refund.objects.filter(due_at__lte=now).order_by("due_at")
    return [refund.pk for refund in due[: LIMITS.batch_size] if _claim(refund=refund, now=now)]


def push_refund(*, refund_id: int, clock: Callable[[], datetime]) -> None:
    """Tell the provider of a refund, or ask about one it has accepted, and note what it says."""
    refund = Refund.objects.select_related("payment").get(pk=refund_id)
    if refund.state not in {RefundState.REQUESTED, RefundState.SENT}:
        return
    try:
        answer = _answer(refund)
    except (ProviderUnavailable, UnknownProvider) as error:
        logger.warning("provider %s says nothing of refund %s yet: %s", refund.provider, refund, error)
        return
    end_refund(refund_id=refund.pk, answer=answer, now=clock())


def end_refund(*, refund_id: int, answer: RefundAnswer, now: datetime) -> None:
    """Note what a provider says of a refund. Said again, or out of order, it changes nothing."""
    refund = Refund.objects.get(pk=refund_id)
    with transaction.atomic(durable=True):
        payment = Payment.objects.select_for_update().get(pk=refund.payment_id)
        match answer.standing:
            case RefundStanding.PENDING:
                reference = answer.provider_reference or refund.provider_reference
                _move(refund=refund, to_state=RefundState.SENT, now=now, provider_reference=reference)
            case RefundStanding.DONE:
                if _move(refund=refund, to_state=RefundState.DONE, now=now, due_at=None):
                    _note_refunded(payment=payment, now=now)
            case RefundStanding.FAILED:
                failure = answer.failure[:200]
                if _move(refund=refund, to_state=RefundState.FAILED, now=now, due_at=None, failure=failure):
                    Payment.objects.filter(pk=payment.pk).update(refunding=F("refunding") - refund.amount)
                    logger.error("refund %s of %s has failed: %s", refund, payment, failure)


def _answer(refund: Refund) -> RefundAnswer:
    provider = provider_named(refund.provider)
    if refund.state == RefundState.SENT:
        return provider.query_refund(reference=refund.reference)
    wish = RefundWish(
        reference=refund.reference, provider_reference=refund.payment.provider_reference, amount=refund.amount
    )
    return provider.refund(wish=wish)


def _claim(*, refund: Refund, now: datetime) -> bool:
    wait = backed_off(tries=refund.tries, first=LIMITS.refund_interval, longest=LIMITS.refund_interval_max)
    mine = Refund.objects.filter(pk=refund.pk, due_at=refund.due_at)
    return mine.update(due_at=now + wait, tries=refund.tries + 1) == 1


def _move(*, refund: Refund, to_state: RefundState, now: datetime, **columns: object) -> bool:
    """Move a refund along its table; tell whether this call did."""
    rows = Refund.objects.filter(pk=refund.pk, state__in=sources_of(REFUND_TRANSITIONS, to_state))
    return rows.update(state=to_state, updated_at=now, **columns) == 1


def _note_refunded(*, payment: Payment, now: datetime) -> None:
    done = Refund.objects.filter(payment_id=payment.pk, state=RefundState.DONE).aggregate(total=Sum("amount"))["total"]
    if (done or Decimal(0)) == payment.amount:
        Payment.objects.filter(pk=payment.pk, state__in=sources_of(PAYMENT_TRANSITIONS, PaymentState.REFUNDED)).update(
            state=PaymentState.REFUNDED, updated_at=now
        )
