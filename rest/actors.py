"""Who acts in a request, for the action log."""

from typing import Any

from django.http import HttpRequest
from structlog.contextvars import get_contextvars

from actions.log import Who
from actions.models import Channel
from rest.addresses import client_address


def who_of(request: HttpRequest, channel: Channel = Channel.DESK, *, user: Any = None) -> Who:
    """Tell whose account asks (DRF knows it by tokens too), from where, and how the logs know the request."""
    account = user or request.user
    return Who(
        account_id=account.pk,
        name=account.get_username(),
        channel=channel,
        request_id=str(get_contextvars().get("request_id", "")),
        address=str(client_address(request)),
    )
