"""Tickets: one open one per buyer and item, and who holds a reservation hears so, whenever he asks."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from seckill.errors import Ended, LimitReached
from seckill.gate.connection import raw_client
from seckill.models import Ticket
from seckill.settlement import settle_bucket
from seckill.tickets import HeldReservation, IssuedTicket, Wish, ticket_for
from tests.support.shop import Shop, buy, make_buyers, open_sale
from tests.support.threads import run_together


def ask(shop: Shop, buyer: User, *, wish: Wish = Wish.FIRST, item: int = 0) -> IssuedTicket | HeldReservation:
    return ticket_for(buyer=buyer, item_id=shop.items[item].pk, wish=wish, now=timezone.now())


def ticket(given: IssuedTicket | HeldReservation) -> str:
    assert isinstance(given, IssuedTicket)
    return given.ticket


def held(given: IssuedTicket | HeldReservation) -> HeldReservation:
    assert isinstance(given, HeldReservation)
    return given


def number(given: IssuedTicket | HeldReservation) -> str:
    assert isinstance(given, IssuedTicket)
    return given.order_no


def test_eight_requests_at_once_are_one_ticket() -> None:
    """A double click before the sale must not become two orders where the limit is two."""
    shop = open_sale(limit=2)
    (buyer,) = make_buyers(1)
    given = run_together(lambda _: ask(shop, buyer), range(8))
    assert len({number(one) for one in given}) == 1
    assert Ticket.objects.count() == 1
    assert len({buy(ticket(one)) for one in given}) == 1


def test_another_asked_for_twice_at_once_is_one_more() -> None:
    shop = open_sale(limit=2)
    (buyer,) = make_buyers(1)
    first = buy(ticket(ask(shop, buyer)))
    given = run_together(lambda _: ask(shop, buyer, wish=Wish.ANOTHER), range(8))
    assert len({number(one) for one in given} - {first}) == 1
    assert Ticket.objects.count() == 2


def test_changing_ones_mind_back_and_forth_makes_no_heap_of_tickets() -> None:
    shop = open_sale(items=2)
    (buyer,) = make_buyers(1)
    numbers = [number(ask(shop, buyer, item=n % 2)) for n in range(10)]
    assert len(set(numbers)) == Ticket.objects.count() == 2


def test_a_holder_is_told_so_after_the_end() -> None:
    shop = open_sale()
    buyer, stranger = make_buyers(2)
    order_no = buy(ticket(ask(shop, buyer)))
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    type(shop.sale).objects.update(closes_at=timezone.now() - timedelta(seconds=1))
    for wish in Wish:
        told = held(ask(shop, buyer, wish=wish))
        assert (told.status.order_no, told.may_buy_more) == (order_no, False)
        assert told.order is not None
    with pytest.raises(Ended):
        ask(shop, stranger)


def test_a_holder_with_an_unused_second_ticket_is_told_so_after_the_end() -> None:
    shop = open_sale(limit=2)
    (buyer,) = make_buyers(1)
    order_no = buy(ticket(ask(shop, buyer)))
    ticket(ask(shop, buyer, wish=Wish.ANOTHER))
    type(shop.sale).objects.update(closes_at=timezone.now() - timedelta(seconds=1))
    assert held(ask(shop, buyer)).status.order_no == order_no


def test_queued_units_count_for_what_may_still_be_bought() -> None:
    shop = open_sale(limit=2)
    (buyer,) = make_buyers(1)
    buy(ticket(ask(shop, buyer)))
    assert held(ask(shop, buyer)).may_buy_more
    buy(ticket(ask(shop, buyer, wish=Wish.ANOTHER)))
    assert not held(ask(shop, buyer)).may_buy_more
    with pytest.raises(LimitReached) as refusal:
        ask(shop, buyer, wish=Wish.ANOTHER)
    assert refusal.value.units_held == 2


def test_without_redis_mysql_says_what_is_held() -> None:
    shop = open_sale(limit=2)
    (buyer,) = make_buyers(1)
    order_no = buy(ticket(ask(shop, buyer)), 2)
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    raw_client().flushall()
    told = held(ask(shop, buyer))
    assert (told.status.order_no, told.may_buy_more) == (order_no, False)
