"""Who may call what operators call."""

from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView


class IsStaff(BasePermission):
    """An account of the staff; what it may do is decided where it is done."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Tell whether the caller belongs to the staff."""
        return bool(request.user.is_authenticated and request.user.is_staff)


class StaffWith(BasePermission):
    """Staff with every permission that the view names in ``needs``."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Tell whether the caller may."""
        needs: tuple[str, ...] = view.needs  # type: ignore[attr-defined]
        return bool(request.user.is_authenticated and request.user.is_staff and request.user.has_perms(needs))
