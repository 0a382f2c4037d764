"""The fast lane: the two calls of a rush, answered in front of Django's handler.

It takes what is plainly in order: a purchase, and a poll by ticket, in the form the API's own clients send.
Whatever else comes, down to an odd header, goes on to Django, whose views call the same functions: there is one
rule, and one answer. ``FAST_LANE=0`` leaves Django alone.
"""

import io
import json
import logging
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections
from django.urls import reverse
from django.utils import translation
from rest_framework.exceptions import APIException
from structlog.contextvars import bind_contextvars, unbind_contextvars

from config.api import Told, told
from config.frames import Frames
from config.middleware import REQUEST_ID_FORM
from config.problems import CONTENT_TYPE, problem_body, problem_headers
from config.request_lines import POLL, PURCHASE, tell, tell_accepted
from rest.parsers import BODY_BYTES_MAX, parse_body
from rest.throttles import throttle_in_process
from seckill import api
from seckill.conf import LIMITS
from seckill.polling import purchase_status
from seckill.purchase import Accepted, purchase
from seckill.tickets import TICKET_LENGTH_MAX

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

logger = logging.getLogger(__name__)

JSON = "application/json"
# What clients say of the JSON they send and want; other spellings of the same are Django's to understand.
SENT = frozenset({JSON, f"{JSON}; charset=utf-8", f"{JSON};charset=utf-8", f"{JSON};charset=UTF-8"})
WANTED = frozenset({None, "*/*", JSON, f"{JSON}, */*", f"{JSON}, text/plain, */*"})
LENGTH = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)
ORDER_NO = re.compile(r"([0-9a-z-]{1,64})/", re.ASCII)
REASONS = {int(status): f"{status.value} {status.phrase}" for status in HTTPStatus}

CONNECTIONS_SECONDS = 1.0
# No order number has this in it.
NUMBER = "{number}"
_SAID = (("Content-Type", JSON), ("Cache-Control", "no-store"))

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What is told besides the frame."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...]
    order_no: str = ""


class FastLane:
    """A WSGI application in front of Django's."""

    def __init__(self, django: "WSGIApplication") -> None:
        self._django = django
        self._purchases = reverse("purchase")
        self._frames = {"POST": Frames(api.PurchasesView), "GET": Frames(api.PurchaseStatusView)}

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer what the lane is for; give on the rest, unread or with its body put back."""
        call = self._call_of(environ)
        frame = None if call is None else self._frames[environ["REQUEST_METHOD"]].around(environ)
        if call is None or frame is None:
            return self._django(environ, start_response)
        request_id = _request_id(environ)
        began = time.perf_counter()
        answer = _answer(call=call, language=frame.language, request_id=request_id)
        if answer is None:
            return self._django(environ, start_response)
        self._tell(environ, answer=answer, request_id=request_id, seconds=time.perf_counter() - began)
        own = (("Content-Length", str(len(answer.body))), ("X-Request-Id", request_id))
        start_response(REASONS[answer.status], [*frame.headers, *answer.headers, *own])
        return (answer.body,)

    def _tell(self, environ: "WSGIEnvironment", *, answer: Answer, request_id: str, seconds: float) -> None:
        """Count it as Django's answers are, and log what was accepted."""
        if answer.order_no:
            tell_accepted(request_id=request_id, order_no=answer.order_no, seconds=seconds)
            return
        method = environ["REQUEST_METHOD"]
        route = PURCHASE if method == "POST" else POLL
        tell(route=route, method=method, status=answer.status, seconds=seconds, facts={"request_id": request_id})

    def _call_of(self, environ: "WSGIEnvironment") -> Callable[[], Answer] | None:
        """Return what is asked for; None where Django had better look at it."""
        path: str = environ["PATH_INFO"]
        if not path.startswith(self._purchases) or environ.get("QUERY_STRING"):
            return None
        if environ.get("HTTP_ACCEPT") not in WANTED or "HTTP_ORIGIN" in environ:
            return None
        match environ["REQUEST_METHOD"]:
            case "POST" if path == self._purchases:
                return _purchase_of(environ)
            case "GET":
                return _poll_of(environ, path.removeprefix(self._purchases))
        return None


def _purchase_of(environ: "WSGIEnvironment") -> Callable[[], Answer] | None:
    """Take a body in which each field is plainly right; Django says what is wrong with any other."""
    body = _body_of(environ)
    ticket, quantity, attempt = body.get("ticket"), body.get("quantity"), body.get("attempt", 2)
    if type(ticket) is not str or type(quantity) is not int or type(attempt) is not int:
        return None
    if not 0 < len(ticket) <= TICKET_LENGTH_MAX or not ticket.isascii() or not ticket.isprintable():
        return None
    if not 0 < quantity <= LIMITS.quantity_max or not 0 < attempt <= api.ATTEMPT_MAX:
        return None
    return partial(_purchase, ticket=ticket, quantity=quantity, is_first=attempt == 1)


