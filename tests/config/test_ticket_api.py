"""Tickets over HTTP: who gets one, for what, and what somebody gets who has bought already."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import AbstractBaseUser
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from seckill.conf import LIMITS
from seckill.eligibility import Denied, _rules
from seckill.errors import TicketDenied
from seckill.models import FlashSale, SaleItem, Ticket
from seckill.settlement import settle_bucket
from seckill.tickets import Wish, read_ticket, ticket_for
from tests.support.api import Answer, ask_ticket, post_purchase, read, refusal, session_of
from tests.support.shop import Shop, make_buyers, make_sale, open_sale
from tests.support.threads import run_together

OPENS_TO_MEMBERS = datetime(2026, 6, 18, 12, 0, tzinfo=UTC)
CSRF_TOKEN = "t" * 32


def members_first(_buyer: AbstractBaseUser, _item: SaleItem, _now: datetime) -> Denied | None:
    """A rule as a shop may have one: nobody in these tests is a member."""
    return Denied(reason="members_first", until=OPENS_TO_MEMBERS)


def browser() -> Client:
    return session_of(make_buyers(1)[0])


def buy_with(answer: Answer, quantity: int = 1) -> None:
    assert post_purchase(ticket=answer.body["ticket"], quantity=quantity).status == 202


def settle(shop: Shop) -> None:
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


def test_nobody_in_particular_gets_no_ticket() -> None:
    shop = open_sale()
    assert refusal(ask_ticket(Client(), shop.item.pk)) == (401, "not_authenticated")
    assert not Ticket.objects.exists()


def test_a_session_alone_is_not_enough() -> None:
    """CASES 40e: another site can make the browser send its session, but not the token."""
    shop = open_sale()
    client = session_of(make_buyers(1)[0], enforce_csrf_checks=True)
    assert refusal(ask_ticket(client, shop.item.pk)) == (403, "forbidden")
    client.cookies["csrftoken"] = CSRF_TOKEN
    assert refusal(ask_ticket(client, shop.item.pk)) == (403, "forbidden")
    assert refusal(ask_ticket(client, shop.item.pk, csrf_token="u" * 32)) == (403, "forbidden")
    assert not Ticket.objects.exists()
    assert ask_ticket(client, shop.item.pk, csrf_token=CSRF_TOKEN).status == 201


def test_a_new_ticket_and_the_same_again() -> None:
    shop = open_sale()
    (buyer,) = make_buyers(1)
    first = ask_ticket(session_of(buyer), shop.item.pk)
    again = ask_ticket(session_of(buyer), shop.item.pk)
    another = ask_ticket(session_of(buyer), shop.item.pk, {"another": True})
    assert (first.status, again.status, another.status) == (201, 200, 200)
    assert first.body.keys() == again.body.keys() == {"ticket", "order_no", "expires_at", "server_time"}
    for name in ("ticket", "order_no", "expires_at"):
        assert first.body[name] == again.body[name] == another.body[name]
    row = Ticket.objects.get()
    assert (row.order_no, row.item_id, row.buyer_id) == (first.body["order_no"], shop.item.pk, buyer.pk)


def test_ten_clicks_at_once_are_one_ticket() -> None:
    """CASES 39: nobody ends up with two numbers because his finger was quick."""
    shop = open_sale()
    (buyer,) = make_buyers(1)
    clients = [session_of(buyer) for _ in range(10)]
    answers = run_together(lambda client: ask_ticket(client, shop.item.pk), clients)
    assert Counter(answer.status for answer in answers) == {201: 1, 200: 9}
    assert {answer.body["order_no"] for answer in answers} == {Ticket.objects.get().order_no}


def test_a_ticket_says_what_it_is_for_and_lives_ten_minutes_longer_than_the_sale() -> None:
    shop = open_sale(closes_in=timedelta(hours=1))
    (buyer,) = make_buyers(1)
    before = timezone.now()
    answer = ask_ticket(session_of(buyer), shop.item.pk)
    claims = read_ticket(answer.body["ticket"])
    assert (claims.order_no, claims.item_id, claims.buyer_id) == (answer.body["order_no"], shop.item.pk, buyer.pk)
    assert (claims.limit_key, claims.price) == (str(buyer.pk), "1499.00")
    ends_at = FlashSale.objects.get().closes_at + timedelta(seconds=600)
    assert datetime.fromisoformat(answer.body["expires_at"]) == ends_at
    assert claims.expires_ms == int(ends_at.timestamp() * 1000)
    assert before <= datetime.fromisoformat(answer.body["server_time"]) <= timezone.now()
    assert LIMITS.ticket_grace_seconds == 600


def test_two_buyers_get_two_numbers() -> None:
    shop = open_sale()
    first, second = ask_ticket(browser(), shop.item.pk), ask_ticket(browser(), shop.item.pk)
    assert (first.status, second.status) == (201, 201)
    assert first.body["order_no"] != second.body["order_no"]


def test_a_changed_window_signs_the_same_number_anew() -> None:
    shop = open_sale()
    client = browser()
    first = ask_ticket(client, shop.item.pk)
    FlashSale.objects.update(closes_at=timezone.now() + timedelta(hours=2))
    again = ask_ticket(client, shop.item.pk)
    assert (again.status, again.body["order_no"]) == (200, first.body["order_no"])
    assert read_ticket(again.body["ticket"]).expires_ms > read_ticket(first.body["ticket"]).expires_ms


@pytest.mark.parametrize("item_id", [0, 10**9, 10**19, 10**40])
def test_an_item_that_is_not_there(item_id: int) -> None:
    assert refusal(ask_ticket(browser(), item_id)) == (404, "not_found")


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("DRAFT", (404, "not_found")),
        ("SCHEDULED", (409, "not_preheated")),
        ("ARCHIVING", (410, "ended")),
        ("ARCHIVED", (410, "ended")),
    ],
)
def test_a_sale_that_gives_no_tickets_yet_or_any_more(state: str, told: tuple[int, str]) -> None:
    shop = make_sale()
    FlashSale.objects.update(state=state)
    assert refusal(ask_ticket(browser(), shop.item.pk)) == told
    assert not Ticket.objects.exists()


def test_a_ticket_can_be_had_before_the_opening() -> None:
    shop = open_sale(opens_in=timedelta(hours=1), closes_in=timedelta(hours=2))
    assert ask_ticket(browser(), shop.item.pk).status == 201


def end(shop: Shop) -> None:
    """Let the sale's window be over."""
    past = timezone.now() - timedelta(minutes=1)
    FlashSale.objects.filter(pk=shop.sale.pk).update(opens_at=past - timedelta(hours=1), closes_at=past)


