"""Apps register, log in, renew and log out; nobody guesses passwords, nobody locks a rival out."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings
from rest_framework_simplejwt.token_blacklist.models import OutstandingToken

from accounts.models import ExternalIdentity
from accounts.services import ExternalAccount
from accounts.tasks import forget_tokens, mail_reset
from tests.support.api import Answer, ask_ticket, read, refusal
from tests.support.shop import make_buyers, open_sale
from tests.support.threads import run_together

PASSWORD = "correct horse battery"


def post(path: str, body: Mapping[str, Any], *, address: str = "192.0.2.1") -> Answer:
    data = json.dumps(body)
    return read(Client(REMOTE_ADDR=address).post(f"/api/v1/{path}", data=data, content_type="application/json"))


def log_in(username: str = "ann", password: str = PASSWORD, *, address: str = "192.0.2.1") -> Answer:
    return post("tokens/", {"username": username, "password": password}, address=address)


def me(access: str) -> Answer:
    return read(Client().get("/api/v1/me/", headers={"Authorization": f"Bearer {access}"}))


@pytest.fixture
def ann() -> User:
    return User.objects.create_user("ann", email="ann@example.com", password=PASSWORD)


def test_register_log_in_and_buy_a_ticket() -> None:
    made = post("accounts/", {"username": "ann", "password": PASSWORD})
    assert (made.status, made.body["username"]) == (201, "ann")
    tokens = log_in()
    assert (tokens.status, tokens.body["expires_in"]) == (200, 900)
    assert me(tokens.body["access"]).body["id"] == made.body["id"]
    client = Client(headers={"Authorization": f"Bearer {tokens.body['access']}"}, enforce_csrf_checks=True)
    assert ask_ticket(client, open_sale().item.pk).status == 201


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"username": "bob", "password": "12345678"}, "password"),
        ({"username": "bob", "password": "bob"}, "password"),
        ({"username": "a b", "password": PASSWORD}, "username"),
        ({"username": "ann", "password": PASSWORD}, "username"),
        ({"username": "ANN", "password": PASSWORD}, "username"),
        ({"username": "", "password": PASSWORD}, "username"),
        ({"username": 7, "password": PASSWORD}, "username"),
        ({"username": "bob", "password": PASSWORD, "email": "nowhere"}, "email"),
    ],
)
def test_what_makes_no_account(ann: User, body: dict[str, Any], field: str) -> None:
    answer = post("accounts/", body)
    assert refusal(answer) == (400, "bad_request")
    assert list(answer.body["errors"]) == [field]
    assert User.objects.get() == ann


def test_two_registrations_of_one_name_at_once_are_one_account() -> None:
    answers = run_together(lambda _: post("accounts/", {"username": "ann", "password": PASSWORD}), range(5))
    assert Counter(answer.status for answer in answers) == {201: 1, 400: 4}
    assert User.objects.count() == 1


def test_wrong_credentials_say_the_same_of_every_name(ann: User) -> None:
    wrong = log_in(password="wrong")
    assert refusal(wrong) == (401, "wrong_credentials")
    assert log_in("nobody", "wrong") == wrong
    User.objects.update(is_active=False)
    assert log_in() == wrong


def test_guessing_locks_out_the_pair_of_name_and_address_alone(ann: User) -> None:
    """A rival cannot lock somebody out at 19:59, nor one guesser a whole city block."""
    User.objects.create_user("bob", password=PASSWORD)
    for _ in range(10):
        log_in(password="wrong", address="192.0.2.66")
    assert refusal(log_in(address="192.0.2.66")) == (429, "locked_out")
    assert log_in(address="192.0.2.1").status == 200
    assert log_in("bob", address="192.0.2.66").status == 200


def test_a_customer_s_many_addresses_are_one_guesser(ann: User) -> None:
    """An IPv6 customer has 2^64 addresses, and no more guesses than others."""
    for guess in range(10):
        log_in(password="wrong", address=f"2001:db8:1:2::{guess}")
    assert refusal(log_in(address="2001:db8:1:2:ffff::9")) == (429, "locked_out")
    assert log_in(address="2001:db8:1:3::1").status == 200


def test_a_lock_out_ends(ann: User) -> None:
    for _ in range(11):
        log_in(password="wrong")
    assert refusal(log_in()) == (429, "locked_out")
    with time_machine.travel(timezone.now() + timedelta(minutes=16)):
        assert log_in().status == 200


def test_a_refresh_token_is_good_once(ann: User) -> None:
    first = log_in().body["refresh"]
    second = post("tokens/refresh/", {"refresh": first})
    assert second.status == 200
    assert me(second.body["access"]).status == 200
    assert refusal(post("tokens/refresh/", {"refresh": first})) == (401, "token_invalid")
    assert post("tokens/refresh/", {"refresh": second.body["refresh"]}).status == 200


def test_a_new_password_voids_the_tokens_of_the_old_one(ann: User) -> None:
    tokens = log_in().body
    ann.set_password("another battery staple")
    ann.save()
    assert refusal(me(tokens["access"])) == (401, "not_authenticated")
    assert refusal(post("tokens/refresh/", {"refresh": tokens["refresh"]})) == (401, "token_invalid")


def test_a_refresh_token_used_five_times_at_once_is_good_once(ann: User) -> None:
    body = {"refresh": log_in().body["refresh"]}
    answers = run_together(lambda _: post("tokens/refresh/", body), range(5))
    assert Counter(answer.status for answer in answers) == {200: 1, 401: 4}


def test_who_logs_out_stays_out(ann: User) -> None:
    refresh = log_in().body["refresh"]
    data = json.dumps({"refresh": refresh})
    assert Client().post("/api/v1/tokens/revoke/", data=data, content_type="application/json").status_code == 204
    assert refusal(post("tokens/refresh/", {"refresh": refresh})) == (401, "token_invalid")
    assert refusal(post("tokens/revoke/", {"refresh": refresh})) == (401, "token_invalid")


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "é" * 10])
def test_what_is_no_token(token: str) -> None:
    assert refusal(me(token)) == (401, "not_authenticated")


def test_a_token_changed_in_any_place_is_refused(ann: User) -> None:
    access = log_in().body["access"]
    for place in range(0, len(access), 7):
        changed = access[:place] + ("A" if access[place] != "A" else "B") + access[place + 1 :]
        assert me(changed).status == 401, place


def test_old_tokens_are_forgotten(ann: User) -> None:
    log_in()
    with time_machine.travel(timezone.now() + timedelta(days=13)):
        forget_tokens()
        assert OutstandingToken.objects.count() == 1
    with time_machine.travel(timezone.now() + timedelta(days=15)):
        forget_tokens()
        forget_tokens()
    assert not OutstandingToken.objects.exists()


def verify(code: str) -> ExternalAccount | None:
    """A log-in service as a test has it: it knows the codes that begin with ``good``."""
    return ExternalAccount(provider="chat", subject=code) if code.startswith("good") else None


def test_log_in_by_a_code_of_a_service(settings: Settings) -> None:
    assert refusal(post("tokens/external/", {"code": "good-1"})) == (404, "not_found")
    settings.EXTERNAL_LOGIN = f"{__name__}.verify"
    assert refusal(post("tokens/external/", {"code": "bad"})) == (401, "wrong_credentials")
    answers = run_together(lambda _: post("tokens/external/", {"code": "good-1"}), range(5))
    assert {answer.status for answer in answers} == {200}
    identity = ExternalIdentity.objects.get()
    assert {me(answer.body["access"]).body["id"] for answer in answers} == {identity.account_id}
    assert User.objects.count() == 1
    User.objects.update(is_active=False)
    assert refusal(post("tokens/external/", {"code": "good-1"})) == (401, "wrong_credentials")


@pytest.mark.usefixtures("quick_mails")
def test_a_forgotten_password(ann: User) -> None:
    def ask(email: str) -> int:
        data = json.dumps({"email": email})
        return Client().post("/api/v1/password-resets/", data=data, content_type="application/json").status_code

    assert (ask("ann@example.com"), ask("nobody@example.com")) == (202, 202)
    (sent,) = mail.outbox
    link = re.search(r"http://testserver(\S+)", str(sent.body))
    assert link is not None
    client = Client()
    form = client.get(link[1], follow=True)
    new = {"new_password1": "another battery staple", "new_password2": "another battery staple"}
    assert client.post(form.redirect_chain[-1][0], new).status_code == 302
    assert log_in(password="another battery staple").status == 200
    assert "too old" in client.get(link[1], follow=True).content.decode()


@pytest.mark.usefixtures("quick_mails")
def test_nobody_floods_a_mailbox(ann: User) -> None:
    answers = [post_reset() for _ in range(6)]
    assert [status for status in answers if status == 202] == [202] * 5
    assert answers[-1] == 429
    assert len(mail.outbox) == 5


@pytest.mark.usefixtures("quick_mails")
def test_nobody_floods_a_mailbox_by_another_door_or_spelling(ann: User) -> None:
    """The page counts with the API; the Kelvin sign is a K to whoever compares addresses."""
    User.objects.update(email="kim@example.com")
    spellings = ["kim@example.com", "KIM@example.com", "\u212aim@example.com"] * 3
    statuses = [Client().post("/accounts/password-reset/", {"email": email}).status_code for email in spellings]
    assert statuses == [302] * 5 + [429] * 4
    assert len(mail.outbox) == 5
    assert Client().post("/accounts/password-reset/", {"email": "other@example.com"}).status_code == 302


def test_whether_somebody_has_an_account_takes_no_time(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """One message for whichever address, no SQL and no mail: what else happens, a worker does."""
    sent: list[object] = []
    monkeypatch.setattr(mail_reset, "apply_async", lambda *message, **_: sent.append(message))
    costs = []
    for email in ("ann@example.com", "nobody@example.com"):
        with CaptureQueriesContext(connection) as queries:
            data = json.dumps({"email": email})
            Client().post("/api/v1/password-resets/", data=data, content_type="application/json")
            Client().post("/accounts/password-reset/", {"email": email})
        costs.append([query["sql"] for query in queries if "auth_user" in query["sql"]])
    assert (costs, len(sent), mail.outbox) == ([[], []], 4, [])


def post_reset() -> int:
    data = json.dumps({"email": "Ann@example.com"})
    return Client().post("/api/v1/password-resets/", data=data, content_type="application/json").status_code


def test_a_buyer_is_a_buyer_by_token_too() -> None:
    """One account, whether by session or by token."""
    (buyer,) = make_buyers(1)
    buyer.set_password(PASSWORD)
    buyer.save()
    assert me(log_in(buyer.username).body["access"]).body["username"] == buyer.username
