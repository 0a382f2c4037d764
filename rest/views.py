"""Calls that belong to no app: who the server takes the caller for, and what time it is."""

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from rest.answers import private
from rest.calls import ApiView
from rest.documents import documented
from rest.fields import InstantField


class MeOutput(serializers.Serializer[None]):
    """The account that is asking."""

    id = serializers.IntegerField()
    username = serializers.CharField()
    is_operator = serializers.BooleanField(help_text="Whether operators' calls are worth trying.")


class TimeOutput(serializers.Serializer[None]):
    """The server's clock."""

    server_time = InstantField()
    server_time_ms = serializers.IntegerField(help_text="The same, in milliseconds since 1970.")


class MeView(ApiView):
    """``GET /me/``."""

    @documented(answers={200: MeOutput}, tag="account")
    def get(self, request: Request) -> Response:
        """Say whom the server takes the caller for."""
        user = request.user
        return private({"id": user.pk, "username": user.get_username(), "is_operator": user.is_staff})


class TimeView(ApiView):
    """``GET /time/``: no cache keeps it, so that clocks can be set by it."""

    authentication_classes = ()
    permission_classes = ()
    throttle_scope = "public"

    @documented(answers={200: TimeOutput}, tag="catalogue")
    def get(self, request: Request) -> Response:
        """Tell the time; the server alone decides when a sale is open."""
        now = timezone.now()
        return private({"server_time": now.isoformat(), "server_time_ms": int(now.timestamp() * 1000)})
