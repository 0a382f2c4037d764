"""What a process remembers of shut items: sold out without Redis, never for long, and never in front of a repeat."""

import json
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from orders.services import cancel_order
from seckill.errors import PurchaseRefused
from seckill.gate.connection import raw_client
from seckill.models import Reservation
from seckill.pausing import pause_item
from seckill.purchase import purchase
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from seckill.shut import KEPT_SECONDS, shut_items
from seckill.tickets import read_ticket
from tests.support.api import PURCHASES, Answer, read_reply, refusal
from tests.support.doors import Served
from tests.support.shop import Shop, buy, make_buyers, make_ticket, make_tickets, open_sale, ticket_of

BACK_WITHIN_SECONDS = 1.0


def first(ticket: str, quantity: int = 1) -> str:
    """Send a ticket as for the first time; return the order number or the name of the refusal."""
    try:
        return purchase(ticket=ticket, quantity=quantity, is_first=True).order_no
    except PurchaseRefused as refused:
        return type(refused).__name__


def script_calls() -> int:
    stats = raw_client().info("commandstats")
    return int(stats.get("cmdstat_evalsha", {}).get("calls", 0)) + int(stats.get("cmdstat_eval", {}).get("calls", 0))


def close(shop: Shop) -> None:
    raw_client().hset(shop.bucket.keys[1], "closes_ms", int((timezone.now() - timedelta(seconds=1)).timestamp() * 1000))


def sell_out(shop: Shop) -> None:
    assert "-" in buy(make_ticket(shop))


@pytest.mark.parametrize(("shut", "refused_as"), [(sell_out, "SoldOut"), (close, "Ended")])
def test_the_second_one_is_refused_without_redis(shut: Callable[[Shop], None], refused_as: str) -> None:
    shop = open_sale(units=1)
    shut(shop)
    assert first(make_ticket(shop)) == refused_as
    tickets = make_tickets(shop, 3)
    before = script_calls()
    assert [first(ticket) for ticket in tickets] == [refused_as] * 3
    assert script_calls() == before
    assert buy(tickets[0]) == refused_as
    assert script_calls() > before


def test_another_item_is_not_shut() -> None:
    shop = open_sale(units=1, items=2)
    sell_out(shop)
    assert first(make_ticket(shop)) == "SoldOut"
    assert "-" in first(ticket_of(shop, *make_buyers(1), item=shop.items[1]))


def test_a_refusal_about_the_buyer_shuts_nothing() -> None:
    """One who wants too many, has enough, or comes late with an old ticket, says nothing of the item."""
    shop = open_sale(units=2, limit=2)
    buyer, other, another = make_buyers(3)
    assert "-" in first(ticket_of(shop, buyer))
    assert first(ticket_of(shop, buyer), 2) == "LimitReached"
    assert first(ticket_of(shop, other), 2) == "NotEnoughLeft"
    raw_client().hset(shop.bucket.keys[0], f"{shop.item.pk}:price", "1.00")
    assert first(ticket_of(shop, other)) == "PriceChanged"
    raw_client().hset(shop.bucket.keys[0], f"{shop.item.pk}:price", str(shop.item.price))
    assert "-" in first(ticket_of(shop, another))


def test_a_pause_is_asked_for_each_time() -> None:
    """It ends when the operator says so, not half a second later."""
    shop = open_sale()
    pause_item(item_id=shop.item.pk)
    assert first(make_ticket(shop)) == "Paused"
    raw_client().hdel(shop.bucket.keys[1], f"paused:{shop.item.pk}")
    assert "-" in first(make_ticket(shop))


def test_what_is_kept_is_half_a_second_old_at_most_however_often_it_is_used() -> None:
    shop = open_sale(units=1)
    sell_out(shop)
    assert first(make_ticket(shop)) == "SoldOut"
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", 1)
    ticket, started = make_ticket(shop), time.monotonic()
    while first(ticket) == "SoldOut":
        assert time.monotonic() - started < BACK_WITHIN_SECONDS
    assert time.monotonic() - started < KEPT_SECONDS + 0.1


def test_a_table_that_is_full_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seckill.shut.KEPT_MAX", 1)
    for _ in range(2):
        shop = open_sale(units=1)
        sell_out(shop)
        assert first(make_ticket(shop)) == "SoldOut"
    assert len(shut_items._said) == 1


# Two processes.


def post(served: Served, ticket: str, attempt: int) -> Answer:
    body = json.dumps({"ticket": ticket, "quantity": 1, "attempt": attempt}).encode()
    return read_reply(served.call("POST", PURCHASES, body=body, headers={"Content-Type": "application/json"}))


@pytest.mark.slow
@pytest.mark.parametrize(("shut", "refused_as"), [(lambda _: None, (409, "sold_out")), (close, (410, "ended"))])
def test_lost_reply_then_sold_out_and_the_memory_warm(
    served_shops: dict[str, Served], shut: Callable[[Shop], None], refused_as: tuple[int, str]
) -> None:
    """The script ran and the reply was lost; both processes know that all is gone. The ticket is accepted still."""
    shop = open_sale(units=1)
    (ticket,) = make_tickets(shop, 1)
    number = buy(ticket)
    shut(shop)
    for served in served_shops.values():
        assert refusal(post(served, make_ticket(shop), 1)) == refused_as
        again = post(served, ticket, 2)
        assert (again.status, again.body["order_no"]) == (202, number)
        # The control: whoever calls his repeat a first attempt is told what everybody is told, and where to ask.
        wrong = post(served, ticket, 1)
        assert refusal(wrong) == refused_as
        told = read_reply(served.call("GET", wrong.body["status_url"], headers={"Authorization": f"Ticket {ticket}"}))
        assert (told.status, told.body["order_no"], told.body["state"]) == (200, number, "queued")


@pytest.mark.slow
def test_a_returned_unit_can_be_bought_in_every_process_within_a_second(served_shops: dict[str, Served]) -> None:
    for served in served_shops.values():
        shop = open_sale(units=1)
        sell_out(shop)
        settle_bucket(bucket=shop.bucket, clock=timezone.now)
        for everybody in served_shops.values():
            assert refusal(post(everybody, make_ticket(shop), 1)) == (409, "sold_out")
        row = Reservation.objects.get(pool_id=shop.pool.pk)
        cancel_order(number=row.order_no, buyer_id=row.buyer_id, now=timezone.now())
        return_closed_orders(clock=timezone.now)
        ticket, returned_at = make_ticket(shop), time.monotonic()
        while (answer := post(served, ticket, 1)).status != 202:
            assert refusal(answer) == (409, "sold_out")
            time.sleep(0.05)  # Under the throttle of one ticket.
        assert time.monotonic() - returned_at < BACK_WITHIN_SECONDS
        assert answer.body["order_no"] == read_ticket(ticket).order_no
