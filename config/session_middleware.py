"""Sessions that cannot be read or written at the moment: an outage, and no reason to take anybody for a stranger."""

from http import HTTPStatus

from django.contrib.sessions import middleware
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from config.problems import OUTAGE
from config.session_store import SessionsUnavailable


class SessionMiddleware(middleware.SessionMiddleware):
    """Django's own, but that whoever cannot be recognised is told to come again, and keeps his cookie.

    Below ``/api/`` the views say so themselves, and ``api_answers`` makes a problem of whatever comes from here.
    """

    def process_exception(self, _request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Answer for a page that had to know who is asking."""
        return _come_again() if isinstance(exception, SessionsUnavailable) else None

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """Write the session; where that fails, what the page has done with it is not so."""
        try:
            return super().process_response(request, response)
        except SessionsUnavailable:
            return _come_again()


def _come_again() -> HttpResponse:
    headers = {"Retry-After": str(OUTAGE.retry_after_seconds), "Cache-Control": "no-store"}
    return HttpResponse(render_to_string("503.html"), status=HTTPStatus.SERVICE_UNAVAILABLE, headers=headers)
