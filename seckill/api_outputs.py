"""Bodies of the buyers' API, as the schema tells them."""

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from orders.states import OrderState
from rest.fields import InstantField
from seckill.polling import PurchaseState


class AcceptedOutput(serializers.Serializer[None]):
    """A purchase that was accepted and is being confirmed."""

    order_no = serializers.CharField()
    status_url = serializers.CharField(help_text="Where to ask what becomes of it.")
    poll_after_ms = serializers.IntegerField(help_text="When to ask first.")


class PlacedOrderOutput(serializers.Serializer[None]):
    """The order a purchase became."""

    number = serializers.CharField()
    state = serializers.ChoiceField(choices=OrderState.values)
    quantity = serializers.IntegerField()
    amount = serializers.CharField(help_text="In the shop's currency, with two decimals.")
    pay_by = InstantField()


class StatusOutput(serializers.Serializer[None]):
    """What became of an order number."""

    order_no = serializers.CharField()
    state = serializers.ChoiceField(choices=[state.value for state in PurchaseState])
    reason = serializers.CharField(required=False, help_text="With `refused`.")
    poll_after_ms = serializers.IntegerField(required=False, help_text="With `queued`: when to ask again.")
    order = PlacedOrderOutput(required=False, allow_null=True, help_text="With `confirmed` and `returned`.")


class OpenPurchaseOutput(StatusOutput):
    """One reservation that is not paid yet."""

    item = serializers.IntegerField()
    status_url = serializers.CharField()


class OpenPurchasesOutput(serializers.Serializer[None]):
    """What a buyer has reserved and not paid."""

    results = OpenPurchaseOutput(many=True)


class HeldOutput(StatusOutput):
    """What a buyer who asks for a ticket already has."""

    may_buy_more = serializers.BooleanField()


class TicketOutput(serializers.Serializer[None]):
    """The right to try once: authentication, idempotency key and order number in one. Keep it out of URLs and logs."""

    ticket = serializers.CharField()
    order_no = serializers.CharField()
    expires_at = InstantField()
    server_time = InstantField()


TicketAnswer = PolymorphicProxySerializer(
    component_name="TicketAnswer", serializers=[TicketOutput, HeldOutput], resource_type_field_name=None
)
