"""The fast lane: the two calls of a rush, answered on the event loop, in front of Django and its threads.

It takes what is plainly in order: a purchase, and a poll by ticket, in the form the API's own clients send.
Whatever else comes, down to an odd header, goes on to Django, whose views call the same functions: there is one
rule, and one answer. ``FAST_LANE=0`` leaves Django alone.
"""

import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from http import HTTPStatus
from random import getrandbits
from typing import TYPE_CHECKING, Any, NamedTuple

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.urls import reverse
from django.utils import translation
from rest_framework.exceptions import APIException
from structlog.contextvars import bind_contextvars

from config.api import Told, told
from config.errors import Answer as ErrorAnswer
from config.frames import Frames, Headers, as_sent
from config.middleware import REQUEST_ID_FORM
from config.problems import CONTENT_TYPE, problem_body, problem_headers
from config.request_lines import ACCEPTED, POLL, PURCHASE, tell, tell_accepted
from rest.parsers import BODY_BYTES_MAX, parse_body
from rest.throttles import throttle_in_process
from seckill import api
from seckill.conf import LIMITS
from seckill.polling import apurchase_status
from seckill.purchase import Accepted, apurchase
from seckill.tickets import TICKET_LENGTH_MAX

if TYPE_CHECKING:
    from a2wsgi.asgi_typing import ASGIApp, Receive, Scope, Send

logger = logging.getLogger(__name__)

JSON = "application/json"
# What clients say of the JSON they send and want; other spellings of the same are Django's to understand.
SENT = frozenset(
    text.encode() for text in (JSON, f"{JSON}; charset=utf-8", f"{JSON};charset=utf-8", f"{JSON};charset=UTF-8")
)
WANTED = frozenset({None, b"*/*", *(text.encode() for text in (JSON, f"{JSON}, */*", f"{JSON}, text/plain, */*"))})
LENGTH = re.compile(rb"[1-9][0-9]{0,3}")
# The body as the shop's page and most libraries write it; how else it may be written is the parser's to say.
BODY = re.compile(
    rb'\{"ticket":"([!#-\[\]-~]{1,%d})","quantity":([1-9][0-9]{0,3}),"attempt":([1-9][0-9]{0,5})\}' % TICKET_LENGTH_MAX
)
ORDER_NO = re.compile(r"([0-9a-z-]{1,64})/", re.ASCII)

# No order number has this in it.
NUMBER = "{number}"
_SAID = ((b"content-type", JSON.encode()), (b"cache-control", b"no-store"))

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class Answer(NamedTuple):
    """What is told besides the frame."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    order_no: str = ""


Call = Callable[[], Awaitable[Answer]]


class FastLane:
    """An ASGI application in front of Django's."""

    def __init__(self, django: "ASGIApp") -> None:
        self._django = django
        self._purchases = reverse("purchase")
        self._frames = {"POST": Frames(api.PurchasesView), "GET": Frames(api.PurchaseStatusView)}

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer what the lane is for; give on the rest, unread or with its body put back."""
        if scope["type"] != "http" or not scope["path"].startswith(self._purchases) or scope["query_string"]:
            return await self._django(scope, receive, send)
        headers = dict(scope["headers"])
        # Two headers of one name are not plainly in order.
        if len(headers) != len(list(scope["headers"])) or headers.get(b"accept") not in WANTED or b"origin" in headers:
            return await self._django(scope, receive, send)
        call: Call | None = None
        if scope["method"] == "GET":
            call = _poll_of(scope["path"].removeprefix(self._purchases), headers)
        elif scope["method"] == "POST" and scope["path"] == self._purchases and _has_body(headers):
            raw = await _read(receive)
            receive = _put_back(raw, receive)
            call = _purchase_of(raw)
        frame = None if call is None else self._frames[scope["method"]].around(scope, headers)
        if call is None or frame is None:
            return await self._django(scope, receive, send)
        request_id = _request_id(headers)
        began = time.perf_counter()
        answer = await _answer(call=call, language=frame.language, request_id=request_id)
        if answer is None:
            return await self._django(scope, receive, send)
        _tell(scope["method"], answer=answer, request_id=request_id, seconds=time.perf_counter() - began)
        own = ((b"content-length", b"%d" % len(answer.body)), (b"x-request-id", request_id.encode()))
        all_headers = [*frame.headers, *answer.headers, *own]
        await send({"type": "http.response.start", "status": answer.status, "headers": all_headers})
        await send({"type": "http.response.body", "body": answer.body})
        return None


def _tell(method: str, *, answer: Answer, request_id: str, seconds: float) -> None:
    """Count it as Django's answers are, and log what was accepted."""
    if answer.status == ACCEPTED:
        return tell_accepted(request_id=request_id, order_no=answer.order_no, seconds=seconds)
    route = PURCHASE if method == "POST" else POLL
    facts = {"request_id": request_id, "order_no": answer.order_no}
    return tell(route=route, method=method, status=answer.status, seconds=seconds, facts=facts)


def _has_body(headers: Headers) -> bool:
    """Tell whether a body of JSON comes that is no longer than any call."""
    length = headers.get(b"content-length", b"")
    return headers.get(b"content-type") in SENT and bool(LENGTH.fullmatch(length)) and int(length) <= BODY_BYTES_MAX


