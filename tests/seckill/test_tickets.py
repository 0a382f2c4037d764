"""The ticket itself: what was signed here is read back, what was changed in any place is not."""

import string

import pytest
from django.core.signing import Signer
from pytest_django import Settings

from seckill.errors import TicketInvalid
from seckill.gate.keys import BucketRef
from seckill.models import Ticket
from seckill.tickets import TICKET_LENGTH_MAX, bucket_for, read_ticket
from tests.support.shop import Shop, make_buyers, open_sale, ticket_of

CHARACTERS = string.ascii_letters + string.digits + "-_:.= "


def one_ticket(shop: Shop) -> str:
    return ticket_of(shop, *make_buyers(1))


def is_read(text: str) -> bool:
    try:
        read_ticket(text)
    except TicketInvalid:
        return False
    return True


def test_what_was_signed_is_read_back() -> None:
    shop = open_sale()
    ticket = one_ticket(shop)
    row = Ticket.objects.get()
    claims = read_ticket(ticket)
    assert (claims.order_no, claims.item_id, claims.buyer_id) == (row.order_no, row.item_id, row.buyer_id)
    assert (claims.limit_key, claims.price) == (row.limit_key, "1499.00")


def test_a_ticket_changed_in_any_single_character_is_refused() -> None:
    """At every place, by every character that may stand in a ticket."""
    ticket = one_ticket(open_sale())
    changed = [
        ticket[:place] + other + ticket[place + 1 :]
        for place, character in enumerate(ticket)
        for other in CHARACTERS
        if other != character
    ]
    assert len(changed) >= len(ticket) * (len(CHARACTERS) - 1)
    assert [text for text in changed if is_read(text)] == []
    assert is_read(ticket)


def test_a_ticket_cut_or_lengthened_is_refused() -> None:
    ticket = one_ticket(open_sale())
    cut = [ticket[:place] + ticket[place + 1 :] for place in range(len(ticket))]
    shorter = [ticket[:length] for length in range(len(ticket))]
    longer = [ticket + "x", "x" + ticket, ticket + "\n", " " + ticket, ticket * 2, ticket + "x" * TICKET_LENGTH_MAX]
    assert [text for text in cut + shorter + longer if is_read(text)] == []


def test_the_halves_of_two_tickets_make_none() -> None:
    shop = open_sale()
    first, second = one_ticket(shop), one_ticket(shop)
    body, _, signature = first.rpartition(":")
    other_body, _, other_signature = second.rpartition(":")
    assert not is_read(f"{body}:{other_signature}")
    assert not is_read(f"{other_body}:{signature}")


def test_what_the_shop_signs_for_other_ends_is_no_ticket() -> None:
    """A signature is for one purpose; nor is everything a ticket that is signed for it."""
    body = ["1-0-aaaaaaaaaaaaaaaa", 1, 1, "1", "1.00", 2**42]
    assert is_read(Signer(salt="seckill.ticket").sign_object(body))
    for text in (
        Signer().sign_object(body),
        Signer(salt="django.core.signing").sign_object(body),
        Signer(key="k" * 50, salt="seckill.ticket").sign_object(body),
        Signer(salt="seckill.ticket").sign_object(body[:-1]),
        Signer(salt="seckill.ticket").sign_object([*body, "x"]),
        Signer(salt="seckill.ticket").sign("no JSON"),
    ):
        assert not is_read(text), text


def test_a_new_secret_leaves_the_old_tickets_good_while_the_old_one_is_kept(settings: Settings) -> None:
    ticket = one_ticket(open_sale())
    old = settings.SECRET_KEY
    settings.SECRET_KEY = "n" * 64
    assert not is_read(ticket)
    settings.SECRET_KEY_FALLBACKS = [old]
    assert is_read(ticket)


@pytest.mark.parametrize("buckets", [0, 1, 4])
def test_a_limit_key_has_one_bucket(buckets: int) -> None:
    """Law 2: the limit is exact only if all purchases of a key meet in one place, today and tomorrow."""
    numbers = [bucket_for(pool_id=7, key=str(buyer), buckets=buckets).number for buyer in range(100)]
    assert set(numbers) == set(range(max(1, buckets)))
    assert bucket_for(pool_id=7, key="1", buckets=4) == BucketRef(pool_id=7, number=3)
