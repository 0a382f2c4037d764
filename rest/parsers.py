"""The one body parser of the API."""

import json
from http import HTTPStatus
from typing import IO, Any

from rest_framework import exceptions
from rest_framework.parsers import BaseParser

BODY_BYTES_MAX = 4_096


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
        return parse_body(stream.read(BODY_BYTES_MAX + 1))


def parse_body(raw: bytes) -> dict[str, Any]:
    """Return the object a body holds. Raises ``ParseError`` (400) or ``BodyTooLarge`` (413)."""
    if len(raw) > BODY_BYTES_MAX:
        raise BodyTooLarge
    try:
        body = _decoder.decode(raw.decode())
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


_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