def test_after_the_end_there_are_no_tickets() -> None:
    shop = open_sale()
    end(shop)
    assert refusal(ask_ticket(browser(), shop.item.pk)) == (410, "ended")
    assert not Ticket.objects.exists()


def test_who_bought_is_shown_his_order_after_the_end_too() -> None:
    """Law 6: who holds a reservation is never told "ended" by asking again."""
    shop = open_sale()
    client = browser()
    first = ask_ticket(client, shop.item.pk)
    buy_with(first)
    settle(shop)
    end(shop)
    answer = ask_ticket(client, shop.item.pk)
    assert (answer.status, answer.body.get("order_no"), answer.body.get("state")) == (
        200,
        first.body["order_no"],
        "confirmed",
    )


def test_an_account_that_is_switched_off() -> None:
    """Its session counts for nothing any more, and the rule says no to it by whatever way it comes."""
    shop = open_sale()
    (buyer,) = make_buyers(1)
    client = session_of(buyer)
    buyer.is_active = False
    buyer.save()
    assert refusal(ask_ticket(client, shop.item.pk)) == (401, "not_authenticated")
    with pytest.raises(TicketDenied) as caught:
        ticket_for(buyer=buyer, item_id=shop.item.pk, wish=Wish.FIRST, now=timezone.now())
    assert (caught.value.reason, caught.value.until) == ("account_inactive", None)
    assert not Ticket.objects.exists()


def test_a_rule_of_the_shop_denies_with_its_reason(settings: Settings) -> None:
    shop = open_sale()
    rules = ["seckill.eligibility.active_account", f"{__name__}.members_first"]
    settings.SECKILL = {**settings.SECKILL, "eligibility": rules}
    _rules.cache_clear()
    try:
        answer = ask_ticket(browser(), shop.item.pk)
    finally:
        _rules.cache_clear()
    assert refusal(answer) == (403, "ticket_denied")
    assert (answer.body["reason"], answer.body["until"]) == ("members_first", "2026-06-18T12:00:00+00:00")
    assert not Ticket.objects.exists()


def test_bodies_that_are_no_wish() -> None:
    shop = open_sale()
    client = browser()
    path = f"/api/v1/items/{shop.item.pk}/ticket/"
    for body in ('{"another": "perhaps"}', '{"another": null}', '{"another": []}', "[]", '{"another": true,}'):
        answer = read(client.post(path, data=body, content_type="application/json"))
        assert refusal(answer) == (400, "bad_request"), body
    form = read(client.post(path, data={"another": "true"}))
    assert refusal(form) == (415, "unsupported_media_type")
    assert not Ticket.objects.exists()
    assert read(client.post(path, data="", content_type="application/json")).status == 201
