"""Answers for one caller and for everybody, as caches see them."""

import json
from datetime import UTC, datetime
from typing import Any

from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory

from rest.answers import private, public

AT = datetime(2026, 6, 18, 12, 0, tzinfo=UTC)
LATER = datetime(2026, 6, 18, 12, 5, tzinfo=UTC)


def asked(etag: str = "", *, body: dict[str, Any], at: datetime = AT) -> HttpResponseBase:
    headers = {"If-None-Match": etag} if etag else {}
    request = Request(APIRequestFactory().get("/", headers=headers))
    return public(request=request, body=body, max_age_seconds=2, server_time=at)


def test_no_cache_keeps_a_private_answer() -> None:
    response = private({"order_no": "1"}, retry_after_seconds=3)
    assert (response["Cache-Control"], response["Retry-After"]) == ("no-store", "3")
    assert not response.has_header("ETag")
    assert not private({}).has_header("Retry-After")


def test_a_public_answer_may_be_kept_and_asked_for_again() -> None:
    first = asked(body={"units": 1})
    assert isinstance(first, Response)
    assert first.data == {"server_time": "2026-06-18T12:00:00+00:00", "units": 1}
    assert first["Cache-Control"] == "public, max-age=2"
    same = asked(first["ETag"], body={"units": 1}, at=LATER)
    assert (same.status_code, same["ETag"], same["Cache-Control"]) == (304, first["ETag"], "public, max-age=2")
    assert asked(f'"other", W/{first["ETag"]}', body={"units": 1}).status_code == 304


def test_a_changed_answer_is_sent() -> None:
    first = asked(body={"units": 1})
    second = asked(first["ETag"], body={"units": 0}, at=LATER)
    assert isinstance(second, Response)
    assert (second.status_code, json.loads(json.dumps(second.data))["units"]) == (200, 0)
    assert second["ETag"] != first["ETag"]
