"""Every error below ``/api/`` is a problem, whoever said it; every answer has an id and tells caches what to do."""

import json
import logging
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.http import Http404, HttpResponse
from django.test import Client
from django.urls import path
from pytest_django import Settings
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from config.problems import foreign_answer
from config.urls import urlpatterns as real_urls
from tests.support.api import PURCHASES, read, refusal
from tests.support.shop import make_buyers


class BrokenView(APIView):
    """A view with a bug."""

    authentication_classes = ()
    permission_classes = ()

    def get(self, request: Request) -> Response:
        """Break."""
        logging.getLogger("broken").warning("about to break")
        raise KeyError("nobody foresaw this")


def gone(_request: Any) -> HttpResponse:
    return HttpResponse("gone", status=410)


def nothing(_request: Any) -> HttpResponse:
    raise Http404


urlpatterns = [
    path("api/broken/", BrokenView.as_view()),
    path("api/gone/", gone),
    path("nothing/", nothing),
    *real_urls,
]


@pytest.mark.parametrize("address", ["/api/", "/api/v1/", "/api/v2/sales/", "/api/v1/nothing/", "/api/v1/%FF/"])
def test_an_address_that_is_not_there(address: str) -> None:
    assert refusal(read(Client().get(address))) == (404, "not_found")


def test_a_host_that_is_not_ours(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["shop.example"]
    answer = read(Client().get("/api/v1/time/", headers={"Host": "evil.example"}))
    assert refusal(answer) == (400, "bad_request")


@pytest.mark.urls(__name__)
def test_a_bug_is_a_500_that_tells_nothing_but_where_to_look() -> None:
    answer = read(Client(raise_request_exception=False).get("/api/broken/"))
    assert refusal(answer) == (500, "internal")
    assert answer.body.keys() == {"type", "title", "status", "code"}
    assert "foresaw" not in json.dumps(answer.body)


@pytest.mark.urls(__name__)
def test_a_status_without_a_code_of_its_own_counts_as_its_class() -> None:
    assert refusal(read(Client().get("/api/gone/"))) == (410, "bad_request")
    assert foreign_answer(502).code == "internal"


@pytest.mark.urls(__name__)
def test_pages_for_people_keep_their_errors() -> None:
    response = Client().get("/nothing/")
    assert (response.status_code, response["Content-Type"]) == (404, "text/html; charset=utf-8")


def test_a_post_without_the_last_slash_is_not_turned_into_a_get() -> None:
    """Django would redirect, and a client would repeat it as GET without its body."""
    assert refusal(read(Client().post(PURCHASES.rstrip("/"), data="{}", content_type="application/json"))) == (
        404,
        "not_found",
    )
    response = Client().get("/api/v1/time")
    assert (response.status_code, response["Location"]) == (301, "/api/v1/time/")
    assert response["Cache-Control"] == "no-store"


def test_a_long_body_is_refused_before_anybody_reads_it() -> None:
    """CASES 38: whatever the call, its method, its type."""
    body = b"x" * 4_097
    for address in (PURCHASES, "/api/v1/items/1/ticket/", "/api/v1/nothing/", "/api/v1/time/"):
        for kind in ("application/json", "text/plain", "multipart/form-data; boundary=x"):
            answer = read(Client().generic("POST", address, body, content_type=kind))
            assert refusal(answer) == (413, "too_large"), (address, kind)
    huge = read(Client().generic("POST", PURCHASES, b"{}", headers={"Content-Length": "9" * 5_000}))
    assert refusal(huge) == (413, "too_large")
    assert refusal(read(Client().generic("POST", PURCHASES, b"x" * 4_096, content_type="text/plain"))) == (
        415,
        "unsupported_media_type",
    )


def test_what_a_call_needs_is_said_by_field() -> None:
    answer = read(Client().post(PURCHASES, data='{"quantity": "1"}', content_type="application/json"))
    assert refusal(answer) == (400, "bad_request")
    assert answer.body["errors"] == {
        "ticket": ["This field is required."],
        "quantity": ["A valid integer is required."],
    }
    answer = read(Client().post(PURCHASES, data="{", content_type="application/json"))
    assert answer.body["detail"] == "The body is not JSON of the form this call takes."


def test_who_is_asking() -> None:
    assert refusal(read(Client().get("/api/v1/me/"))) == (401, "not_authenticated")
    assert Client().get("/api/v1/me/")["WWW-Authenticate"] == 'Bearer realm="api"'
    (buyer,) = make_buyers(1)
    client = Client()
    client.force_login(buyer)
    assert read(client.get("/api/v1/me/")).body == {
        "id": buyer.pk,
        "username": buyer.username,
        "is_operator": False,
    }


def test_titles_are_in_the_language_asked_for_and_codes_are_not() -> None:
    answer = read(Client().get("/api/v1/nothing/", headers={"Accept-Language": "zh-hans"}))
    assert (answer.body["code"], answer.headers["Content-Language"]) == ("not_found", "zh-hans")


def test_a_request_keeps_the_id_it_brings() -> None:
    for given in ("a" * 8, "a" * 64, "0f.A_b-C9", "01890a5d-ac96-774b-bcce-b302099a8057"):
        assert Client().get("/livez", headers={"X-Request-Id": given})["X-Request-Id"] == given


def test_an_id_that_could_harm_the_log_is_replaced() -> None:
    for given in (
        "",
        "a" * 7,
        "a" * 65,
        "-aaaaaaaa",
        "aaaa aaaa",
        "aaaaaaaa\n",
        'aaaaaaaa"',
        "票票票票票票票票",
        "aaaaaaaaé",
    ):
        made = Client().get("/livez", headers={"X-Request-Id": given})["X-Request-Id"]
        assert made != given
        assert len(made) == 32


@pytest.mark.urls(__name__)
def test_the_log_has_the_request_s_id(capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(structured().format(record))

    keep = Keep()
    logging.getLogger("broken").addHandler(keep)
    try:
        Client(raise_request_exception=False).get("/api/broken/", headers={"X-Request-Id": "from-a-client"})
    finally:
        logging.getLogger("broken").removeHandler(keep)
    (line,) = lines
    assert json.loads(line)["request_id"] == "from-a-client"


def structured() -> logging.Formatter:
    """The formatter of the settings."""
    logging_settings: dict[str, Any] = django_settings.LOGGING
    options = dict(logging_settings["formatters"]["structured"])
    formatter: logging.Formatter = options.pop("()")(**options)
    return formatter


def test_other_origins_are_let_in_by_name_only(settings: Settings) -> None:
    asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    assert not Client().get("/api/v1/time/", headers=asked).has_header("Access-Control-Allow-Origin")
    settings.CORS_ALLOWED_ORIGINS = ["https://app.example"]
    told = Client().get("/api/v1/time/", headers=asked)
    assert told["Access-Control-Allow-Origin"] == "https://app.example"
    assert not told.has_header("Access-Control-Allow-Credentials")
    assert Client().options(PURCHASES, headers=asked)["Access-Control-Allow-Methods"] == "GET, HEAD, POST"
    other = {**asked, "Origin": "https://evil.example"}
    assert not Client().get("/api/v1/time/", headers=other).has_header("Access-Control-Allow-Origin")
    assert not Client().get("/livez", headers=asked).has_header("Access-Control-Allow-Origin")


def test_time() -> None:
    answer = read(Client().get("/api/v1/time/"))
    assert answer.status == 200
    assert abs(answer.body["server_time_ms"]) > 1_700_000_000_000


def test_the_settings_are_sound() -> None:
    call_command("check", "--fail-level", "WARNING")
