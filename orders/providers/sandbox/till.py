"""The sandbox's till: somebody pays, and the shop is told, in one of the ways real providers tell."""

import json
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import models, transaction
from django.utils.translation import gettext_lazy as _

from orders.models import SandboxCharge, SandboxNotice, SandboxPayment

LATE_AFTER = timedelta(seconds=20)
NEXT_AFTER = timedelta(seconds=1)


class Behaviour(models.TextChoices):
    """How the shop is told, and what goes wrong with the money."""

    PROMPT = "PROMPT", _("tell the shop at once")
    LATE = "LATE", _("tell it twenty seconds later")
    TWICE = "TWICE", _("tell it twice")
    OUT_OF_ORDER = "OUT_OF_ORDER", _("tell it in the wrong order")
    NEVER = "NEVER", _("never tell it")
    PAID_TWICE = "PAID_TWICE", _("take the money twice")
    TOO_LITTLE = "TOO_LITTLE", _("take one cent too little")


# Amounts that end so behave so when the payer leaves the choice to the amount.
OF_CENTS = {
    1: Behaviour.LATE,
    2: Behaviour.TWICE,
    3: Behaviour.OUT_OF_ORDER,
    4: Behaviour.NEVER,
    5: Behaviour.PAID_TWICE,
    6: Behaviour.TOO_LITTLE,
}


@dataclass(frozen=True, kw_only=True)
class Telling:
    """One notification to come."""

    kind: str
    after: timedelta = timedelta(0)


_TELLINGS = {
    Behaviour.PROMPT: [Telling(kind="paid")],
    Behaviour.LATE: [Telling(kind="paid", after=LATE_AFTER)],
    Behaviour.TWICE: [Telling(kind="paid"), Telling(kind="paid", after=NEXT_AFTER)],
    Behaviour.OUT_OF_ORDER: [Telling(kind="paid"), Telling(kind="pending", after=NEXT_AFTER)],
    Behaviour.NEVER: [],
    Behaviour.PAID_TWICE: [Telling(kind="paid")],
    Behaviour.TOO_LITTLE: [Telling(kind="paid")],
}


def behaviour_by_amount(*, amount: Decimal) -> Behaviour:
    """Return how a payment behaves whose payer chooses nothing."""
    return OF_CENTS.get(int(amount * 100) % 100, Behaviour.PROMPT)


def pay(*, token: str, behaviour: Behaviour, now: datetime) -> SandboxPayment.State:
    """Take the money, once, and queue what the shop is told; return where the payment stands then."""
    with transaction.atomic(durable=True):
        payment = SandboxPayment.objects.select_for_update().get(token=token)
        if payment.state != SandboxPayment.State.OPEN:
            return SandboxPayment.State(payment.state)
        SandboxPayment.objects.filter(pk=payment.pk).update(state=SandboxPayment.State.PAID)
        amount = payment.amount - Decimal("0.01") if behaviour is Behaviour.TOO_LITTLE else payment.amount
        for _number in range(2 if behaviour is Behaviour.PAID_TWICE else 1):
            _charge(payment=payment, amount=amount, behaviour=behaviour, now=now)
    return SandboxPayment.State.PAID


def give_up(*, token: str, now: datetime) -> SandboxPayment.State:
    """Close a payment at the payer's wish, and tell the shop; return where it stands then."""
    with transaction.atomic(durable=True):
        payment = SandboxPayment.objects.select_for_update().get(token=token)
        if payment.state != SandboxPayment.State.OPEN:
            return SandboxPayment.State(payment.state)
        SandboxPayment.objects.filter(pk=payment.pk).update(state=SandboxPayment.State.CLOSED)
        _queue(body={"kind": "closed", "order_reference": payment.reference}, due_at=now, now=now)
    return SandboxPayment.State.CLOSED


def _charge(*, payment: SandboxPayment, amount: Decimal, behaviour: Behaviour, now: datetime) -> None:
    charge = SandboxCharge.objects.create(
        payment=payment, reference=f"sandbox-{secrets.token_hex(10)}", amount=amount, created_at=now
    )
    body = {"order_reference": payment.reference, "payment": charge.reference, "amount": str(amount)}
    for telling in _TELLINGS[behaviour]:
        _queue(body=body | {"kind": telling.kind}, due_at=now + telling.after, now=now)


def _queue(*, body: dict[str, str], due_at: datetime, now: datetime) -> None:
    SandboxNotice.objects.create(body=json.dumps(body), due_at=due_at, created_at=now)
