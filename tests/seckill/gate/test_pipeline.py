"""Script calls of an event loop: many at once on one connection, and what happens when it breaks."""

import asyncio
import threading
import time
from functools import partial
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from rest.threads import in_thread
from seckill import polling
from seckill import purchase as purchase_module
from seckill.errors import GateUnavailable, PurchaseRefused
from seckill.gate import pipeline
from seckill.gate.connection import forget_connections
from seckill.gate.nodes import place_of
from seckill.polling import PurchaseState, apurchase_status
from seckill.purchase import apurchase
from seckill.settlement import settle_bucket
from seckill.tickets import read_ticket
from tests.support.asgi import event_loop, forget_pipeline, on_loop
from tests.support.nodes import flush_scripts, server_of
from tests.support.proxy import Proxy
from tests.support.shop import Shop, buy, make_buyers, make_tickets, open_sale, ticket_of
from tests.support.state import assert_settled_state, numbers
from tests.support.web import wait_until

TIMEOUT_SECONDS_MAX = 3


async def outcome(ticket: str, quantity: int = 1) -> str:
    """Return the order number, or how it was refused."""
    try:
        return (await apurchase(ticket=ticket, quantity=quantity)).order_no
    except PurchaseRefused as refusal:
        return type(refusal).__name__


async def outcomes(tickets: list[str]) -> list[str]:
    return await asyncio.gather(*map(outcome, tickets))


async def none_left(*_: Any) -> None:
    """Stand in for what takes a thread."""
    raise AssertionError("a thread was asked for")


def state(number: str, buyer_id: int) -> PurchaseState:
    return on_loop(apurchase_status(order_no=number, buyer_id=buyer_id)).state


def reads(shop: Shop) -> int:
    """How often the server has read from a socket."""
    return int(server_of(shop.bucket).info("stats")["total_reads_processed"])


def test_of_many_at_once_each_gets_its_own_verdict_and_they_travel_together() -> None:
    shop = open_sale(units=40)
    tickets = make_tickets(shop, 100)
    on_loop(outcome(tickets[0]))
    before = reads(shop)
    answers = on_loop(outcomes(tickets))
    assert reads(shop) - before < 20
    accepted = [answer for answer in answers if "-" in answer]
    mine = [read_ticket(ticket).order_no for ticket in tickets]
    assert [answer for answer, number in zip(answers, mine, strict=True) if answer == number] == accepted
    assert (len(accepted), answers.count("SoldOut")) == (40, 60)
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert_settled_state(shop, sold=40)


def test_one_buyer_by_many_calls_at_once_gets_his_limit() -> None:
    shop = open_sale(units=40, limit=2)
    (buyer,) = make_buyers(1)
    answers = on_loop(outcomes([ticket_of(shop, buyer) for _ in range(30)]))
    assert answers.count("LimitReached") == 28
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert_settled_state(shop, sold=2)


def test_an_accepted_purchase_takes_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale()
    first, second = make_tickets(shop, 2)
    on_loop(outcome(first))
    monkeypatch.setattr(purchase_module, "in_thread", none_left)
    monkeypatch.setattr(asyncio, "to_thread", none_left)
    assert on_loop(outcome(second)) == read_ticket(second).order_no


def test_a_server_without_the_script_is_given_it() -> None:
    shop = open_sale(units=40)
    tickets = make_tickets(shop, 20)
    on_loop(outcome(tickets[0]))
    flush_scripts()
    assert on_loop(outcomes(tickets)) == [read_ticket(ticket).order_no for ticket in tickets]


@pytest.mark.one_server
def test_a_lost_reply_is_unknown_and_the_same_ticket_finds_its_answer(proxied_gate: Proxy) -> None:
    """Law 5: nothing repeats by itself."""
    shop = open_sale(units=1)
    ticket, other = make_tickets(shop, 2)
    on_loop(outcome(other, 2))
    proxied_gate.swallow_next_reply()
    assert on_loop(outcome(ticket)) == "GateUnavailable"
    assert numbers(shop).left == {shop.item.pk: 0}
    assert on_loop(outcome(other)) == "SoldOut"
    assert [on_loop(outcome(ticket)) for _ in range(2)] == [read_ticket(ticket).order_no] * 2
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert_settled_state(shop, sold=1)