def _body_of(environ: "WSGIEnvironment") -> dict[str, Any]:
    """Read a body of JSON, and put it back; nothing where it is of another kind, or longer than any call."""
    length: str = environ.get("CONTENT_LENGTH", "")
    if environ.get("CONTENT_TYPE") not in SENT or LENGTH.fullmatch(length) is None or int(length) > BODY_BYTES_MAX:
        return {}
    raw = environ["wsgi.input"].read(int(length))
    environ["wsgi.input"] = io.BytesIO(raw)
    try:
        return parse_body(raw)
    except APIException:
        return {}


def _poll_of(environ: "WSGIEnvironment", rest: str) -> Callable[[], Answer] | None:
    header: str = environ.get("HTTP_AUTHORIZATION", "")
    match = ORDER_NO.fullmatch(rest)
    if match is None or not header.startswith(api.TICKET_SCHEME) or not header.isascii():
        return None
    return partial(_poll, order_no=match[1], header=header)


def _purchase(*, ticket: str, quantity: int, is_first: bool) -> Answer:
    """As ``PurchasesView.post``."""
    throttle_in_process(scope="purchase", key=ticket)
    accepted = purchase(ticket=ticket, quantity=quantity, is_first=is_first)
    body = _accepted_text().replace(NUMBER, accepted.order_no)
    return Answer(status=202, body=body.encode(), headers=_SAID, order_no=accepted.order_no)


def _poll(*, order_no: str, header: str) -> Answer:
    """As ``PurchaseStatusView.get``."""
    throttle_in_process(scope="poll", key=header)
    buyer_id = api.ticket_holder(ticket=header.removeprefix(api.TICKET_SCHEME), order_no=order_no)
    status = purchase_status(order_no=order_no, buyer_id=buyer_id)
    wait = api.status_wait(status)
    return _json(HTTPStatus.OK, api.status_body(status), *(() if wait is None else (("Retry-After", str(wait)),)))


def _answer(*, call: Callable[[], Answer], language: str, request_id: str) -> Answer | None:
    """Make the call; None when it met what nobody foresaw: Django repeats it, which a ticket bears, and says so."""
    _look_after_connections()
    bind_contextvars(request_id=request_id)
    try:
        return call()
    except (DatabaseError, InterfaceError):
        # A connection may have been lost since it was looked after; Django looks again, and says so if MySQL is away.
        return None
    except Exception as error:  # the one table has the answer to everything foreseen
        found = told(error)
        if found is None:
            logger.exception("the fast lane gives on to Django")
            return None
        return _problem(found, language)
    finally:
        unbind_contextvars("request_id")


class _Seen(threading.local):
    """When this thread's database connections were looked after."""

    connections_at: float = 0.0


_seen = _Seen()


def _look_after_connections() -> None:
    """Close those that are broken or too old, as Django does around each request; here each second.

    A purchase needs no SQL, and looking would cost as much as the signature.
    """
    now = time.monotonic()
    if now - _seen.connections_at >= CONNECTIONS_SECONDS:
        _seen.connections_at = now
        close_old_connections()


def _problem(found: Told, language: str) -> Answer:
    with translation.override(language):
        body = problem_body(found.answer, found.extras)
        headers = {"Content-Type": CONTENT_TYPE, **problem_headers(found.answer), **found.headers}
        return Answer(status=int(found.answer.status), body=_encode(body).encode(), headers=tuple(headers.items()))


def _json(status: HTTPStatus, body: dict[str, Any], *headers: tuple[str, str]) -> Answer:
    return Answer(status=int(status), body=_encode(body).encode(), headers=(*_SAID, *headers))


@cache
def _accepted_text() -> str:
    """Write what an accepted purchase is told, once, with a mark where the order number stands."""
    return _encode(api.accepted_body(Accepted(order_no=NUMBER)))


def _request_id(environ: "WSGIEnvironment") -> str:
    given: str = environ.get("HTTP_X_REQUEST_ID", "")
    return given if REQUEST_ID_FORM.fullmatch(given) else secrets.token_hex(16)


def with_fast_lane(django: "WSGIApplication") -> "WSGIApplication":
    """Return the application with the lane in front of it where the settings want one."""
    return FastLane(django) if settings.FAST_LANE else django
