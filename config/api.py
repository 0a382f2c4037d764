"""What all API views share: a strict JSON parser and RFC 9457 problems for every error."""

import json
import logging
from http import HTTPStatus
from typing import IO, Any

from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, InterfaceError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.parsers import BaseParser
from rest_framework.response import Response
from rest_framework.views import set_rollback

from config.errors import ANSWERS, Answer
from seckill.transient import is_transient

logger = logging.getLogger(__name__)

BODY_BYTES_MAX = 4_096

_OUTAGE = Answer(
    status=HTTPStatus.SERVICE_UNAVAILABLE,
    code="unavailable",
    title="The shop is catching its breath. Please repeat in a moment.",
    retry_after_seconds=2,
)

# DRF's own errors by status: the stable code and the title of each.
_OF_STATUS = {
    HTTPStatus.BAD_REQUEST: "bad_request",
    HTTPStatus.UNAUTHORIZED: "not_authenticated",
    HTTPStatus.FORBIDDEN: "forbidden",
    HTTPStatus.NOT_FOUND: "not_found",
    HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed",
    HTTPStatus.NOT_ACCEPTABLE: "not_acceptable",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "too_large",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "unsupported_media_type",
    HTTPStatus.TOO_MANY_REQUESTS: "throttled",
}


class BodyTooLarge(exceptions.APIException):
    """Raised for bodies that no call of this API needs."""

    status_code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    default_detail = f"The body is longer than {BODY_BYTES_MAX} bytes."
    default_code = "too_large"


class StrictJsonParser(BaseParser):
    """JSON with one meaning: one object, no name twice, no NaN, UTF-8, at most 4 KB."""

    media_type = "application/json"

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        """Return the object. Raises ``ParseError`` (400) or ``BodyTooLarge`` (413)."""
        raw = stream.read(BODY_BYTES_MAX + 1)
        if len(raw) > BODY_BYTES_MAX:
            raise BodyTooLarge
        try:
            body = json.loads(raw.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise exceptions.ParseError("The body is not JSON of the form this call takes.") from error
        if not isinstance(body, dict):
            raise exceptions.ParseError("The body must be one JSON object.")
        return body


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) != len(pairs):
        raise ValueError("a name stands twice")
    return names


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler: whatever is foreseen becomes a problem, the rest is raised and logged."""
    del context
    if isinstance(error, InterfaceError) or (isinstance(error, DatabaseError) and is_transient(error)):
        logger.warning("answered 503: %s", error)
        set_rollback()
        return problem(_OUTAGE, {})
    for kind in type(error).__mro__:
        if (answer := ANSWERS.get(kind)) is not None:
            set_rollback()
            return problem(answer, answer.extras(error))
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied()
    if not isinstance(error, exceptions.APIException):
        return None
    set_rollback()
    return _of_drf(error)


def problem(answer: Answer, extras: dict[str, Any]) -> Response:
    """Make the problem+json answer; never cacheable, with Retry-After where waiting helps."""
    body = {
        "type": f"/problems/{answer.code}",
        "title": str(answer.title),
        "status": answer.status,
        "code": answer.code,
    }
    response = Response(body | extras, status=answer.status, content_type="application/problem+json")
    response["Cache-Control"] = "no-store"
    if answer.retry_after_seconds is not None:
        response["Retry-After"] = str(answer.retry_after_seconds)
    return response


def _of_drf(error: exceptions.APIException) -> Response:
    status = HTTPStatus(error.status_code)
    wait = getattr(error, "wait", None)
    if status is HTTPStatus.TOO_MANY_REQUESTS and wait is None:
        wait = 1
    answer = Answer(
        status=status,
        code=_OF_STATUS.get(status, "error"),
        title=status.phrase,
        retry_after_seconds=None if wait is None else max(1, round(wait)),
    )
    response = problem(answer, {"detail": error.detail})
    if header := getattr(error, "auth_header", None):
        response["WWW-Authenticate"] = header
    return response
