"""The sandbox's set of items: each answers, over HTTP, what it says."""

import json
import time
from collections.abc import Iterator
from datetime import datetime
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from config.errors import ANSWERS
from orders.models import Order
from orders.services import expire_orders
from rest.memory import forget_everything
from seckill.eligibility import _rules
from seckill.errors import BucketUnsound, PurchaseRefused
from seckill.gate.keys import BucketRef
from seckill.models import Bucket, FlashSale, Incident
from seckill.returns import return_closed_orders
from seckill.sandbox.outcome_set import Outcome, make_outcomes
from seckill.settlement import settle_bucket
from seckill.sweep import look_over
from tests.support.api import Answer, ask_ticket, poll, post_purchase, session_of
from tests.support.shop import make_buyers

QUANTITIES = {"limit_reached": 2, "not_enough_left": 2, "bad_request": 0}


@pytest.fixture
def sandbox(settings: Settings) -> Iterator[None]:
    settings.SANDBOX = True
    rules = ["seckill.eligibility.active_account", "seckill.sandbox.rules.members_first"]
    settings.SECKILL = {**settings.SECKILL, "eligibility": rules}
    _rules.cache_clear()
    yield
    _rules.cache_clear()


def settle_all() -> None:
    for pool_id, number in Bucket.objects.filter(claim="").values_list("pool_id", "number"):
        settle_bucket(bucket=BucketRef(pool_id=pool_id, number=number), clock=timezone.now)


def told(answer: Answer) -> str:
    """The code of a problem, or the state and its reason."""
    body = answer.body
    if "code" in body:
        return str(body["code"])
    return f"refused:{body['reason']}" if body.get("state") == "refused" else str(body.get("state", "accepted"))


def tried(outcome: Outcome, client: Client, buyer: User) -> str:
    """Do what the set says to do, as an app would; return what came of it."""
    ticket, order_no = outcome.ticket, outcome.order_no
    if not ticket:
        given = ask_ticket(client, outcome.item_id)
        if "ticket" not in given.body:
            return told(given)
        ticket, order_no = given.body["ticket"], given.body["order_no"]
    if not outcome.how.startswith("poll"):
        answer = post_purchase(ticket=ticket, quantity=QUANTITIES.get(outcome.code, 1))
        if outcome.code == "conflict":
            answer = post_purchase(ticket=ticket, quantity=2)
        if answer.status != 202:
            return told(answer)
        settle_all()
    if "do not pay" in outcome.how:
        Order.objects.filter(number=order_no).update(pay_by_at=timezone.now())
        expire_orders(now=timezone.now(), batch_size=10)
        return_closed_orders(clock=timezone.now)
    return told(poll(order_no, ticket=ticket))


@pytest.mark.slow
def test_every_outcome_is_what_it_says(sandbox: None) -> None:
    (buyer,) = make_buyers(1)
    made = make_outcomes(buyer=buyer, clock=timezone.now)
    time.sleep(max(0.0, (_end_of("over") - timezone.now()).total_seconds()))
    answers: dict[str, str] = {}
    for outcome in made:
        client = session_of(make_buyers(1)[0])
        answers[f"{outcome.code} {outcome.how}"] = tried(outcome, client, buyer)
    assert answers == {f"{outcome.code} {outcome.how}": outcome.code for outcome in made}


def _end_of(name: str) -> datetime:
    return FlashSale.objects.get(name=f"Sandbox: {name}").closes_at


@pytest.mark.slow
def test_the_set_has_every_refusal_and_every_end(sandbox: None) -> None:
    (buyer,) = make_buyers(1)
    codes = {outcome.code for outcome in make_outcomes(buyer=buyer, clock=timezone.now)}
    refusals = {answer.code for kind, answer in ANSWERS.items() if issubclass(kind, PurchaseRefused)}
    assert BucketUnsound not in ANSWERS
    assert refusals <= codes
    ends = {"confirmed", "returned", "not_reserved", "refused:limit_reached", "refused:phantom", "refused:invalid"}
    assert ends <= codes


@pytest.mark.slow
def test_the_set_stays_as_it_is(sandbox: None) -> None:
    """No sweep opens what is shut on purpose, and nobody is called for it; it can be made a second time."""
    (buyer,) = make_buyers(1)
    make_outcomes(buyer=buyer, clock=timezone.now)
    make_outcomes(buyer=buyer, clock=timezone.now)
    findings = look_over(now=timezone.now())
    assert findings.to_rebuild == []
    assert not Incident.objects.exists()


@pytest.mark.slow
def test_taken_and_sold_out_look_different(sandbox: None) -> None:
    (buyer,) = make_buyers(1)
    make_outcomes(buyer=buyer, clock=timezone.now)
    forget_everything()
    sale = FlashSale.objects.get(name="Sandbox: sold")
    body = json.loads(Client().get(f"/api/v1/sales/{sale.pk}/").content)
    shown = {item["sku"]["name"]: item["availability"] for item in body["items"]}
    assert shown["sold_out"] == {"level": "none_left", "unpaid_until": None}
    assert shown["taken_unpaid"]["level"] == "none_left"
    assert shown["taken_unpaid"]["unpaid_until"] is not None


def test_real_shops_have_no_such_items(settings: Settings) -> None:
    settings.SANDBOX = False
    (buyer,) = make_buyers(1)
    with pytest.raises(CommandError, match="no sandbox"):
        call_command("make_outcomes", buyer.username)
    assert not FlashSale.objects.exists()


@pytest.mark.slow
def test_the_command_lists_what_it_made(sandbox: None) -> None:
    with pytest.raises(CommandError, match="no account"):
        call_command("make_outcomes", "nobody")
    (buyer,) = make_buyers(1)
    text, plain = StringIO(), StringIO()
    call_command("make_outcomes", buyer.username, "--json", stdout=text)
    made = json.loads(text.getvalue())
    assert {"code", "item_id", "how", "ticket", "order_no"} == made[0].keys()
    call_command("make_outcomes", buyer.username, stdout=plain)
    assert plain.getvalue().count(" item ") == len(made)
