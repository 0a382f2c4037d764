"""Builders of orders with begun payments, and the sandbox's notifications as it would send them."""

import json
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

from django.test import Client
from django.utils import timezone

from orders.errors import ProviderUnavailable
from orders.models import Order, Payment, PaymentAttempt, SandboxPayment
from orders.providers import Paid
from orders.providers.sandbox.signing import HEADER, sign
from orders.providers.sandbox.till import Behaviour, pay
from orders.services.money import take_money
from orders.services.paying import begin_payment
from orders.states import OrderState, PaymentProblem, PaymentState
from tests.support.rows import NOW, make_order

NOTIFY = "/api/v1/payments/sandbox/notify/"
PRICE = Decimal("1499.00")
IN_TIME = NOW + timedelta(minutes=15)

_numbers = count(1)


def unpaid_order(*, pay_by_at: datetime = IN_TIME) -> Order:
    """Make an order that waits for payment until then."""
    order = make_order()
    Order.objects.filter(pk=order.pk).update(pay_by_at=pay_by_at)
    order.refresh_from_db()
    return order


def begin(order: Order, *, now: datetime = NOW) -> PaymentAttempt:
    """Begin to pay an order at the sandbox; return the begun payment."""
    begin_payment(number=order.number, buyer_id=order.buyer_id, provider="sandbox", now=now)
    return PaymentAttempt.objects.filter(order_id=order.pk).latest("pk")


def begun_order(*, pay_by_at: datetime = IN_TIME) -> tuple[Order, PaymentAttempt]:
    """Make an order whose payment has begun."""
    order = unpaid_order(pay_by_at=pay_by_at)
    attempt = begin(order, now=pay_by_at - timedelta(minutes=1))
    order.refresh_from_db()
    return order, attempt


def money_for(attempt: PaymentAttempt, *, amount: Decimal = PRICE, reference: str | None = None) -> Paid:
    """Money for a begun payment, with a reference of its own."""
    return Paid(provider_reference=reference or f"p-{next(_numbers)}", order_reference=attempt.reference, amount=amount)


def pay_at_sandbox(attempt: PaymentAttempt, behaviour: Behaviour = Behaviour.NEVER) -> None:
    """Pay on the sandbox's page, of which the shop hears nothing unless it is asked or told."""
    token = SandboxPayment.objects.get(reference=attempt.reference).token
    assert pay(token=token, behaviour=behaviour, now=timezone.now()) == SandboxPayment.State.PAID


def unwelcome_payment(*, now: datetime = NOW) -> Payment:
    """Make money for an order that was closed."""
    order, attempt = begun_order()
    Order.objects.filter(pk=order.pk).update(
        state=OrderState.EXPIRED, payment_begun_at=None, closed_at=now, units_due_at=None
    )
    taken = take_money(provider="sandbox", money=money_for(attempt), now=now)
    assert (taken.state, taken.problem) == (PaymentState.REFUND_DUE, PaymentProblem.CLOSED_ORDER)
    return Payment.objects.get(pk=taken.payment_id)


def paid_order(*, now: datetime = NOW) -> tuple[Order, Payment]:
    """Make an order that was paid at the sandbox."""
    order, attempt = begun_order()
    pay_at_sandbox(attempt)
    charge = SandboxPayment.objects.get(reference=attempt.reference).charges.get()
    taken = take_money(provider="sandbox", money=money_for(attempt, reference=charge.reference), now=now)
    order.refresh_from_db()
    return order, Payment.objects.get(pk=taken.payment_id)


def notice_of(money: Paid, **changes: Any) -> bytes:
    """The body of the sandbox's notification of money."""
    body = {
        "kind": "paid",
        "payment": money.provider_reference,
        "order_reference": money.order_reference,
        "amount": str(money.amount),
    }
    return json.dumps(body | changes).encode()


def notify(body: bytes, *, header: str | None = None) -> tuple[int, str]:
    """Send a notification, signed now unless told otherwise; return the status and what is answered."""
    signature = sign(body=body, at=int(timezone.now().timestamp())) if header is None else header
    response = Client().post(NOTIFY, data=body, content_type="application/json", headers={HEADER: signature})
    assert response["Cache-Control"] == "no-store"
    return response.status_code, response.content.decode()


def silent(*_: object, **__: object) -> Any:
    """Stand for a call to a provider that does not answer."""
    raise ProviderUnavailable("no answer")
