"""What a buyer holds: on any device, and named when he asks for more than he may have."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, OperationalError
from django.test import Client
from django.utils import timezone

from orders.models import Order
from orders.services import cancel_order
from seckill import holdings
from seckill.gate.connection import raw_client
from seckill.models import FlashSale, Reservation
from seckill.polling import PurchaseStatus, purchase_status
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from seckill.tickets import read_ticket
from tests.support.api import PURCHASES, Answer, ask_ticket, post_purchase, read, refusal, session_of
from tests.support.shop import Shop, buy, make_buyers, make_tickets, open_sale, ticket_of
from tests.support.state import dump


def settle(shop: Shop) -> None:
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


def held_by(buyer: User) -> Answer:
    """Ask as on a device that knows nothing but the log-in."""
    return read(session_of(buyer).get(PURCHASES))


def test_what_is_reserved_shows_on_every_device() -> None:
    shop = open_sale(limit=3)
    (buyer,) = make_buyers(1)
    unused, first, second = (ticket_of(shop, buyer) for _ in range(3))
    buy(first, 2)
    settle(shop)
    buy(second, 1)
    order = Order.objects.get()
    paths = {number: f"{PURCHASES}{number}/" for number in (read_ticket(t).order_no for t in (first, second))}
    answer = held_by(buyer)
    assert (answer.status, answer.headers.get("Retry-After")) == (200, None)
    assert answer.body == {
        "results": [
            {
                "order_no": read_ticket(second).order_no,
                "state": "queued",
                "poll_after_ms": 500,
                "item": shop.item.pk,
                "status_url": paths[read_ticket(second).order_no],
            },
            {
                "order_no": order.number,
                "state": "confirmed",
                "order": {
                    "number": order.number,
                    "state": "PENDING_PAYMENT",
                    "quantity": 2,
                    "amount": "2998.00",
                    "pay_by": order.pay_by_at.isoformat(),
                },
                "item": shop.item.pk,
                "status_url": paths[order.number],
            },
        ]
    }
    assert read_ticket(unused).order_no not in str(answer.body)


def test_nobody_sees_another_s() -> None:
    """CASES 40c."""
    shop = open_sale()
    buyer, other = make_buyers(2)
    buy(ticket_of(shop, buyer))
    settle(shop)
    assert held_by(other).body == {"results": []}
    assert refusal(read(Client().get(PURCHASES))) == (401, "not_authenticated")


@pytest.mark.parametrize("state", ["PAID", "CANCELLED", "EXPIRED"])
def test_what_is_done_with_is_not_listed(state: str) -> None:
    shop = open_sale()
    (buyer,) = make_buyers(1)
    buy(ticket_of(shop, buyer))
    settle(shop)
    Order.objects.update(state=state, closed_at=None if state == "PAID" else timezone.now())
    assert held_by(buyer).body == {"results": []}


def test_refused_and_returned_ones_are_not_listed() -> None:
    shop = open_sale()
    (buyer,) = make_buyers(1)
    buy(ticket_of(shop, buyer))
    settle(shop)
    cancel_order(number=Order.objects.get().number, buyer_id=buyer.pk, now=timezone.now())
    return_closed_orders(clock=timezone.now)
    assert Reservation.objects.get().state == "RETURNED"
    assert held_by(buyer).body == {"results": []}


def test_nobody_can_tell_while_the_gate_is_shut() -> None:
    """Law 5: what MySQL does not know may have been reserved; the asker is told to come back."""
    shop = open_sale(limit=2)
    (buyer,) = make_buyers(1)
    settled, unsettled = (ticket_of(shop, buyer) for _ in range(2))
    buy(settled)
    settle(shop)
    buy(unsettled)
    raw_client().hset(shop.bucket.keys[1], "frozen", "token")
    answer = held_by(buyer)
    assert [one["state"] for one in answer.body["results"]] == ["unknown", "confirmed"]
    assert answer.headers["Retry-After"] == "2"


def test_a_gate_that_is_away_is_asked_twice_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    shops = [open_sale() for _ in range(4)]
    (buyer,) = make_buyers(1)
    for shop in shops:
        ticket_of(shop, buyer)
        raw_client().hset(shop.bucket.keys[1], "frozen", "token")
    asked: list[str] = []

    def count(*, order_no: str, buyer_id: int) -> PurchaseStatus:
        asked.append(order_no)
        return purchase_status(order_no=order_no, buyer_id=buyer_id)

    monkeypatch.setattr(holdings, "purchase_status", count)
    assert [one["state"] for one in held_by(buyer).body["results"]] == ["unknown"] * 4
    assert len(asked) == 2


def test_the_limit_names_the_buyer_s_own_orders() -> None:
    """Who reloaded his page and tries again learns what he has, and until when he can pay it."""
    shop = open_sale(limit=2)
    (buyer,) = make_buyers(1)
    first, second, third = (ticket_of(shop, buyer) for _ in range(3))
    buy(first)
    settle(shop)
    buy(second)
    before = dump(shop.bucket)
    answer = post_purchase(ticket=third)
    order = Order.objects.get()
    assert refusal(answer) == (409, "limit_reached")
    assert answer.body["units_held"] == 2
    assert answer.body["orders"] == [
        {"number": read_ticket(second).order_no, "state": "queued", "pay_by": None},
        {"number": order.number, "state": "PENDING_PAYMENT", "pay_by": order.pay_by_at.isoformat()},
    ]
    assert dump(shop.bucket) == before


def test_who_shares_the_limit_is_not_named() -> None:
    """Law 2 counts a household; the problem shows nobody what another of it has bought."""
    shop = open_sale()
    first, second = make_buyers(2)
    buy(ticket_of(shop, first, key="household-7"))
    settle(shop)
    answer = post_purchase(ticket=ticket_of(shop, second, key="household-7"))
    assert refusal(answer) == (409, "limit_reached")
    assert (answer.body["units_held"], answer.body["orders"]) == (1, [])


def test_another_ticket_at_the_limit_names_the_order_too() -> None:
    shop = open_sale()
    (buyer,) = make_buyers(1)
    ticket = ask_ticket(session_of(buyer), shop.item.pk).body["ticket"]
    buy(ticket)
    settle(shop)
    answer = ask_ticket(session_of(buyer), shop.item.pk, {"another": True})
    assert refusal(answer) == (409, "limit_reached")
    assert [one["state"] for one in answer.body["orders"]] == ["PENDING_PAYMENT"]


def test_the_limit_is_told_also_while_mysql_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale()
    (buyer,) = make_buyers(1)
    first, second = (ticket_of(shop, buyer) for _ in range(2))
    buy(first)

    def fail(error: DatabaseError) -> None:
        def holdings_away(**_kwargs: object) -> None:
            raise error

        monkeypatch.setattr(holdings, "_holdings", holdings_away)

    fail(OperationalError(2006, "gone away"))
    answer = post_purchase(ticket=second)
    assert (refusal(answer), answer.body["orders"]) == ((409, "limit_reached"), [])
    fail(OperationalError(1054, "a column is missing"))
    with pytest.raises(OperationalError):
        post_purchase(ticket=second)


def test_a_sale_gone_from_redis_lists_what_is_unpaid() -> None:
    shop = open_sale()
    (buyer,) = make_buyers(1)
    buy(ticket_of(shop, buyer))
    settle(shop)
    make_tickets(shop, 1)
    raw_client().delete(*shop.bucket.keys)
    FlashSale.objects.update(state="ARCHIVED", closes_at=timezone.now() + timedelta(hours=1))
    assert [one["state"] for one in held_by(buyer).body["results"]] == ["confirmed"]
