"""Jobs of money for ``die``: each goes through all its steps, by the modules' own names, so that one may be deadly."""

from collections.abc import Callable
from datetime import datetime

from orders.models import Order, Payment, PaymentAttempt, Refund
from orders.providers import Paid
from orders.services import honours, money, paying, refunding, sending
from orders.states import RefundedUnitsTo, RefundReason
from seckill import honouring, returns, settlement
from seckill.order_numbers import bucket_of

Clock = Callable[[], datetime]


def pay(order_id: int, clock: Clock) -> None:
    """Begin to pay an order, then be told that it was paid."""
    order = Order.objects.get(pk=order_id)
    paying.begin_payment(number=order.number, buyer_id=order.buyer_id, provider="sandbox", now=clock())
    attempt = PaymentAttempt.objects.get(order_id=order_id)
    paid = Paid(provider_reference="charge-1", order_reference=attempt.reference, amount=attempt.amount)
    money.take_money(provider="sandbox", money=paid, now=clock())


def refund(payment_id: int, clock: Clock) -> None:
    """Refund a payment with its units, tell the provider, and bring the units back."""
    request = refunding.RefundRequest(
        payment_id=payment_id,
        amount=Payment.objects.get(pk=payment_id).amount,
        reason=RefundReason.WITHDRAWN,
        units_to=RefundedUnitsTo.ON_SALE,
    )
    refunding.request_refund(request=request, now=clock())
    sending.push_refund(refund_id=Refund.objects.get().pk, clock=clock)
    returns.return_closed_orders(clock=clock)


def honour(payment_id: int, clock: Clock) -> None:
    """Honour a payment for a closed order."""
    honours.request_honour(payment_id=payment_id, actor_id=None, now=clock())
    number = Order.objects.get().number
    for _ in range(2):
        honouring.honour_open(clock=clock)
        settlement.settle_bucket(bucket=bucket_of(number), clock=clock)


JOBS: dict[str, Callable[[int, Clock], None]] = {"pay": pay, "refund": refund, "honour": honour}
