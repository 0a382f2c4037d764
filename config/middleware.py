"""What holds for every request: it has an id, and below ``/api/`` every answer has the API's form.

Machines that watch over the process are answered before anything else: they call it by any name, over plain HTTP.
"""

import re
import uuid
from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponseBase
from django.utils import translation
from structlog.contextvars import bound_contextvars

from config.exposition import PATH as METRICS
from config.exposition import may_read, metrics
from config.health import livez, readyz
from config.problems import CONTENT_TYPE, foreign_answer, plain_problem
from rest.parsers import BODY_BYTES_MAX

GetResponse = Callable[[HttpRequest], HttpResponseBase]

API_PREFIX = "/api/"
REQUEST_ID = "X-Request-Id"
# What a client or a proxy may name its request: nothing that could forge a line of the log or fill it.
REQUEST_ID_FORM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}", re.ASCII)
# Headers of Django's own answer that the problem in its place keeps.
KEPT_HEADERS = ("Allow", "Retry-After", "Vary", "WWW-Authenticate")


def request_ids(get_response: GetResponse) -> GetResponse:
    """Give each request an id, or take the one it brings if it has the form; answer and log carry it."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get(REQUEST_ID, "")
        request_id = given if REQUEST_ID_FORM.fullmatch(given) else uuid.uuid4().hex
        with bound_contextvars(request_id=request_id):
            response = get_response(request)
        response[REQUEST_ID] = request_id
        return response

    return middleware


def for_machines(get_response: GetResponse) -> GetResponse:
    """Answer who balances, restarts and measures, whatever name of the host he uses."""
    probes = {"/livez": livez, "/readyz": readyz}

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if (probe := probes.get(request.path_info)) is not None:
            return probe(request)
        if request.path_info == METRICS and may_read(request):
            return metrics(request)
        return get_response(request)

    return middleware


def api_answers(get_response: GetResponse) -> GetResponse:
    """Below ``/api/``: refuse long bodies unread, make every error a problem, and let no cache guess."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(API_PREFIX):
            return get_response(request)
        if _is_too_long(request):
            return _problem(request, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        response = get_response(request)
        if _loses_the_body(request, response):
            return _problem(request, HTTPStatus.NOT_FOUND)
        if response.status_code >= 400 and response.get("Content-Type") != CONTENT_TYPE:
            response = _in_place_of(response, request)
        if not response.has_header("Cache-Control"):
            response["Cache-Control"] = "no-store"
        return response

    return middleware


def _is_too_long(request: HttpRequest) -> bool:
    length = request.headers.get("Content-Length", "")
    return length.isascii() and length.isdigit() and int(length[:9]) > BODY_BYTES_MAX


def _loses_the_body(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Tell a redirect to the same path with a slash, which would make a POST a GET without its body."""
    is_read = request.method in {"GET", "HEAD", "OPTIONS"}
    return not is_read and response.status_code == 301 and not request.path_info.endswith("/")


def _problem(request: HttpRequest, status: int) -> HttpResponseBase:
    """Make a problem in the request's language, whatever this thread spoke last."""
    language = translation.get_language_from_request(request)
    with translation.override(language):
        response = plain_problem(foreign_answer(status))
    response["Content-Language"] = language
    return response


def _in_place_of(response: HttpResponseBase, request: HttpRequest) -> HttpResponseBase:
    told = _problem(request, response.status_code)
    for name in KEPT_HEADERS:
        if response.has_header(name):
            told[name] = response[name]
    return told
