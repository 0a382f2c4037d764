"""Sessions as a way to say who is asking."""

from rest_framework import authentication
from rest_framework.request import Request


class SessionAuthentication(authentication.SessionAuthentication):
    """DRF's own, which also wants the CSRF token; nobody is told 401 instead of 403."""

    def authenticate_header(self, request: Request) -> str:
        """Name the scheme: with one, DRF says 401 to who is not logged in."""
        return "Session"
