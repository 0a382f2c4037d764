"""Explaining: the whole life of a purchase in words, by any name it has, and nothing of anybody else's."""

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone, translation
from pytest_django import DjangoAssertNumQueries

from orders.models import Order
from orders.services import cancel_order
from orders.services.refunding import RefundRequest, request_refund
from orders.states import RefundedUnitsTo, RefundReason
from seckill.errors import UnknownOrder
from seckill.explaining import Clock, Story, explain
from seckill.gate.connection import raw_client
from seckill.models import DeadLetter, FlashSale, Incident, Ticket
from seckill.order_numbers import new_order_number
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from tests.support.api import session_of
from tests.support.payments import PRICE, paid_order, unwelcome_payment
from tests.support.shop import Shop, buy, make_buyers, make_ticket, open_sale, ticket_of


def settle(shop: Shop) -> None:
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


def told(query: object) -> list[str]:
    """The words of the one story there is."""
    (story,) = explain(str(query))
    return [line.words for line in story.lines]


def one(query: object) -> Story:
    (story,) = explain(str(query))
    return story


def test_from_the_ticket_to_the_unit_that_came_back() -> None:
    shop = open_sale(limit=3)
    order_no = buy(make_ticket(shop), 2)
    queued = one(order_no)
    assert [line.clock for line in queued.lines] == [Clock.WEB, Clock.REDIS]
    assert "Redis accepted the purchase of 2" in queued.lines[1].words
    accepted_at = queued.lines[1].at
    assert accepted_at is not None
    assert abs(accepted_at - timezone.now()) < timedelta(seconds=30)
    assert queued.now == "Redis has accepted it; the order follows within seconds."
    settle(shop)
    order = Order.objects.get(number=order_no)
    cancel_order(number=order_no, buyer_id=order.buyer_id, now=timezone.now())
    return_closed_orders(clock=timezone.now)
    story = one(order_no)
    words = "\n".join(line.words for line in story.lines)
    assert words.index("right to try once") < words.index("was confirmed") < words.index("was written, to be paid by")
    assert words.index("to be paid by") < words.index("from “waiting for payment” to “cancelled”")
    assert "Ledger: +2 on" in words
    assert "can be bought again" in words
    assert (story.buyer_id, story.now) == (order.buyer_id, "It is settled: MySQL has the last word, as above.")
    times = [int(line.at.timestamp() * 1000) for line in story.lines if line.at]
    assert times == sorted(times)
    assert len(times) == len(story.lines)


def test_a_refused_one_and_what_happened_meanwhile() -> None:
    shop = open_sale(units=2)
    (buyer,) = make_buyers(1)
    first, second = ticket_of(shop, buyer), ticket_of(shop, buyer)
    buy(first)
    raw_client().hdel(shop.bucket.keys[2], str(buyer.pk))
    order_no = buy(second)
    settle(shop)
    now = timezone.now()
    for kind, bucket_no, opened_at, resolved_at in (
        ("drift", 0, now - timedelta(hours=1), None),
        ("elsewhere", 1, now - timedelta(hours=1), None),
        ("before", 0, now - timedelta(hours=2), now - timedelta(hours=1)),
    ):
        Incident.objects.create(
            kind=kind,
            severity="WARNING",
            pool=shop.pool,
            bucket_no=bucket_no,
            detail="",
            opened_at=opened_at,
            last_seen_at=opened_at,
            resolved_at=resolved_at,
        )
    words = told(order_no)
    assert any("was refused: " in line for line in words)
    meanwhile = [line for line in words if line.startswith("Meanwhile")]
    assert meanwhile == [
        "Meanwhile the shop had an incident there (Redis and MySQL counted differently), 1 times seen, still open."
    ]


def test_money_by_its_provider_s_names() -> None:
    order, payment = paid_order()
    Order.objects.filter(pk=order.pk).update(number="7-0-aaaaaaaaaaaaaaaa")
    request_refund(
        request=RefundRequest(
            payment_id=payment.pk,
            amount=PRICE,
            reason=RefundReason.WITHDRAWN,
            units_to=RefundedUnitsTo.NOWHERE,
        ),
        now=timezone.now(),
    )
    refund = payment.refunds.get()
    for name in (payment.provider_reference, refund.reference, order.attempts.get().reference):
        words = "\n".join(told(name))
        assert f"told of {payment.amount}" in words
        assert f"{PRICE} is to go back" in words


