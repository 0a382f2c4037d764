"""The block list: who is on it gets nothing new, and keeps what he has."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from accounts.models import Block
from rest.memory import forget_everything
from seckill.settlement import settle_bucket
from tests.support.api import Answer, ask_ticket, post_purchase, refusal, session_of
from tests.support.shop import buy, make_buyers, open_sale, ticket_of

ADDRESS = "192.0.2.66"


def from_address(buyer: User, address: str) -> Client:
    client = session_of(buyer)
    client.defaults["REMOTE_ADDR"] = address
    return client


def block(**what: object) -> None:
    Block.objects.create(reason="robots", **what)
    forget_everything()


def ask(buyer: User, item_id: int, *, address: str = "192.0.2.1") -> Answer:
    return ask_ticket(from_address(buyer, address), item_id)


def test_a_blocked_account_gets_no_ticket_but_keeps_the_one_it_has() -> None:
    shop = open_sale()
    ann, bob = make_buyers(2)
    ticket = ask(ann, shop.item.pk).body["ticket"]
    block(account=ann)
    assert refusal(ask(ann, shop.item.pk)) == (403, "blocked")
    assert ask(bob, shop.item.pk).status == 201
    assert post_purchase(ticket=ticket).status == 202


@pytest.mark.parametrize("network", ["192.0.2.66/32", "192.0.2.0/24"])
def test_a_blocked_address_gets_no_ticket(network: str) -> None:
    shop = open_sale()
    (buyer,) = make_buyers(1)
    block(network=network)
    assert refusal(ask(buyer, shop.item.pk, address=ADDRESS)) == (403, "blocked")
    assert ask(buyer, shop.item.pk, address="198.51.100.1").status == 201


def test_a_blocked_address_gets_no_account_and_no_login() -> None:
    block(network="192.0.2.0/24")
    client = Client(REMOTE_ADDR=ADDRESS)
    for path in ("/accounts/login/", "/accounts/register/", "/accounts/password-reset/"):
        assert client.post(path, {}).status_code == 403
        assert client.get(path).status_code == 200
    response = client.post("/api/v1/accounts/", data="{}", content_type="application/json")
    assert (response.status_code, response.json()["code"]) == (403, "blocked")


def test_a_blocked_account_may_log_in_renew_its_tokens_and_pay_for_what_it_has() -> None:
    shop = open_sale()
    (buyer,) = make_buyers(1)
    buyer.set_password("correct horse battery")
    buyer.save()
    number = buy(ticket_of(shop, buyer))
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    block(account=buyer)
    client = Client()

    def post(path: str, body: dict[str, str], **headers: str) -> Any:
        return client.post(f"/api/v1/{path}", data=json.dumps(body), content_type="application/json", headers=headers)

    pair = post("tokens/", {"username": buyer.username, "password": "correct horse battery"}).json()
    pair = post("tokens/refresh/", {"refresh": pair["refresh"]}).json()
    bearer = {"Authorization": f"Bearer {pair['access']}"}
    assert post(f"orders/{number}/pay/", {"provider": "sandbox"}, **bearer).status_code == 200
    refused = post(f"items/{shop.item.pk}/ticket/", {}, **bearer)
    assert (refused.status_code, refused.json()["code"]) == (403, "blocked")


def test_a_block_ends() -> None:
    shop = open_sale()
    (buyer,) = make_buyers(1)
    block(account=buyer, until=timezone.now() - timedelta(seconds=1))
    block(network="192.0.2.0/24", until=timezone.now() - timedelta(seconds=1))
    assert ask(buyer, shop.item.pk).status == 201


def test_the_admin_takes_one_of_the_two() -> None:
    operator = User.objects.create_superuser("operator")
    (buyer,) = make_buyers(1)
    client = session_of(operator)

    def add(**fields: object) -> list[str]:
        response = client.post("/admin/accounts/block/add/", {"reason": "robots", **fields})
        if response.status_code == 302:
            return []
        form = response.context["adminform"].form
        return [message for messages in form.errors.values() for message in messages]

    assert add() == ["Name either an account or a network."]
    assert add(account=buyer.pk, network="192.0.2.1") == ["Name either an account or a network."]
    assert add(network="192.0.2.999") == ["This is neither an address nor a network."]
    assert add(network=" 192.0.2.77 ") == []
    assert add(account=buyer.pk) == []
    rows = Block.objects.order_by("pk").values_list("network", "account", "created_by")
    assert list(rows) == [("192.0.2.77/32", None, operator.pk), ("", buyer.pk, operator.pk)]
