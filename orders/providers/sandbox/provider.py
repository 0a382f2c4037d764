"""The sandbox behind the interface of all providers."""

import json
import secrets
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from orders.errors import NoticeInvalid
from orders.models import SandboxCharge, SandboxPayment, SandboxRefund
from orders.providers.interface import (
    Fact,
    Paid,
    PaymentMoved,
    PaymentWish,
    RawNotice,
    RefundAnswer,
    RefundEnded,
    RefundStanding,
    RefundWish,
    Standing,
    StandingState,
)
from orders.providers.sandbox.signing import HEADER, is_genuine

# What a real bank takes days for.
REFUND_SETTLES_AFTER = timedelta(seconds=3)
# Amounts that end so are refused at once, or fail at the bank: for trying out what then happens.
CENTS_REFUSED, CENTS_FAILING = 98, 99
AMOUNT_MAX = Decimal(10) ** 10

_STANDINGS = {
    SandboxPayment.State.OPEN: StandingState.OPEN,
    SandboxPayment.State.PAID: StandingState.PAID,
    SandboxPayment.State.CLOSED: StandingState.CLOSED,
}


class SandboxProvider:
    """Answers as a provider over the network would; transactions are its own, so no caller may be inside one."""

    acknowledgement = "OK"

    def start(self, *, wish: PaymentWish) -> str:
        """Begin a payment, once per reference; return its page."""
        with transaction.atomic(durable=True):
            payment, _ = SandboxPayment.objects.get_or_create(
                reference=wish.reference,
                defaults={
                    "token": secrets.token_urlsafe(24),
                    "amount": wish.amount,
                    "description": wish.description[:200],
                    "return_url": wish.return_url,
                    "created_at": timezone.now(),
                },
            )
        return f"{settings.PUBLIC_URL}{reverse('sandbox-pay', args=[payment.token])}"

    def verify(self, *, notice: RawNotice) -> Fact:
        """Check the signature, then read the body."""
        header = notice.headers.get(HEADER, "")
        if not is_genuine(body=notice.body, header=header, now=int(notice.received_at.timestamp())):
            raise NoticeInvalid("the signature does not hold")
        try:
            return _fact(json.loads(notice.body))
        except (ValueError, KeyError, TypeError, InvalidOperation) as error:
            raise NoticeInvalid(f"the notification cannot be read: {error}") from error

    def query(self, *, reference: str) -> Standing:
        """Return where a payment stands, with every charge of it."""
        payment = SandboxPayment.objects.filter(reference=reference).first()
        return Standing(state=StandingState.CLOSED) if payment is None else _standing(payment)

    def close(self, *, reference: str) -> Standing:
        """Close a payment that is open; one never begun is closed before it begins."""
        with transaction.atomic(durable=True):
            SandboxPayment.objects.get_or_create(
                reference=reference,
                defaults={
                    "token": secrets.token_urlsafe(24),
                    "state": SandboxPayment.State.CLOSED,
                    "created_at": timezone.now(),
                },
            )
            payment = SandboxPayment.objects.select_for_update().get(reference=reference)
            if payment.state == SandboxPayment.State.OPEN:
                payment.state = SandboxPayment.State.CLOSED
                SandboxPayment.objects.filter(pk=payment.pk).update(state=payment.state)
        return _standing(payment)

    def refund(self, *, wish: RefundWish) -> RefundAnswer:
        """Accept a refund, once per reference, or refuse it at once; its outcome comes later."""
        with transaction.atomic(durable=True):
            known = SandboxRefund.objects.filter(reference=wish.reference).first()
            if known is None:
                charge = SandboxCharge.objects.select_for_update().filter(reference=wish.provider_reference).first()
                failure = _why_not(charge=charge, amount=wish.amount)
                if failure or charge is None:
                    return RefundAnswer(standing=RefundStanding.FAILED, failure=failure)
                known = SandboxRefund.objects.create(
                    charge=charge,
                    reference=wish.reference,
                    amount=wish.amount,
                    will_fail=_cents(wish.amount) == CENTS_FAILING,
                    settles_at=timezone.now() + REFUND_SETTLES_AFTER,
                )
        return _refund_answer(known)

    def query_refund(self, *, reference: str) -> RefundAnswer:
        """Return where a refund stands."""
        refund = SandboxRefund.objects.filter(reference=reference).first()
        return RefundAnswer(standing=RefundStanding.UNKNOWN) if refund is None else _refund_answer(refund)


def _fact(body: Mapping[str, Any]) -> Fact:
    match body["kind"]:
        case "paid":
            return Paid(
                provider_reference=_text(body["payment"]),
                order_reference=_text(body["order_reference"]),
                amount=_amount(body["amount"]),
            )
        case "refund":
            return RefundEnded(reference=_text(body["refund"]), standing=RefundStanding(body["outcome"]))
        case _:
            return PaymentMoved(order_reference=_text(body["order_reference"]))


def _text(value: Any) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= 64:
        raise ValueError("a reference is missing")
    return value


def _amount(value: Any) -> Decimal:
    amount = Decimal(_text(value))
    if not amount.is_finite() or not 0 < amount < AMOUNT_MAX or amount != round(amount, 2):
        raise ValueError("no amount of money")
    return amount


def _standing(payment: SandboxPayment) -> Standing:
    money = tuple(
        Paid(provider_reference=charge.reference, order_reference=payment.reference, amount=charge.amount)
        for charge in payment.charges.order_by("pk")
    )
    return Standing(state=_STANDINGS[SandboxPayment.State(payment.state)], money=money)


def _why_not(*, charge: SandboxCharge | None, amount: Decimal) -> str:
    if charge is None:
        return "no such payment"
    refunded = sum((refund.amount for refund in charge.refunds.filter(will_fail=False)), Decimal(0))
    if refunded + amount > charge.amount:
        return "more than was paid"
    return "refused by the sandbox" if _cents(amount) == CENTS_REFUSED else ""


def _refund_answer(refund: SandboxRefund) -> RefundAnswer:
    standing = RefundStanding.FAILED if refund.will_fail else RefundStanding.DONE
    if timezone.now() < refund.settles_at:
        standing = RefundStanding.PENDING
    failure = "failed at the sandbox's bank" if standing is RefundStanding.FAILED else ""
    return RefundAnswer(standing=standing, provider_reference=f"sandbox-refund-{refund.pk}", failure=failure)


def _cents(amount: Decimal) -> int:
    return int(amount * 100) % 100
