"""The challenge before the ticket: work or patience, for one buyer and one item, good once."""

import json
from base64 import b64encode
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from altcha.v1 import Challenge, Payload, solve_challenge
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from seckill.conf import LIMITS
from seckill.models import FlashSale, Ticket
from tests.support.api import Answer, ask_ticket, read, refusal, session_of
from tests.support.shop import Shop, make_buyers, open_sale


@pytest.fixture
def shop() -> Shop:
    shop = open_sale()
    FlashSale.objects.update(has_challenge=True)
    return shop


@pytest.fixture
def buyer() -> User:
    return make_buyers(1)[0]


def challenge(client: Client, item_id: int, kind: str = "work") -> dict[str, Any]:
    answer = read(client.get(f"/api/v1/items/{item_id}/challenge/", {"kind": kind}))
    assert answer.status == 200
    return answer.body


def solve(told: dict[str, Any]) -> str:
    work = Challenge(told["algorithm"], told["challenge"], told["maxNumber"], told["salt"], told["signature"])
    solution = solve_challenge(work)
    assert solution is not None
    return Payload(work.algorithm, work.challenge, solution.number, work.salt, work.signature).to_base64()


def ask(client: Client, item_id: int, proof: object) -> Answer:
    return ask_ticket(client, item_id, {"proof": proof})


def test_no_ticket_without_a_proof(shop: Shop, buyer: User) -> None:
    assert refusal(ask_ticket(session_of(buyer), shop.item.pk)) == (403, "challenge_required")
    assert not Ticket.objects.exists()


def test_a_solved_challenge_opens_one_ticket(shop: Shop, buyer: User) -> None:
    client = session_of(buyer)
    proof = solve(challenge(client, shop.item.pk))
    assert ask(client, shop.item.pk, proof).status == 201
    assert ask_ticket(client, shop.item.pk).status == 200
    Ticket.objects.update(open_key=None)
    assert refusal(ask(client, shop.item.pk, proof)) == (403, "challenge_failed")


def test_another_spelling_of_a_used_proof_is_used_too(shop: Shop, buyer: User) -> None:
    client = session_of(buyer)
    proof = solve(challenge(client, shop.item.pk))
    ask(client, shop.item.pk, proof)
    Ticket.objects.update(open_key=None)
    fields = dict(reversed(Payload.from_base64(proof).to_dict().items()))
    again = b64encode(json.dumps(fields, indent=1).encode()).decode()
    assert again != proof
    assert refusal(ask(client, shop.item.pk, again)) == (403, "challenge_failed")


def test_somebody_else_s_proof_is_none(shop: Shop) -> None:
    ann, bob = (session_of(buyer) for buyer in make_buyers(2))
    assert refusal(ask(bob, shop.item.pk, solve(challenge(ann, shop.item.pk)))) == (403, "challenge_failed")
    waited = challenge(ann, shop.item.pk, "wait")["proof"]
    with time_machine.travel(timezone.now() + timedelta(seconds=LIMITS.challenge_wait_seconds + 1)):
        assert refusal(ask(bob, shop.item.pk, waited)) == (403, "challenge_failed")


def test_a_proof_that_is_too_old(shop: Shop, buyer: User) -> None:
    client = session_of(buyer)
    proof, waited = solve(challenge(client, shop.item.pk)), challenge(client, shop.item.pk, "wait")["proof"]
    FlashSale.objects.update(closes_at=timezone.now() + timedelta(days=1))
    with time_machine.travel(timezone.now() + timedelta(seconds=LIMITS.challenge_lifetime_seconds + 1)):
        assert refusal(ask(client, shop.item.pk, proof)) == (403, "challenge_failed")
        assert refusal(ask(client, shop.item.pk, waited)) == (403, "challenge_failed")


def test_who_cannot_compute_waits(shop: Shop, buyer: User) -> None:
    client = session_of(buyer)
    told = challenge(client, shop.item.pk, "wait")
    early = ask(client, shop.item.pk, told["proof"])
    assert refusal(early) == (429, "challenge_too_early")
    with time_machine.travel(timezone.now() + timedelta(seconds=told["wait_seconds"] + 1)):
        assert ask(client, shop.item.pk, told["proof"]).status == 201
        Ticket.objects.update(open_key=None)
        assert refusal(ask(client, shop.item.pk, told["proof"])) == (403, "challenge_failed")


def garbage() -> list[str]:
    bodies: list[object] = [None, [], {}, 7, {"algorithm": "SHA-1"}, {"salt": None, "signature": [], "number": "x"}]
    return ["x", "####", "é", *(b64encode(json.dumps(body).encode()).decode() for body in bodies)]


@pytest.mark.parametrize("proof", garbage())
def test_garbage_is_no_proof(shop: Shop, buyer: User, proof: str) -> None:
    assert refusal(ask(session_of(buyer), shop.item.pk, proof)) == (403, "challenge_failed")


def test_a_proof_changed_in_any_field_is_none(shop: Shop, buyer: User) -> None:
    client = session_of(buyer)
    fields = Payload.from_base64(solve(challenge(client, shop.item.pk))).to_dict()
    changes: dict[str, Any] = {
        "algorithm": "SHA-512",
        "challenge": "0" * 64,
        "number": fields["number"] + 1,
        "salt": fields["salt"].replace("expires=", "expires=9"),
        "signature": "0" * 64,
    }
    for name, value in changes.items():
        proof = b64encode(json.dumps({**fields, name: value}).encode()).decode()
        assert refusal(ask(client, shop.item.pk, proof)) == (403, "challenge_failed"), name
    proof = b64encode(json.dumps(fields).encode()).decode()
    assert ask(client, shop.item.pk, proof).status == 201


def test_a_challenge_is_told_to_who_is_logged_in(shop: Shop) -> None:
    assert refusal(read(Client().get(f"/api/v1/items/{shop.item.pk}/challenge/"))) == (401, "not_authenticated")


def test_a_sale_without_the_switch_asks_for_nothing(buyer: User) -> None:
    assert ask_ticket(session_of(buyer), open_sale().item.pk).status == 201
