"""The two kinds of answers: about one caller, and the same for everybody. Caches are told which."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder


def private(
    body: Mapping[str, Any], *, status: HTTPStatus = HTTPStatus.OK, retry_after_seconds: int | None = None
) -> Response:
    """Answer one caller: no cache keeps it. ``retry_after_seconds`` where asking again helps."""
    response = Response(body, status=status, headers={"Cache-Control": "no-store"})
    if retry_after_seconds is not None:
        response["Retry-After"] = str(retry_after_seconds)
    return response


def public(
    *, request: Request, body: Mapping[str, Any], max_age_seconds: int, server_time: datetime | None = None
) -> HttpResponseBase:
    """Answer everybody alike: kept for ``max_age_seconds``, then asked for again by its ETag (304 while the same).

    ``server_time`` goes into the body and not into the ETag: it alone makes no other answer. A 304 leaves the
    old one in place, so clocks are set by ``GET /time/``, which nobody keeps.
    """
    text = json.dumps(body, cls=JSONEncoder, sort_keys=True)
    told = dict(body) if server_time is None else {"server_time": server_time.isoformat(), **body}
    response = Response(told)
    response["Cache-Control"] = f"public, max-age={max_age_seconds}"
    response["ETag"] = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    same = get_conditional_response(request._request, etag=response["ETag"], response=response)  # noqa: SLF001
    return response if same is None else same
