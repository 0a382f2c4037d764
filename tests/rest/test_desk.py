"""The base of the desk's pages: their policy for scripts, and that no page is built on anything else."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client

from rest.desk import DeskAdmin, DeskInline

STRICT = {
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "manifest-src 'self'",
    "worker-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
}
LOOSENED = STRICT - {"script-src 'self'", "style-src 'self'"} | {
    "script-src 'self' 'unsafe-eval'",
    "style-src 'self' 'unsafe-inline'",
}


@pytest.fixture
def operator() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    return client


def policy(client: Client, path: str) -> set[str]:
    return set(client.get(path)["Content-Security-Policy"].split("; "))


@pytest.mark.parametrize("path", ["/", "/accounts/login/", "/orders/", "/nowhere/", "/api/v1/sales/"])
def test_the_desk_s_policy_is_nobody_else_s(path: str) -> None:
    assert policy(Client(), path) == STRICT


@pytest.mark.parametrize("path", ["/admin/", "/admin/seckill/flashsale/", "/admin/monitor/", "/admin/password_change/"])
def test_the_desk_s_pages_may_run_what_unfold_compiles_and_no_inline_script(operator: Client, path: str) -> None:
    assert policy(operator, path) == LOOSENED


def test_the_desk_s_log_in_looks_like_the_desk() -> None:
    assert policy(Client(), "/admin/login/") == LOOSENED


def test_every_page_and_inline_is_built_on_the_desk_s_bases() -> None:
    pages = admin.site._registry.values()
    assert [page for page in pages if not isinstance(page, DeskAdmin)] == []
    inlines = [inline for page in pages for inline in page.inlines]
    assert inlines
    assert [inline for inline in inlines if not issubclass(inline, DeskInline)] == []


def test_nothing_comes_from_elsewhere(operator: Client) -> None:
    html = operator.get("/admin/seckill/flashsale/").content.decode()
    assert 'src="http' not in html
    assert 'rel="stylesheet" href="http' not in html
    assert "<script>" not in html
