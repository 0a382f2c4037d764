"""Purchases over HTTP: each outcome has its status, code and facts, and none can be cached."""

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from seckill.gate.connection import raw_client
from seckill.models import FlashSale, SaleItem
from seckill.order_numbers import new_order_number
from seckill.pausing import pause_item, resume_item
from seckill.settlement import settle_bucket
from seckill.tickets import read_ticket, sign_ticket
from tests.support.api import PURCHASES, Answer, post_purchase, post_raw, read, refusal
from tests.support.shop import Shop, buy, make_buyers, make_sale, make_tickets, open_sale, ticket_of
from tests.support.state import dump, numbers

pytestmark = pytest.mark.usefixtures("door")

HOUR = timedelta(hours=1)


def gate_key(shop: Shop) -> str:
    return shop.bucket.keys[1]


def facts(answer: Answer) -> dict[str, object]:
    """What a problem says beyond its form."""
    return {name: value for name, value in answer.body.items() if name not in {"type", "title", "status", "code"}}


def test_an_accepted_purchase_says_where_to_ask() -> None:
    shop = open_sale(units=3)
    number = new_order_number(shop.bucket)
    answer = post_purchase(ticket=ticket_of(shop, *make_buyers(1), order_no=number))
    assert answer.status == 202
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.body == {"order_no": number, "status_url": f"{PURCHASES}{number}/", "poll_after_ms": 500}
    assert numbers(shop).left == {shop.item.pk: 2}


def test_the_same_purchase_again_gets_the_same_answer() -> None:
    """CASES 39: a double click is one purchase, also when the first was settled meanwhile and all is sold."""
    shop = open_sale(units=1)
    (ticket,) = make_tickets(shop, 1)
    first = post_purchase(ticket=ticket)
    before = dump(shop.bucket)
    assert post_purchase(ticket=ticket) == first
    assert dump(shop.bucket) == before
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert post_purchase(ticket=ticket) == first
    assert first.status == 202


def test_a_purchase_needs_no_session_and_no_csrf_token() -> None:
    """The ticket is who is asking: another person's session in the same browser changes nothing."""
    shop = open_sale()
    (buyer, other) = make_buyers(2)
    client = Client(enforce_csrf_checks=True)
    client.force_login(other)
    body = json.dumps({"ticket": ticket_of(shop, buyer), "quantity": 1, "buyer": other.pk, "user_id": str(other.pk)})
    assert read(client.post(PURCHASES, data=body, content_type="application/json")).status == 202
    assert raw_client().hget(shop.bucket.keys[2], str(buyer.pk)) == b"1"
    assert raw_client().hget(shop.bucket.keys[2], str(other.pk)) is None


def test_sold_out() -> None:
    shop = open_sale(units=1)
    first, second = make_tickets(shop, 2)
    post_purchase(ticket=first)
    answer = post_purchase(ticket=second)
    assert refusal(answer) == (409, "sold_out")
    assert facts(answer) == {"status_url": f"{PURCHASES}{read_ticket(second).order_no}/"}


def test_not_enough_left() -> None:
    """Law 6: no "sold out" while units are left."""
    shop = open_sale(units=2, limit=3)
    answer = post_purchase(ticket=make_tickets(shop, 1)[0], quantity=3)
    assert refusal(answer) == (409, "not_enough_left")
    assert facts(answer) == {"units_left": 2}


def test_limit_reached() -> None:
    shop = open_sale(limit=2)
    (buyer,) = make_buyers(1)
    first = post_purchase(ticket=ticket_of(shop, buyer), quantity=1)
    answer = post_purchase(ticket=ticket_of(shop, buyer), quantity=2)
    assert refusal(answer) == (409, "limit_reached")
    own = {"number": first.body["order_no"], "state": "queued", "pay_by": None}
    assert facts(answer) == {"units_held": 1, "orders": [own]}


