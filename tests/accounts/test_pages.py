"""The pages of who is asking."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

PASSWORD = "correct horse battery"


@pytest.mark.parametrize(
    "path", ["login/", "register/", "password-reset/", "password-reset/sent/", "password-reset/done/"]
)
def test_every_page_opens_with_nothing_inline(path: str) -> None:
    response = Client().get(f"/accounts/{path}")
    assert response.status_code == 200
    policy = response["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    html = response.content.decode()
    assert "<style" not in html
    assert "style=" not in html
    assert "<script>" not in html


def test_register_and_go_where_one_came_from() -> None:
    client = Client()
    data = {"username": "ann", "password": PASSWORD, "next": "/api/v1/time/"}
    response = client.post("/accounts/register/", data)
    assert (response.status_code, response["Location"]) == (302, "/api/v1/time/")
    assert client.get("/api/v1/me/").json()["username"] == "ann"


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", ""])
def test_nobody_is_sent_to_another_site(elsewhere: str) -> None:
    data = {"username": "ann", "password": PASSWORD, "next": elsewhere}
    assert Client().post("/accounts/register/", data)["Location"] == "/"


def test_what_is_wrong_stands_at_its_field() -> None:
    User.objects.create_user("ann")
    response = Client().post("/accounts/register/", {"username": "ann", "password": "123"})
    assert response.status_code == 200
    assert set(response.context["form"].errors) == {"username", "password"}
    assert User.objects.count() == 1


def test_log_in_out_and_locked_out() -> None:
    User.objects.create_user("ann", password=PASSWORD)
    client = Client()
    assert client.post("/accounts/login/", {"username": "ann", "password": PASSWORD}).status_code == 302
    assert client.get("/accounts/logout/").status_code == 405
    client.post("/accounts/logout/")
    assert client.get("/api/v1/me/").status_code == 401
    for _ in range(10):
        response = client.post("/accounts/login/", {"username": "ann", "password": "wrong"})
    assert response.status_code == 429
    assert "Too many wrong passwords" in response.content.decode()
    assert client.post("/accounts/login/", {"username": "ann", "password": PASSWORD}).status_code == 429
