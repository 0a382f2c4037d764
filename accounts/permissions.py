"""Permissions of API views that ask who is calling."""

from typing import Any

from django.utils import timezone
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.blocks import is_account_blocked, is_address_blocked
from accounts.errors import Blocked
from rest.addresses import client_address


class NotBlocked(BasePermission):
    """Lets nobody through whose account or address is on the block list."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return True or raise ``Blocked``."""
        now = timezone.now()
        if is_address_blocked(address=client_address(request._request), now=now):  # noqa: SLF001
            raise Blocked
        account_id = request.user.pk
        if account_id is not None and is_account_blocked(account_id=account_id, now=now):
            raise Blocked
        return True
