"""Bodies of the orders' API, as they are told and as the schema tells them: money as text, instants in ISO 8601."""

from typing import Any

from rest_framework import serializers

from orders.selectors import OrderDetail, PaymentView, RefundView
from orders.states import OrderState, PaymentState, RefundState
from rest.fields import InstantField

AMOUNT_HELP = "In the shop's currency, with two decimals."


class RefundOutput(serializers.Serializer[None]):
    """Money that goes back."""

    amount = serializers.CharField(help_text=AMOUNT_HELP)
    state = serializers.ChoiceField(choices=RefundState.values)
    requested_at = InstantField()


class PaymentOutput(serializers.Serializer[None]):
    """Money that has arrived. `REFUND_DUE`: it pays no order and goes back."""

    amount = serializers.CharField(help_text=AMOUNT_HELP)
    state = serializers.ChoiceField(choices=PaymentState.values)
    paid_at = InstantField()
    refunds = RefundOutput(many=True)


class OrderOutput(serializers.Serializer[None]):
    """One order of the asker's."""

    number = serializers.CharField()
    state = serializers.ChoiceField(choices=OrderState.values)
    state_text = serializers.CharField(help_text="For people, in the language asked for.")
    item = serializers.CharField()
    variant = serializers.CharField()
    quantity = serializers.IntegerField()
    unit_price = serializers.CharField(help_text=AMOUNT_HELP)
    amount = serializers.CharField(help_text=AMOUNT_HELP)
    created_at = InstantField()
    pay_by = InstantField()
    closed_at = InstantField(allow_null=True, help_text="Since when the order holds no units any more.")
    payments = PaymentOutput(many=True)


class OrderPageOutput(serializers.Serializer[None]):
    """A page of orders, newest first."""

    results = OrderOutput(many=True)
    next = serializers.CharField(allow_null=True, help_text="Where the following page is.")


class BegunOutput(serializers.Serializer[None]):
    """A payment that was begun."""

    number = serializers.CharField()
    pay_url = serializers.CharField(help_text="Where the buyer pays.")


def order_body(order: OrderDetail) -> dict[str, Any]:
    """Return an order as the API tells it."""
    return {
        "number": order.number,
        "state": order.state,
        "state_text": str(order.state_text),
        "item": order.item,
        "variant": order.variant,
        "quantity": order.quantity,
        "unit_price": str(order.unit_price),
        "amount": str(order.amount),
        "created_at": order.created_at.isoformat(),
        "pay_by": order.pay_by_at.isoformat(),
        "closed_at": order.closed_at.isoformat() if order.closed_at else None,
        "payments": [_payment_body(payment) for payment in order.payments],
    }


def _payment_body(payment: PaymentView) -> dict[str, Any]:
    return {
        "amount": str(payment.amount),
        "state": payment.state,
        "paid_at": payment.paid_at.isoformat(),
        "refunds": [_refund_body(refund) for refund in payment.refunds],
    }


def _refund_body(refund: RefundView) -> dict[str, Any]:
    return {
        "amount": str(refund.amount),
        "state": refund.state,
        "requested_at": refund.requested_at.isoformat(),
    }