def test_a_server_that_says_nothing_is_given_up_and_asked_again() -> None:
    shop = open_sale(units=40)
    tickets = make_tickets(shop, 20)
    on_loop(outcome(tickets[0]))
    server_of(shop.bucket).client_pause(60_000, all=False)
    began = time.monotonic()
    try:
        assert set(on_loop(outcomes(tickets))) == {"GateUnavailable"}
    finally:
        server_of(shop.bucket).client_unpause()
    assert time.monotonic() - began < TIMEOUT_SECONDS_MAX
    assert on_loop(outcomes(tickets)) == [read_ticket(ticket).order_no for ticket in tickets]
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert_settled_state(shop, sold=20)


def opening_to(shop: Shop) -> pipeline.Opening:
    place = place_of(shop.bucket.keys[0])
    assert place is not None
    return pipeline._pipelines[event_loop()][place]


def is_cut(shop: Shop) -> bool:
    return pipeline._is_useless(opening_to(shop))


def test_a_connection_that_was_closed_meanwhile_costs_nobody_his_purchase() -> None:
    shop = open_sale()
    first, second = make_tickets(shop, 2)
    on_loop(outcome(first))
    server_of(shop.bucket).execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    forget_connections()
    wait_until(partial(is_cut, shop), seconds=5)
    assert on_loop(outcomes([second] * 5)) == [read_ticket(second).order_no] * 5
    forget_pipeline()  # the connections of its threads were closed, too


def test_a_reply_that_is_none_breaks_the_connection_and_nobody_gets_anothers() -> None:
    shop = open_sale()
    first, second = make_tickets(shop, 2)
    on_loop(outcome(first))

    async def spoil() -> None:
        line = opening_to(shop).result()
        assert line is not None
        line.data_received(b":7\r\n")

    on_loop(spoil())
    wait_until(partial(is_cut, shop), seconds=5)
    assert on_loop(outcome(second)) == read_ticket(second).order_no


def test_who_comes_when_the_connection_is_just_lost_is_told_so_and_does_not_wait_for_ever() -> None:
    """Between its loss and the next attempt: nothing was sent, and nobody would answer."""
    shop = open_sale()
    first, second = make_tickets(shop, 2)
    on_loop(outcome(first))

    async def lose_and_ask() -> None:
        line = opening_to(shop).result()
        assert line is not None
        line._transport.abort()
        while not line.is_lost:
            await asyncio.sleep(0)
        with pytest.raises(GateUnavailable):
            await line.call(b"PING")

    on_loop(lose_and_ask())
    assert on_loop(outcome(second)) == read_ticket(second).order_no


def test_a_server_without_the_script_is_given_it_while_all_who_ask_mysql_wait() -> None:
    shop = open_sale(units=40)
    tickets = make_tickets(shop, 20)
    on_loop(outcome(tickets[0]))
    flush_scripts()
    let_go = threading.Event()

    async def ask_while_others_wait() -> list[str]:
        waiting = [asyncio.ensure_future(in_thread(let_go.wait)) for _ in range(settings.WEB_THREADS)]
        try:
            return await outcomes(tickets)
        finally:
            let_go.set()
            await asyncio.gather(*waiting)

    assert on_loop(ask_while_others_wait()) == [read_ticket(ticket).order_no for ticket in tickets]


def test_a_poll_of_what_is_queued_takes_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale()
    (buyer,) = make_buyers(1)
    number = buy(ticket_of(shop, buyer))
    with monkeypatch.context() as patch:
        patch.setattr(polling, "in_thread", none_left)
        assert state(number, buyer.pk) is PurchaseState.QUEUED
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert state(number, buyer.pk) is PurchaseState.CONFIRMED
