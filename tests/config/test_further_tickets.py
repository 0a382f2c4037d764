"""The ticket endpoint after a purchase: what the buyer has, and whether he may have more."""

from django.test import Client
from django.utils import timezone

from seckill.gate.connection import raw_client
from seckill.models import SaleItem, Ticket
from seckill.settlement import settle_bucket
from tests.support.api import Answer, ask_ticket, post_purchase, refusal, session_of
from tests.support.shop import Shop, make_buyers, open_sale

ANOTHER = {"another": True}


def browser() -> Client:
    return session_of(make_buyers(1)[0])


def buy_with(answer: Answer, quantity: int = 1) -> None:
    assert post_purchase(ticket=answer.body["ticket"], quantity=quantity).status == 202


def settle(shop: Shop) -> None:
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


def test_who_has_bought_gets_his_purchase_instead_of_a_ticket() -> None:
    shop = open_sale(limit=1)
    client = browser()
    ticket = ask_ticket(client, shop.item.pk)
    buy_with(ticket)
    queued = ask_ticket(client, shop.item.pk)
    settle(shop)
    confirmed = ask_ticket(client, shop.item.pk)
    number = ticket.body["order_no"]
    assert (queued.status, confirmed.status) == (200, 200)
    assert queued.body == {"order_no": number, "state": "queued", "poll_after_ms": 500, "may_buy_more": False}
    assert confirmed.body.keys() == {"order_no", "state", "order", "may_buy_more"}
    assert (confirmed.body["state"], confirmed.body["may_buy_more"]) == ("confirmed", False)
    assert (confirmed.body["order"]["number"], confirmed.body["order"]["state"]) == (number, "PENDING_PAYMENT")
    assert Ticket.objects.count() == 1


def test_a_limit_of_two_bought_one_by_one() -> None:
    """Law 2: the second ticket has a number of its own; at the limit there is none."""
    shop = open_sale(limit=2)
    client = browser()
    first = ask_ticket(client, shop.item.pk)
    buy_with(first)
    settle(shop)
    assert ask_ticket(client, shop.item.pk).body["may_buy_more"] is True
    second = ask_ticket(client, shop.item.pk, ANOTHER)
    assert second.status == 201
    assert second.body["order_no"] != first.body["order_no"]
    buy_with(second)
    settle(shop)
    held = ask_ticket(client, shop.item.pk)
    assert (held.body["order_no"], held.body["may_buy_more"]) == (second.body["order_no"], False)
    refused = ask_ticket(client, shop.item.pk, ANOTHER)
    assert refusal(refused) == (409, "limit_reached")
    assert refused.body["units_held"] == 2
    assert Ticket.objects.count() == 2


def test_a_limit_of_two_bought_at_once() -> None:
    shop = open_sale(limit=2)
    client = browser()
    buy_with(ask_ticket(client, shop.item.pk), quantity=2)
    assert ask_ticket(client, shop.item.pk).body["may_buy_more"] is False
    assert refusal(ask_ticket(client, shop.item.pk, ANOTHER)) == (409, "limit_reached")


def test_purchases_on_their_way_count_as_held() -> None:
    """Law 6: who has two of two in the queue is not told that he may buy more."""
    shop = open_sale(limit=2)
    client = browser()
    buy_with(ask_ticket(client, shop.item.pk))
    buy_with(ask_ticket(client, shop.item.pk, ANOTHER))
    assert ask_ticket(client, shop.item.pk).body["may_buy_more"] is False
    assert refusal(ask_ticket(client, shop.item.pk, ANOTHER)) == (409, "limit_reached")


def test_a_purchase_half_way_through_settlement_counts_once() -> None:
    """Law 6: between the commit and Redis' knowing of it, one of two is not two of two."""
    shop = open_sale(limit=2)
    client = browser()
    number = ask_ticket(client, shop.item.pk).body["order_no"]
    buy_with(ask_ticket(client, shop.item.pk))
    receipts = shop.bucket.keys[3]
    receipt = raw_client().hget(receipts, number)
    settle(shop)
    raw_client().hset(receipts, number, receipt)
    assert ask_ticket(client, shop.item.pk).body["may_buy_more"] is True
    assert ask_ticket(client, shop.item.pk, ANOTHER).status == 201


def test_a_refused_number_is_dead_and_another_is_given() -> None:
    shop = open_sale(units=1, limit=1)
    client = browser()
    dead = ask_ticket(client, shop.item.pk)
    buy_with(ask_ticket(client, shop.item.pk))
    raw_client().hset(shop.bucket.keys[0], f"{shop.item.pk}:left", 1)
    SaleItem.objects.get(pk=shop.item.pk).buckets.update(sold=1)
    settle(shop)
    new = ask_ticket(client, shop.item.pk)
    assert new.status == 201
    assert new.body["order_no"] != dead.body["order_no"]


def test_items_of_a_pool_share_one_purchase() -> None:
    """One limit for all of them: who has the one is shown it when he asks for the other."""
    shop = open_sale(items=2, limit=1)
    one, other = shop.items
    client = browser()
    first = ask_ticket(client, one.pk)
    buy_with(first)
    answer = ask_ticket(client, other.pk)
    assert (answer.status, answer.body["order_no"], answer.body["may_buy_more"]) == (200, first.body["order_no"], False)
    assert refusal(ask_ticket(client, other.pk, ANOTHER)) == (409, "limit_reached")


def test_an_unused_ticket_is_for_its_own_item_only() -> None:
    shop = open_sale(items=2)
    one, other = shop.items
    client = browser()
    first, second = ask_ticket(client, one.pk), ask_ticket(client, other.pk)
    assert (first.status, second.status) == (201, 201)
    assert first.body["order_no"] != second.body["order_no"]


def test_while_redis_cannot_tell_the_same_ticket_is_given_again() -> None:
    """Law 5: unknown is not failure, so there is no second number that might buy a second unit."""
    shop = open_sale()
    client = browser()
    first = ask_ticket(client, shop.item.pk)
    buy_with(first)
    raw_client().hset(shop.bucket.keys[1], "frozen", "token")
    again = ask_ticket(client, shop.item.pk)
    assert (again.status, again.body["order_no"]) == (200, first.body["order_no"])
    assert Ticket.objects.count() == 1
