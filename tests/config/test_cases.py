"""Bodies and callers of CASES 38, 39 and 40 that belong to no single call, each with its exact answer."""

from collections import Counter
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from orders.models import Order
from seckill.errors import TicketInvalid
from seckill.gate import gate
from seckill.gate.connection import raw_client
from seckill.models import Ticket
from seckill.order_numbers import new_order_number
from seckill.pausing import pause_item, resume_item
from seckill.settlement import settle_bucket
from seckill.tickets import read_ticket
from tests.config.test_routes import addresses
from tests.support.api import PURCHASES, Answer, poll, post_purchase, read, refusal, session_of
from tests.support.shop import Shop, make_buyers, make_ticket, open_sale, ticket_of
from tests.support.state import dump, numbers
from tests.support.threads import run_together

JSON = "application/json"
BROKEN = {
    "a list": (b"[]", (400, "bad_request")),
    "a string": (b'"x"', (400, "bad_request")),
    "a name twice": (b'{"reason": "because", "reason": "so"}', (400, "bad_request")),
    "3,000 brackets": (b"[" * 3_000, (400, "bad_request")),
    "100,000 brackets": (b"[" * 100_000, (413, "too_large")),
    "a byte order mark": (b"\xef\xbb\xbf{}", (400, "bad_request")),
    "bad UTF-8": (b'{"reason": "\xff\xfe\xfd"}', (400, "bad_request")),
    "NaN": (b'{"reason": NaN}', (400, "bad_request")),
    "1e400": (b'{"quantity": 1e400, "ticket": "x", "delta": 1e400, "item": 1e400}', None),
}


def settle(shop: Shop) -> None:
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


@pytest.mark.parametrize("name", BROKEN)
def test_case_38_broken_bodies_break_no_call(name: str) -> None:
    """Whatever call they are sent to, by somebody who may make it: never a 5xx, and nothing changed."""
    shop = open_sale()
    client = session_of(User.objects.create_superuser("tester"))
    body, told = BROKEN[name]
    before = dump(shop.bucket)
    codes = Counter[tuple[int, str]]()
    for address in addresses():
        if "/operators/sales/" in address or "/operators/pools/" in address or "/items/1/" in address:
            continue  # These read no body.
        response = client.post(address, data=body, content_type=JSON)
        assert response.status_code < 500, address
        if response.status_code >= 400:
            codes[refusal(read(response))] += 1
    assert codes[told or (400, "bad_request")] >= 1
    assert dump(shop.bucket) == before


def test_case_38_the_script_checks_the_quantity_too() -> None:
    """The API's check is not the only one: minus five must not add stock, zero must not mark a buyer."""
    shop = open_sale(units=10, limit=9)
    (buyer,) = make_buyers(1)
    for quantity in (-5, 0, 10**15):
        claims = read_ticket(ticket_of(shop, buyer))
        reply = gate.reserve(
            bucket=shop.bucket,
            order_no=claims.order_no,
            item_id=claims.item_id,
            buyer_id=claims.buyer_id,
            limit_key=claims.limit_key,
            quantity=quantity,
            price=claims.price,
            ticket_expires_ms=claims.expires_ms,
        )
        assert reply.code.name in {"BAD_QUANTITY", "LIMIT_REACHED"}, quantity
    assert numbers(shop).left == {shop.item.pk: 10}
    assert raw_client().hget(shop.bucket.keys[2], str(buyer.pk)) is None


def test_case_39_one_ticket_ten_times_at_once_is_one_order() -> None:
    shop = open_sale(units=5, limit=5)
    ticket = make_ticket(shop)
    answers = run_together(lambda _: post_purchase(ticket=ticket), range(10))
    assert {answer.status for answer in answers} == {202}
    assert {answer.body["order_no"] for answer in answers} == {read_ticket(ticket).order_no}
    settle(shop)
    assert Order.objects.count() == 1
    assert numbers(shop).left == {shop.item.pk: 4}


def test_case_39_a_ticket_for_another_item_is_not_to_be_had_by_changing_it() -> None:
    """Same key, other SKU: the item is part of what is signed."""
    shop = open_sale(items=2)
    ticket = make_ticket(shop)
    head, _, signature = ticket.rpartition(":")
    other = ticket_of(shop, make_buyers(1)[0], item=shop.items[1]).rpartition(":")[0]
    before = dump(shop.bucket)
    for forged in (f"{other}:{signature}", f"{head[:-1]}:{signature}", f"{ticket[:-1]}", f"{ticket}="):
        assert refusal(post_purchase(ticket=forged)) == (403, "ticket_invalid"), forged
    assert dump(shop.bucket) == before


