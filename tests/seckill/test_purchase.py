"""The hot path: what it costs, and that whoever holds a reservation always hears so."""

import os
import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from redis.connection import Connection

from seckill import wakeups
from seckill.errors import GateUnavailable
from seckill.gate.connection import IDLE_SECONDS, connection_of_this_thread, forget_connections, raw_client
from seckill.gate.keys import BucketRef
from seckill.models import FlashSale
from seckill.purchase import purchase
from seckill.settlement import settle_bucket
from seckill.tickets import read_ticket, sign_ticket
from tests.support.broker import settle_messages, wait_for_message
from tests.support.proxy import Proxy
from tests.support.shop import Shop, buy, make_buyers, make_ticket, make_tickets, open_sale, ticket_of
from tests.support.state import assert_settled_state, numbers
from tests.support.threads import run_together


def settle(shop: Shop) -> int:
    return settle_bucket(bucket=shop.bucket, clock=timezone.now).entries


def post(client: Client, ticket: str) -> int:
    body = {"ticket": ticket, "quantity": 1}
    return client.post("/api/v1/purchases/", body, content_type="application/json").status_code


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Whatever this thread sends to any Redis server, one item per write; the tally's has its own rhythm."""
    sent: list[bytes] = []
    send: Any = Connection.send_packed_command
    asker = threading.get_ident()

    def record(self: Connection, command: object, check_health: bool = True) -> None:  # noqa: FBT001, FBT002
        if threading.get_ident() == asker:
            sent.append(b"".join(command) if isinstance(command, list) else bytes(str(command), "utf8"))
        send(self, command, check_health=check_health)

    monkeypatch.setattr(Connection, "send_packed_command", record)
    return sent