def test_not_started() -> None:
    """CASES 40b: the server says how long it takes, in whole seconds that are never too few."""
    shop = open_sale(opens_in=HOUR, closes_in=2 * HOUR)
    answer = post_purchase(ticket=make_tickets(shop, 1)[0])
    assert refusal(answer) == (409, "not_started")
    assert facts(answer).keys() == {"opens_in_ms", "seconds_left"}
    assert 3_500_000 < answer.body["opens_in_ms"] <= 3_600_000
    assert answer.body["seconds_left"] == -(-answer.body["opens_in_ms"] // 1000)


def test_ended() -> None:
    shop = open_sale()
    raw_client().hset(gate_key(shop), "closes_ms", int(timezone.now().timestamp() * 1000) - 1)
    assert refusal(post_purchase(ticket=make_tickets(shop, 1)[0])) == (410, "ended")


def test_paused_and_resumed() -> None:
    shop = open_sale()
    (ticket,) = make_tickets(shop, 1)
    pause_item(item_id=shop.item.pk)
    assert refusal(post_purchase(ticket=ticket)) == (409, "paused")
    resume_item(item_id=shop.item.pk)
    assert post_purchase(ticket=ticket).status == 202


def test_not_preheated() -> None:
    assert refusal(post_purchase(ticket=make_tickets(make_sale(), 1)[0])) == (409, "not_preheated")


def test_archived() -> None:
    """Law 6: a sale that left Redis is over, not "not ready yet"; who bought is told so still."""
    shop = open_sale()
    used, unused = make_tickets(shop, 2)
    first = post_purchase(ticket=used)
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    raw_client().delete(*shop.bucket.keys)
    FlashSale.objects.update(state="ARCHIVED")
    assert post_purchase(ticket=used) == first
    assert refusal(post_purchase(ticket=unused)) == (410, "ended")


def test_busy() -> None:
    shop = open_sale(max_queue=1)
    first, second = make_tickets(shop, 2)
    post_purchase(ticket=first)
    answer = post_purchase(ticket=second)
    assert refusal(answer) == (503, "busy")
    assert answer.headers["Retry-After"] == "1"


def test_unavailable_while_frozen_and_when_lost() -> None:
    """Law 8: a frozen or lost bucket is an outage, never "sold out" and never "not preheated"."""
    shop = open_sale()
    (ticket,) = make_tickets(shop, 1)
    raw_client().hset(gate_key(shop), "frozen", "token")
    frozen = post_purchase(ticket=ticket)
    raw_client().delete(*shop.bucket.keys)
    lost = post_purchase(ticket=ticket)
    assert refusal(frozen) == refusal(lost) == (503, "unavailable")
    assert frozen.headers["Retry-After"] == lost.headers["Retry-After"] == "2"


def test_a_used_ticket_for_another_quantity_is_a_conflict() -> None:
    """CASES 39: same key, other body."""
    shop = open_sale(limit=2)
    (ticket,) = make_tickets(shop, 1)
    post_purchase(ticket=ticket, quantity=1)
    before = dump(shop.bucket)
    assert refusal(post_purchase(ticket=ticket, quantity=2)) == (409, "conflict")
    assert dump(shop.bucket) == before


def test_an_expired_ticket_reserves_nothing_new_but_still_answers() -> None:
    shop = open_sale()
    used, unused = make_buyers(2)
    item = SaleItem.objects.select_related("pool__sale").get(pk=shop.item.pk)
    item.pool.sale.closes_at = timezone.now() - HOUR
    number = new_order_number(shop.bucket)
    buy(ticket_of(shop, used, order_no=number))
    repeat = sign_ticket(order_no=number, item=item, buyer_id=used.pk, key=str(used.pk))
    late = sign_ticket(order_no=new_order_number(shop.bucket), item=item, buyer_id=unused.pk, key=str(unused.pk))
    assert post_purchase(ticket=repeat).body["order_no"] == number
    assert refusal(post_purchase(ticket=late)) == (410, "ticket_expired")


def test_a_ticket_that_was_not_signed_here() -> None:
    """CASES 39: whatever stands in its place, of any length and alphabet."""
    for forged in ("x", "票", "🎫", "  ", "a:b", "eyJ" * 200):
        assert refusal(post_purchase(ticket=forged)) == (403, "ticket_invalid"), forged


def test_other_methods_are_told_so() -> None:
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS"):
        assert refusal(read(Client().generic(method, PURCHASES))) == (405, "method_not_allowed"), method


def test_an_answer_in_another_form_than_json_is_not_to_be_had() -> None:
    shop = open_sale()
    body = json.dumps({"ticket": make_tickets(shop, 1)[0], "quantity": 1})
    before = dump(shop.bucket)
    response = Client().post(PURCHASES, data=body, content_type="application/json", headers={"Accept": "text/html"})
    assert refusal(read(response)) == (406, "not_acceptable")
    assert dump(shop.bucket) == before


def test_several_lines_are_refused_as_a_whole() -> None:
    """CASES 8: there is one item per ticket and no list of them."""
    shop = open_sale()
    lines = [{"ticket": ticket, "quantity": 1} for ticket in make_tickets(shop, 2)]
    before = dump(shop.bucket)
    assert refusal(post_raw(json.dumps(lines))) == (400, "bad_request")
    assert refusal(post_raw(json.dumps({"lines": lines}))) == (400, "bad_request")
    assert dump(shop.bucket) == before