def test_money_that_pays_nothing_says_what_is_wrong_with_it() -> None:
    payment = unwelcome_payment()
    Order.objects.update(number="7-0-aaaaaaaaaaaaaaaa")
    words = "\n".join(told(payment.provider_reference))
    assert f", {payment.get_problem_display()}; now: refund due" in words


def test_a_dead_letter() -> None:
    shop = open_sale()
    order_no = new_order_number(shop.bucket)
    DeadLetter.objects.create(
        pool=shop.pool,
        bucket_no=0,
        epoch=1,
        stream_id="1-0",
        fields={"order": order_no},
        error="no such item",
        created_at=timezone.now(),
        decision="REFUSE",
        decision_reason="a test",
        decided_at=timezone.now(),
    )
    assert told(order_no) == [
        "The purchase could not be read or written and was put aside: no such item.",
        "Somebody decided about it: refused (a test).",
    ]


def test_a_buyer_by_number_name_and_mail_and_nobody_else() -> None:
    shop = open_sale(limit=2)
    buyer, other = make_buyers(2)
    User.objects.filter(pk=buyer.pk).update(email="ann@example.com")
    mine = [buy(ticket_of(shop, buyer)), buy(ticket_of(shop, buyer))]
    theirs = buy(ticket_of(shop, other))
    for name in (str(buyer.pk), buyer.username, "ann@example.com"):
        stories = explain(f" {name} ")
        assert [story.order_no for story in stories] == mine[::-1]
        assert theirs not in json.dumps([line.words for story in stories for line in story.lines])


def test_a_number_that_nobody_has_used() -> None:
    shop = open_sale()
    assert one(new_order_number(shop.bucket)).now.endswith("there is no trace of it.")
    unused = make_ticket(shop)
    ticket = Ticket.objects.get()
    assert one(ticket.order_no).now.startswith("The ticket was not used")
    assert unused


def test_an_archived_sale_and_a_redis_that_is_gone() -> None:
    shop = open_sale()
    order_no = buy(make_ticket(shop))
    settle(shop)
    raw_client().delete(*shop.bucket.keys)
    assert "was confirmed" in "\n".join(told(order_no))
    FlashSale.objects.update(state="ARCHIVED")
    assert one(order_no).now.startswith("It is settled")


def test_a_damaged_bucket_is_no_proof_of_anything() -> None:
    shop = open_sale()
    ticket = make_ticket(shop)
    raw_client().delete(shop.bucket.keys[3])
    assert "nobody can tell" in one(Ticket.objects.get().order_no).now
    assert ticket


@pytest.mark.parametrize("query", ["", " ", "nobody", "7", "x@example.com", "9" * 40, "7-0-short"])
def test_what_answers_to_nothing(query: str) -> None:
    with pytest.raises(UnknownOrder):
        explain(query)


def test_it_takes_few_questions(django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    shop = open_sale()
    order_no = buy(make_ticket(shop))
    settle(shop)
    with django_assert_max_num_queries(20):
        explain(order_no)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    shop = open_sale()
    order_no = buy(make_ticket(shop))
    settle(shop)
    call_command("explain", order_no)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(order_no)
    assert [line.split()[1] for line in lines[1:4]] == ["web", "worker", "worker"]
    call_command("explain", order_no, "--json")
    (story,) = json.loads(capsys.readouterr().out)
    assert (story["order_no"], len(story["lines"])) == (order_no, 3)
    with pytest.raises(CommandError, match="nothing here answers"):
        call_command("explain", "nobody")


def test_it_speaks_the_reader_s_language() -> None:
    shop = open_sale()
    order_no = buy(make_ticket(shop))
    with translation.override("zh-hans"):
        assert "Redis" in told(order_no)[1]


def test_the_page_for_whoever_has_a_customer_on_the_telephone() -> None:
    shop = open_sale()
    order_no = buy(make_ticket(shop))
    settle(shop)
    staff = User.objects.create_user("agent", is_staff=True)
    client = session_of(staff)
    address = reverse("desk_explain")
    assert client.get(address, {"q": order_no}).status_code == 403
    staff.user_permissions.add(Permission.objects.get(codename="view_order"))
    assert "was confirmed" in client.get(address, {"q": order_no}).content.decode()
    assert "Nothing here answers to" in client.get(address, {"q": "<nobody>"}).content.decode()
    assert "&lt;nobody&gt;" in client.get(address, {"q": "<nobody>"}).content.decode()
    assert client.get(address).status_code == 200
    assert client.post(address).status_code == 405
    assert session_of(*make_buyers(1)).get(address).status_code == 302
