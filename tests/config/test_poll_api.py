"""Polling over HTTP: every state has its body, by ticket or session, and nobody sees another's."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from orders.models import Order
from seckill.gate.connection import raw_client
from seckill.models import FlashSale, ItemBucket, Reservation
from seckill.order_numbers import new_order_number
from seckill.settlement import settle_bucket
from seckill.tickets import read_ticket
from tests.support.api import Answer, poll, refusal, session_of
from tests.support.shop import Shop, buy, make_buyers, open_sale, ticket_of
from tests.support.state import dump

pytestmark = pytest.mark.usefixtures("door")

NOT_FOUND = (404, "not_found")


def settle(shop: Shop) -> None:
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


def one_buyer(shop: Shop) -> tuple[User, str, str]:
    """A buyer, his unused ticket and its number."""
    (buyer,) = make_buyers(1)
    ticket = ticket_of(shop, buyer)
    return buyer, ticket, read_ticket(ticket).order_no


def poll_both_ways(number: str, *, buyer: User, ticket: str) -> Answer:
    """Poll by ticket and by session, which must make no difference."""
    by_ticket = poll(number, ticket=ticket)
    by_session = poll(number, client=session_of(buyer))
    assert (by_ticket.status, by_ticket.body) == (by_session.status, by_session.body)
    return by_ticket


def test_before_the_purchase_there_is_no_trace() -> None:
    shop = open_sale()
    buyer, ticket, number = one_buyer(shop)
    answer = poll_both_ways(number, buyer=buyer, ticket=ticket)
    assert (answer.status, answer.body) == (200, {"order_no": number, "state": "not_reserved"})
    assert answer.headers["Content-Type"] == "application/json"


def test_from_queued_to_confirmed() -> None:
    """Law 6: what was accepted ends in an order, with its amount and its time to pay."""
    shop = open_sale(limit=2)
    buyer, ticket, number = one_buyer(shop)
    buy(ticket, 2)
    queued = poll_both_ways(number, buyer=buyer, ticket=ticket)
    assert (queued.status, queued.body) == (200, {"order_no": number, "state": "queued", "poll_after_ms": 500})
    settle(shop)
    order = Order.objects.get(number=number)
    assert order.pay_by_at == order.created_at + timedelta(minutes=15)
    confirmed = poll_both_ways(number, buyer=buyer, ticket=ticket)
    assert (confirmed.status, confirmed.body) == (
        200,
        {
            "order_no": number,
            "state": "confirmed",
            "order": {
                "number": number,
                "state": "PENDING_PAYMENT",
                "quantity": 2,
                "amount": "2998.00",
                "pay_by": order.pay_by_at.isoformat(),
            },
        },
    )


def test_refused_with_the_reason() -> None:
    """MySQL refuses what Redis should not have sold: first by the limit, then because the unit never was."""
    shop = open_sale(units=2, limit=1)
    buyer, first, _ = one_buyer(shop)
    second = ticket_of(shop, buyer)
    phantom_buyer, third, third_number = one_buyer(shop)
    buy(first)
    raw_client().hdel(shop.bucket.keys[2], str(buyer.pk))
    buy(second)
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", 1)
    ItemBucket.objects.update(allocated=1)
    buy(third)
    settle(shop)
    number = read_ticket(second).order_no
    over_limit = poll_both_ways(number, buyer=buyer, ticket=second)
    assert over_limit.body == {"order_no": number, "state": "refused", "reason": "limit_reached"}
    phantom = poll_both_ways(third_number, buyer=phantom_buyer, ticket=third)
    assert phantom.body == {"order_no": third_number, "state": "refused", "reason": "phantom"}


def test_mysql_answers_what_redis_has_no_receipt_of() -> None:
    """The sale is over and gone from Redis: confirmed, then returned, with the order as it stands."""
    shop = open_sale()
    buyer, ticket, number = one_buyer(shop)
    buy(ticket)
    settle(shop)
    before = poll_both_ways(number, buyer=buyer, ticket=ticket)
    raw_client().delete(*shop.bucket.keys)
    FlashSale.objects.update(state="ARCHIVED")
    assert poll_both_ways(number, buyer=buyer, ticket=ticket) == before
    Order.objects.update(state="CANCELLED", closed_at=timezone.now())
    Reservation.objects.update(state="RETURNED")
    after = poll_both_ways(number, buyer=buyer, ticket=ticket)
    assert (after.body["state"], after.body["order"]["state"]) == ("returned", "CANCELLED")


@pytest.mark.parametrize("damage", ["frozen", "lost"])
def test_unknown_while_redis_cannot_tell(damage: str) -> None:
    """Law 5: neither "not reserved" nor "refused" while the queue cannot be seen."""
    shop = open_sale()
    buyer, ticket, number = one_buyer(shop)
    buy(ticket)
    if damage == "frozen":
        raw_client().hset(shop.bucket.keys[1], "frozen", "token")
    else:
        raw_client().delete(*shop.bucket.keys)
    answer = poll_both_ways(number, buyer=buyer, ticket=ticket)
    assert (answer.status, answer.body) == (200, {"order_no": number, "state": "unknown"})
    assert answer.headers["Retry-After"] == "2"


@pytest.mark.parametrize("is_settled", [False, True])
def test_another_person_s_number_is_nobody_s(*, is_settled: bool) -> None:
    """CASES 40c: whether it exists or not, the answer is the same."""
    shop = open_sale()
    _, ticket, number = one_buyer(shop)
    (other,) = make_buyers(1)
    buy(ticket)
    if is_settled:
        settle(shop)
    theirs = poll(number, client=session_of(other))
    nobodys = poll(new_order_number(shop.bucket), client=session_of(other))
    assert refusal(theirs) == refusal(nobodys) == NOT_FOUND
    assert theirs.body == nobodys.body
    assert refusal(poll(number)) == NOT_FOUND


def test_an_unused_number_is_its_owner_s_only() -> None:
    shop = open_sale()
    _, _, number = one_buyer(shop)
    assert refusal(poll(number, client=session_of(*make_buyers(1)))) == NOT_FOUND


def test_a_ticket_opens_its_own_number_only() -> None:
    """A ticket in hand counts before the session: a wrong one is not made good by the right person."""
    shop = open_sale()
    buyer, ticket, number = one_buyer(shop)
    _, other_ticket, other_number = one_buyer(shop)
    assert refusal(poll(other_number, ticket=ticket)) == (403, "ticket_invalid")
    assert refusal(poll(number, ticket=other_ticket)) == (403, "ticket_invalid")
    assert refusal(poll(number, ticket=f"{ticket}x")) == (403, "ticket_invalid")
    assert refusal(poll(number, ticket=other_ticket, client=session_of(buyer))) == (403, "ticket_invalid")


def test_numbers_that_are_none() -> None:
    shop = open_sale()
    client = session_of(*make_buyers(1))
    good = new_order_number(shop.bucket)
    before = dump(shop.bucket)
    for number in (
        "x",
        "1",
        "-1-0-aaaaaaaaaaaaaaaa",
        "0-0-aaaaaaaaaaaaaaaa",
        f"{'9' * 18}-0-aaaaaaaaaaaaaaaa",
        f"{'9' * 40}-0-aaaaaaaaaaaaaaaa",
        "1-9999-aaaaaaaaaaaaaaaa",
        "1-99999-aaaaaaaaaaaaaaaa",
        "１-0-aaaaaaaaaaaaaaaa",
        good.upper(),
        f"{good}%0A",
        f"%20{good}",
        f"{good}%00",
        "%F0%9F%8E%AB",
        "%FF%FE",
        "a" * 5_000,
        "'%20OR%201=1",
    ):
        assert refusal(poll(number, client=client)) == NOT_FOUND, number
    assert dump(shop.bucket) == before


def test_polling_changes_nothing() -> None:
    shop = open_sale()
    buyer, ticket, number = one_buyer(shop)
    buy(ticket)
    before = dump(shop.bucket)
    for _ in range(3):
        poll_both_ways(number, buyer=buyer, ticket=ticket)
    assert dump(shop.bucket) == before
    assert poll(number, client=Client(), ticket=ticket).body["state"] == "queued"