def test_an_accepted_purchase_is_one_round_trip_and_no_sql(
    commands: list[bytes],
    django_assert_num_queries: DjangoAssertNumQueries,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Law 9, through the whole HTTP stack."""
    shop = open_sale()
    first, second, third = make_tickets(shop, 3)
    client = Client()
    monkeypatch.setattr(wakeups, "request", lambda _: None)
    post(client, first)
    commands.clear()
    with django_assert_num_queries(0):
        assert post(client, second) == 202
    assert len(commands) == 1
    assert b"EVALSHA" in commands[0]
    with django_assert_num_queries(0):
        assert [post(client, second), post(client, third)] == [202, 202]
    assert len(commands) == 3


def test_a_refusal_is_one_round_trip_and_no_sql(
    commands: list[bytes], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    shop = open_sale(units=1)
    first, second = make_tickets(shop, 2)
    buy(first)
    commands.clear()
    with django_assert_num_queries(0):
        assert buy(second) == "SoldOut"
    assert len(commands) == 1
    assert b"EVALSHA" in commands[0]


def waiting(buckets: list[BucketRef]) -> list[BucketRef]:
    """The wake-ups of these buckets; those of an earlier test may still come in."""
    return [bucket for bucket in settle_messages() if bucket in buckets]


def test_one_publish_for_many_purchases() -> None:
    """Law 9: one wake-up when the queue was empty, none while the last is fresh, one again after a second."""
    shop = open_sale(units=50)
    tickets = make_tickets(shop, 31)
    for ticket in tickets[:30]:
        buy(ticket)
    marker = BucketRef(pool_id=10**6, number=0)
    wakeups.request(marker)
    wait_for_message(marker)
    assert waiting([shop.bucket, marker]) == [shop.bucket, marker]
    raw_client().hincrby(shop.bucket.keys[1], "woken_ms", -1_001)
    buy(tickets[30])
    last = BucketRef(pool_id=10**6, number=1)
    wakeups.request(last)
    wait_for_message(last)
    assert waiting([shop.bucket, marker, last]) == [shop.bucket, marker, shop.bucket, last]


def test_a_repeat_is_answered_after_sell_out_end_and_expiry() -> None:
    """Law 6: who holds a reservation is never told "sold out", "ended" or "expired" by a repeat."""
    shop = open_sale(units=1)
    (buyer,) = make_buyers(1)
    ticket = ticket_of(shop, buyer)
    order_no = buy(ticket)
    assert buy(make_ticket(shop)) == "SoldOut"
    assert buy(ticket) == order_no
    settle(shop)
    assert buy(ticket) == order_no
    raw_client().hset(shop.bucket.keys[1], "closes_ms", 1)
    assert buy(make_ticket(shop)) == "Ended"
    assert buy(ticket) == order_no
    shop.item.pool.sale.closes_at = timezone.now() - timedelta(days=1)
    expired = sign_ticket(order_no=order_no, item=shop.item, buyer_id=buyer.pk, key=str(buyer.pk))
    assert expired != ticket
    assert buy(expired) == order_no
    raw_client().delete(shop.bucket.keys[3])
    raw_client().hset(shop.bucket.keys[3], "#epoch", 1)
    assert buy(ticket) == order_no
    FlashSale.objects.update(state="ARCHIVED")
    raw_client().flushall()
    assert buy(ticket) == order_no
    assert buy(ticket, 2) == "Conflict"


def test_an_expired_ticket_reserves_nothing() -> None:
    shop = open_sale()
    (buyer,) = make_buyers(1)
    shop.item.pool.sale.closes_at = timezone.now() - timedelta(days=1)
    ticket = sign_ticket(
        order_no=f"{shop.pool.pk}-0-aaaaaaaaaaaaaaaa", item=shop.item, buyer_id=buyer.pk, key=str(buyer.pk)
    )
    assert buy(ticket) == "TicketExpired"
    assert numbers(shop).left == {shop.item.pk: 10}


def test_limit_two_bought_as_one_and_one() -> None:
    """CASES 10: the sum counts, over calls and tickets."""
    shop = open_sale(limit=2)
    (buyer,) = make_buyers(1)
    tickets = [ticket_of(shop, buyer) for _ in range(4)]
    assert "-" in buy(tickets[0])
    assert buy(tickets[1], 2) == "LimitReached"
    assert "-" in buy(tickets[2])
    assert buy(tickets[3]) == "LimitReached"
    settle(shop)
    assert_settled_state(shop, sold=2)


def test_two_parallel_calls_of_two_with_limit_two() -> None:
    """CASES 10: one of them."""
    shop = open_sale(limit=2)
    (buyer,) = make_buyers(1)
    answers = run_together(lambda ticket: buy(ticket, 2), [ticket_of(shop, buyer) for _ in range(2)])
    assert sorted("order" if "-" in answer else answer for answer in answers) == ["LimitReached", "order"]
    settle(shop)
    assert_settled_state(shop, sold=2)


def test_another_spelling_of_a_buyer_is_the_same_buyer() -> None:
    """CASES 10: the body has no say in who buys; the limit key comes from the signed ticket alone."""
    shop = open_sale()
    (buyer,) = make_buyers(1)
    client = Client()
    codes = []
    for spelling in (buyer.pk, str(buyer.pk), f"0{buyer.pk}", f" {buyer.pk}", f"{buyer.pk}.0", -1):
        body = {"ticket": ticket_of(shop, buyer), "quantity": 1, "buyer": spelling, "user_id": spelling}
        answer = client.post("/api/v1/purchases/", body, content_type="application/json")
        codes.append(answer.json().get("code", answer.status_code))
    assert codes == [202, *["limit_reached"] * 5]


def test_three_items_of_a_pool_share_one_limit() -> None:
    """A shoe in three sizes: one pair in all, also when all three are raced."""
    shop = open_sale(items=3)
    (buyer,) = make_buyers(1)
    tickets = [ticket_of(shop, buyer, item=item) for item in shop.items]
    answers = run_together(buy, tickets)
    assert sorted("order" if "-" in answer else answer for answer in answers) == ["LimitReached"] * 2 + ["order"]
    settle(shop)
    assert sum(numbers(shop).left.values()) == 29


@pytest.mark.one_server
def test_a_lost_reply_then_the_same_purchase(proxied_gate: Proxy) -> None:
    """Law 5: the script ran, the reply never came, nothing repeats by itself; the same ticket finds its answer."""
    shop = open_sale(units=1)
    ticket, other = make_tickets(shop, 2)
    buy(other, 2)
    proxied_gate.swallow_next_reply()
    with pytest.raises(GateUnavailable):
        purchase(ticket=ticket, quantity=1)
    assert numbers(shop).left == {shop.item.pk: 0}
    assert buy(other) == "SoldOut"
    first, second = buy(ticket), buy(ticket)
    assert first == second
    settle(shop)
    assert_settled_state(shop, sold=1)


@pytest.mark.one_server
def test_lost_reply_expired_ticket_and_new_ticket_together(proxied_gate: Proxy) -> None:
    """One buyer, one unit: a purchase whose reply was lost, the same by an expired ticket, and a new ticket at once."""
    shop = open_sale(units=5)
    (buyer,) = make_buyers(1)
    ticket, new = ticket_of(shop, buyer), ticket_of(shop, buyer)
    assert buy(ticket, 2) == "LimitReached"  # so that the connection is there, and the reply lost is the script's
    proxied_gate.swallow_next_reply()
    with pytest.raises(GateUnavailable):
        purchase(ticket=ticket, quantity=1)
    assert numbers(shop).left == {shop.item.pk: 4}
    order_no = read_ticket(ticket).order_no
    shop.item.pool.sale.closes_at = timezone.now() - timedelta(days=1)
    expired = sign_ticket(order_no=order_no, item=shop.item, buyer_id=buyer.pk, key=str(buyer.pk))
    answers = run_together(buy, [ticket, expired, new])
    assert sorted(answers) == sorted([order_no, order_no, "LimitReached"])
    settle(shop)
    assert_settled_state(shop, sold=1)


def test_a_server_that_takes_no_more_connections_is_an_outage() -> None:
    """CASES 19: no connection to be had is 503, never a trace and never another's answer."""
    shop = open_sale(units=5)
    first, second = make_tickets(shop, 2)
    raw_client().config_set("maxclients", 1)
    forget_connections()
    try:
        with pytest.raises(GateUnavailable):
            purchase(ticket=first, quantity=1)
    finally:
        raw_client().config_set("maxclients", 10_000)
    assert [buy(first), buy(second)] == [read_ticket(first).order_no, read_ticket(second).order_no]


def test_a_connection_that_was_closed_meanwhile_is_noticed_before_anything_is_sent() -> None:
    """A server or a firewall ends what is idle; the next buyer must not pay for it with a 503."""
    shop = open_sale(units=5)
    first, second = make_tickets(shop, 2)
    buy(first)
    raw_client().execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    time.sleep(IDLE_SECONDS)
    assert buy(second) == read_ticket(second).order_no


@pytest.mark.one_server
def test_each_thread_has_a_connection_of_its_own_and_a_forked_child_its_own_as_well() -> None:
    shop = open_sale(units=5)
    (ticket,) = make_tickets(shop, 1)
    mine = connection_of_this_thread()
    theirs = run_together(lambda _: connection_of_this_thread(), [1, 2])
    assert len({id(mine), *map(id, theirs)}) == 3
    assert connection_of_this_thread() is mine
    pid = os.fork()
    if pid == 0:
        os._exit(0 if connection_of_this_thread() is not mine else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert buy(ticket) == read_ticket(ticket).order_no