async def _read(receive: "Receive") -> bytes:
    """Read the whole body; the server sees to it that there is no more of it than was announced."""
    raw, is_more = b"", True
    while is_more:
        message: Mapping[str, Any] = await receive()
        raw += message.get("body", b"")
        is_more = message.get("more_body", False)
    return raw


def _put_back(raw: bytes, receive: "Receive") -> "Receive":
    """Return what gives the body once more, and then whatever else comes."""
    unread: list[bytes] = [raw]

    async def again() -> Any:
        return {"type": "http.request", "body": unread.pop(), "more_body": False} if unread else await receive()

    return again


def _purchase_of(raw: bytes) -> Call | None:
    """Take a body in which each field is plainly right; Django says what is wrong with any other."""
    if (plain := BODY.fullmatch(raw)) and int(plain[2]) <= LIMITS.quantity_max:
        return partial(_purchase, ticket=plain[1].decode(), quantity=int(plain[2]), is_first=plain[3] == b"1")
    try:
        body = parse_body(raw)
    except APIException:
        return None
    ticket, quantity, attempt = body.get("ticket"), body.get("quantity"), body.get("attempt", 2)
    if type(ticket) is not str or type(quantity) is not int or type(attempt) is not int:
        return None
    if not 0 < len(ticket) <= TICKET_LENGTH_MAX or not ticket.isascii() or not ticket.isprintable():
        return None
    if not 0 < quantity <= LIMITS.quantity_max or not 0 < attempt <= api.ATTEMPT_MAX:
        return None
    return partial(_purchase, ticket=ticket, quantity=quantity, is_first=attempt == 1)


def _poll_of(rest: str, headers: Headers) -> Call | None:
    header, match = headers.get(b"authorization", b""), ORDER_NO.fullmatch(rest)
    if match is None or not header.startswith(api.TICKET_SCHEME.encode()) or not header.isascii():
        return None
    return partial(_poll, order_no=match[1], header=header.decode())


async def _purchase(*, ticket: str, quantity: int, is_first: bool) -> Answer:
    """As ``PurchasesView.post``."""
    throttle_in_process(scope="purchase", key=ticket)
    accepted = await apurchase(ticket=ticket, quantity=quantity, is_first=is_first)
    body = _accepted_text().replace(NUMBER, accepted.order_no)
    return Answer(status=ACCEPTED, body=body.encode(), headers=_SAID, order_no=accepted.order_no)


async def _poll(*, order_no: str, header: str) -> Answer:
    """As ``PurchaseStatusView.get``."""
    throttle_in_process(scope="poll", key=header)
    buyer_id = api.ticket_holder(ticket=header.removeprefix(api.TICKET_SCHEME), order_no=order_no)
    status = await apurchase_status(order_no=order_no, buyer_id=buyer_id)
    wait = api.status_wait(status)
    headers = _SAID if wait is None else (*_SAID, (b"retry-after", b"%d" % wait))
    return Answer(status=HTTPStatus.OK, body=_encode(api.status_body(status)).encode(), headers=headers)


async def _answer(*, call: Call, language: str, request_id: str) -> Answer | None:
    """Make the call; None when it met what nobody foresaw: Django repeats it, which a ticket bears, and says so."""
    # Each request is a task with a context of its own, which ends with it.
    bind_contextvars(request_id=request_id)
    try:
        return await call()
    except (DatabaseError, InterfaceError):
        # A connection may have been lost since it was looked after; Django looks again, and says so if MySQL is away.
        return None
    except Exception as error:  # the one table has the answer to everything foreseen
        found = told(error)
        if found is None:
            logger.exception("the fast lane gives on to Django")
            return None
        return _problem(found, language)


class _Alike(NamedTuple):
    """What all problems of one answer say in one language: the body but for its last brace, and the headers."""

    answer: ErrorAnswer
    body: str
    headers: tuple[tuple[bytes, bytes], ...]


_alike: dict[tuple[str, str], _Alike] = {}


def _problem(found: Told, language: str) -> Answer:
    """Make the answer of an error; to translate and write its like each time would cost more than to refuse."""
    answer = found.answer
    alike = _alike.get((answer.code, language))
    if alike is None or alike.answer is not answer:
        alike = _alike[answer.code, language] = _make_alike(answer, language)
    rest = f",{_encode(found.extras)[1:]}" if found.extras else "}"
    headers = (*alike.headers, *map(as_sent, found.headers.items()))
    return Answer(status=int(answer.status), body=f"{alike.body}{rest}".encode(), headers=headers)


def _make_alike(answer: ErrorAnswer, language: str) -> _Alike:
    with translation.override(language):
        body = _encode(problem_body(answer, {}))
    headers = {"Content-Type": CONTENT_TYPE, **problem_headers(answer)}
    return _Alike(answer=answer, body=body[:-1], headers=tuple(map(as_sent, headers.items())))


@cache
def _accepted_text() -> str:
    """Write what an accepted purchase is told, once, with a mark where the order number stands."""
    return _encode(api.accepted_body(Accepted(order_no=NUMBER)))


def _request_id(headers: Headers) -> str:
    given = headers.get(b"x-request-id", b"").decode("latin-1")
    return given if REQUEST_ID_FORM.fullmatch(given) else f"{getrandbits(128):032x}"


def with_fast_lane(django: "ASGIApp") -> "ASGIApp":
    """Return the application with the lane in front of it where the settings want one."""
    return FastLane(django) if settings.FAST_LANE else django