def test_case_39_every_byte_of_a_ticket_counts() -> None:
    shop = open_sale()
    ticket = make_ticket(shop)
    for place in range(len(ticket)):
        changed = f"{ticket[:place]}{'A' if ticket[place] != 'A' else 'B'}{ticket[place + 1 :]}"
        with pytest.raises(TicketInvalid):
            read_ticket(changed)


def restock(shop: Shop) -> None:
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", 1)


def sell_out(shop: Shop) -> None:
    post_purchase(ticket=make_ticket(shop))


def freeze(shop: Shop) -> None:
    raw_client().hset(shop.bucket.keys[1], "frozen", "token")


def thaw(shop: Shop) -> None:
    raw_client().hdel(shop.bucket.keys[1], "frozen")


def pause(shop: Shop) -> None:
    pause_item(item_id=shop.item.pk)


def resume(shop: Shop) -> None:
    resume_item(item_id=shop.item.pk)


@pytest.mark.parametrize(
    ("stop", "start", "told"),
    [
        (sell_out, restock, (409, "sold_out")),
        (freeze, thaw, (503, "unavailable")),
        (
            lambda shop: pause_item(item_id=shop.item.pk),
            lambda shop: resume_item(item_id=shop.item.pk),
            (409, "paused"),
        ),
    ],
)
def test_case_39_a_refusal_is_not_the_ticket_s_last_word(
    stop: Callable[[Shop], None], start: Callable[[Shop], None], told: tuple[int, str]
) -> None:
    """Sold out, then restocked; an outage, then back: the same ticket is tried again and counts once."""
    shop = open_sale(units=1)
    ticket = make_ticket(shop)
    stop(shop)
    assert refusal(post_purchase(ticket=ticket)) == told
    start(shop)
    first, second = post_purchase(ticket=ticket), post_purchase(ticket=ticket)
    assert (first.status, first) == (202, second)


def neighbours(number: str) -> list[str]:
    """Order numbers beside one: by the pool, by the bucket, by its last letters."""
    pool, bucket, name = number.split("-")
    last, before = ("a" if letter != "a" else "b" for letter in (name[-1], name[-2]))
    return [
        f"{int(pool) + 1}-{bucket}-{name}",
        f"{pool}-{int(bucket) + 1}-{name}",
        f"{pool}-{bucket}-{name[:-1]}{last}",
        f"{pool}-{bucket}-{name[:-2]}{before}{name[-1]}",
    ]


def test_case_40c_order_numbers_lead_to_nobody_else() -> None:
    """Another person's, and those beside one's own: one answer for all, and none can be counted up."""
    shop = open_sale(units=5)
    owner, other = make_buyers(2)
    ticket = ticket_of(shop, owner)
    number = read_ticket(ticket).order_no
    post_purchase(ticket=ticket)
    settle(shop)
    answers = [poll(one, client=session_of(other)) for one in [number, *neighbours(number)]]
    answers += [poll(one, client=session_of(owner)) for one in neighbours(number)]
    assert {refusal(answer) for answer in answers} == {(404, "not_found")}
    assert len({str(answer.body) for answer in answers}) == 1
    assert poll(number, client=session_of(owner)).status == 200
    names = [order_no.split("-")[2] for order_no in Ticket.objects.values_list("order_no", flat=True)]
    names += [new_order_number(shop.bucket).split("-")[2] for _ in range(1_000)]
    assert len({name[:8] for name in names}) == len(names)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_case_40e_what_another_site_can_make_a_browser_send(kind: str) -> None:
    """A form with the visitor's session: refused for want of the token, and for its type where no session counts."""
    shop = open_sale()
    victim = session_of(make_buyers(1)[0], enforce_csrf_checks=True)
    body = f'{{"ticket": "{make_ticket(shop)}", "quantity": 1}}'

    def send(path: str) -> Answer:
        return read(victim.generic("POST", path, body, content_type=kind))

    before = dump(shop.bucket)
    assert refusal(send(f"/api/v1/items/{shop.item.pk}/ticket/")) == (403, "forbidden")
    assert refusal(send(PURCHASES)) == (415, "unsupported_media_type")
    assert dump(shop.bucket) == before
    assert Ticket.objects.count() == 1


def test_case_40e_nobody_logs_in_without_the_token() -> None:
    """Else another site could log a visitor in under an account of its own."""
    User.objects.create_superuser("boss", password="correct horse")
    client = Client(enforce_csrf_checks=True)
    response = client.post("/admin/login/", {"username": "boss", "password": "correct horse"})
    assert response.status_code == 403
    assert "sessionid" not in client.cookies
