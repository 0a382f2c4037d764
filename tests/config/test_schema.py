"""The OpenAPI schema: committed, true, and followed by the running application."""

import itertools
import json
import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import schemathesis
import yaml
from django.contrib.auth.models import User
from django.contrib.staticfiles.finders import find
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, Phase, given, settings
from pytest_django import Settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from config.errors import ANSWERS
from config.problems import FOREIGN
from seckill.api import PurchasesView
from seckill.errors import BucketUnsound, PurchaseRefused
from tests.support.shop import Shop, make_tickets, open_sale

ROOT = Path(__file__).resolve().parent.parent.parent
COMMITTED = ROOT / "docs" / "openapi.yaml"
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)
EXAMPLES_PER_CALL = 10
# What no call says: a bug alone can be the one, the other has no call.
UNSAID = {"internal", "method_not_allowed"}


def committed() -> dict[str, Any]:
    schema: dict[str, Any] = yaml.safe_load(COMMITTED.read_text())
    return schema


def calls(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in schema["paths"].items():
        for method, call in methods.items():
            yield path, method, call


def test_the_committed_schema_is_that_of_the_code(tmp_path: Path) -> None:
    """``make schema`` writes it anew."""
    fresh = tmp_path / "openapi.yaml"
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(fresh))
    assert fresh.read_text() == COMMITTED.read_text()


def test_every_code_has_a_call_that_says_it() -> None:
    told = set()
    for _, _, call in calls(committed()):
        for response in call["responses"].values():
            schema = response.get("content", {}).get("application/problem+json", {}).get("schema", {})
            for part in schema.get("allOf", []):
                told.update(part.get("properties", {}).get("code", {}).get("enum", []))
    of_buyers = {answer.code for kind, answer in ANSWERS.items() if issubclass(kind, PurchaseRefused)}
    foreign = {answer.code for answer in FOREIGN.values()}
    assert (of_buyers | foreign) - told == UNSAID
    assert told <= foreign | {answer.code for answer in ANSWERS.values()}


def test_the_purchase_says_every_refusal() -> None:
    refusals = {kind for kind in ANSWERS if issubclass(kind, PurchaseRefused)}
    raised = set(PurchasesView.post.raises)  # type: ignore[attr-defined]
    assert refusals - raised == {BucketUnsound} & refusals


def test_every_call_is_described() -> None:
    names = [call["operationId"] for _, _, call in calls(committed())]
    assert len(set(names)) == len(names)
    for path, method, call in calls(committed()):
        assert len(call["description"]) > 10, (path, method)
        assert call["tags"], (path, method)
        assert method in {"get", "post"}, path
        assert "406" in call["responses"], (path, method)


@pytest.mark.parametrize("name", ["swagger-ui", "redoc"])
def test_the_readers_alone_may_style_inline(name: str) -> None:
    policy = Client().get(reverse(name))["Content-Security-Policy"].split("; ")
    assert {"style-src 'self' 'unsafe-inline'", "script-src 'self'"} <= set(policy)
    assert "unsafe" not in Client().get("/accounts/login/")["Content-Security-Policy"]


def test_the_schema_and_its_readers_come_from_here() -> None:
    """No CDN: whoever reads the documents tells nobody else of it."""
    client = Client()
    assert yaml.safe_load(client.get("/api/v1/schema/").content)["paths"].keys() == committed()["paths"].keys()
    for page in ("docs", "redoc"):
        response = client.get(f"/api/v1/{page}/")
        assert response.status_code == 200
        html = response.content.decode()
        sources = re.findall(r"""(?:src|href)=["']([^"']+)["']""", html)
        assert sources, page
        for source in sources:
            assert source.startswith("/"), (page, source)
            if source.startswith("/static/"):
                assert find(source.removeprefix("/static/")), (page, source)
            elif source.endswith(".js"):
                script = client.get(source)
                assert (script.status_code, script["Content-Type"]) == (200, "text/javascript"), source
                # Names of specifications and of what is linked to; nothing that would be fetched.
                hosts = set(
                    re.findall(r"""["'`]https?://([^/"'`]*(?:cdn|fonts|static)[^/"'`]*)""", script.content.decode())
                )
                assert hosts == set(), source


def a_client_of(user: User) -> dict[str, str]:
    """The headers of a browser in which somebody is logged in."""
    client = Client()
    client.force_login(user)
    session = client.cookies["sessionid"].value
    return {"Cookie": f"sessionid={session}; csrftoken={'t' * 32}", "X-CSRFToken": "t" * 32}


@pytest.mark.slow
def test_the_application_does_what_the_schema_says(settings_of_the_test: Settings) -> None:
    """Random calls, good and bad, to the real WSGI application: no 5xx, nothing undocumented."""
    shop = open_sale(units=1_000, limit=1_000)
    operator = a_client_of(User.objects.create_superuser("tester"))
    tickets = itertools.cycle(make_tickets(shop, 3))
    schema = schemathesis.openapi.from_wsgi("/api/v1/schema/", application())
    seen: dict[int, int] = {}

    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()

        @given(case=operation.as_strategy())
        @settings(
            max_examples=EXAMPLES_PER_CALL,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def call(case: Any) -> None:
            aim(case, shop, next(tickets))
            response = case.call(headers={**operator, **(case.headers or {})})
            case.validate_response(response, checks=CHECKS)
            seen[response.status_code] = seen.get(response.status_code, 0) + 1

        call()
    assert {200, 202, 400, 404} <= seen.keys(), seen


def aim(case: Any, shop: Shop, ticket: str) -> None:
    """Let every other call mean something that is there."""
    case_number = next(_numbers)
    ids = {"item_id": shop.item.pk, "sale_id": shop.sale.pk, "pool_id": shop.pool.pk}
    for name in set(ids) & set(case.path_parameters or {}):
        if case_number % 2:
            case.path_parameters[name] = ids[name]
    if isinstance(case.body, dict) and "ticket" in case.body and case_number % 2:
        case.body = {**case.body, "ticket": ticket}


_numbers = itertools.count()


@pytest.fixture
def settings_of_the_test(settings: Settings) -> Settings:
    """Let the application answer to any host, as the caller has none of its own."""
    settings.ALLOWED_HOSTS = ["*"]
    return settings


def application() -> Any:
    """The application as the web server loads it."""
    from config.wsgi import application as served

    return served


def test_a_problem_s_extras_are_documented() -> None:
    properties = committed()["components"]["schemas"]["Problem"]["properties"]
    assert {"type", "title", "status", "code", "detail", "errors", "units_left", "orders"} <= properties.keys()
    assert json.dumps(properties).count("$ref") <= 1
    assert HTTPStatus.IM_A_TEAPOT not in FOREIGN
