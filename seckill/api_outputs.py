"""Bodies of the buyers' API, as the schema tells them."""

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from orders.states import OrderState
from rest.fields import InstantField
from seckill.challenges import ChallengeKind
from seckill.polling import PurchaseState


class ChallengeOutput(serializers.Serializer[None]):
    """A challenge in ALTCHA's form (version 1), or a waiting pass."""

    kind = serializers.ChoiceField(choices=[kind.value for kind in ChallengeKind])
    algorithm = serializers.CharField(required=False, help_text="With `work`: always SHA-256.")
    challenge = serializers.CharField(required=False, help_text="With `work`: the digest to be found, in hex.")
    salt = serializers.CharField(required=False, help_text="With `work`: stands in front of the number.")
    maxNumber = serializers.IntegerField(required=False, help_text="With `work`: the largest number to try.")  # noqa: N815  ALTCHA's
    signature = serializers.CharField(required=False, help_text="With `work`: goes back unchanged.")
    proof = serializers.CharField(required=False, help_text="With `wait`: good for a ticket after the waiting time.")
    wait_seconds = serializers.IntegerField(required=False, help_text="With `wait`.")


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
