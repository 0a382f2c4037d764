"""CASES 38: strange quantities and bodies are a 4xx with a stable code, never a 500, and change nothing."""

import json

import pytest
from django.test import Client

from tests.support.api import PURCHASES, post_purchase, post_raw, read, refusal
from tests.support.shop import make_tickets, open_sale
from tests.support.state import dump

pytestmark = pytest.mark.usefixtures("door")

BAD_REQUEST = (400, "bad_request")
TOO_LARGE = (413, "too_large")
UNSUPPORTED = (415, "unsupported_media_type")

# Each as it stands in the JSON text.
QUANTITIES = [
    "-1",
    "0",
    "-0",
    "1.0",
    "1.5",
    '"1"',
    '"１"',
    '"٣"',
    '" 2 "',
    '"1_0"',
    '"+1"',
    '""',
    "true",
    "false",
    "null",
    "[]",
    "[1]",
    "{}",
    "1e0",
    "1e400",
    "-1e400",
    "NaN",
    "Infinity",
    "-Infinity",
    "01",
    "+1",
    "1_0",
    "0x1",
    "1001",
    "9007199254740993",
    "99999999999999999999",
    "9" * 3_000,
]

OTHER_TYPES = [
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain",
    "application/jsonp",
    "application/xml",
    "junk",
]

# What stands where the ticket does in the bodies below.
T = "TICKET"

BODIES = {
    "a name twice": f'{{"ticket": "{T}", "quantity": 1, "quantity": 5}}',
    "a ticket twice": f'{{"ticket": "{T}", "quantity": 1, "ticket": "{T}"}}',
    "a name twice, deeper": f'{{"ticket": "{T}", "quantity": 1, "note": {{"a": 1, "a": 2}}}}',
    "an empty list": "[]",
    "a string": '"x"',
    "a number": "1",
    "null": "null",
    "nothing": "",
    "only a space": " ",
    "an empty object": "{}",
    "3,000 brackets": "[" * 3_000,
    "not closed": f'{{"ticket": "{T}", "quantity": 1',
    "two objects": f'{{"ticket": "{T}", "quantity": 1}}{{}}',
    "a comment": f'{{"ticket": "{T}", "quantity": 1 /* one */}}',
    "single quotes": f"{{'ticket': '{T}', 'quantity': 1}}",
    "no quantity": f'{{"ticket": "{T}"}}',
    "no ticket": '{"quantity": 1}',
    "names in capitals": f'{{"Ticket": "{T}", "Quantity": 1}}',
    "ticket of null": '{"ticket": null, "quantity": 1}',
    "ticket of true": '{"ticket": true, "quantity": 1}',
    "ticket of an integer": '{"ticket": 1, "quantity": 1}',
    "ticket of a fraction": '{"ticket": 1.5, "quantity": 1}',
    "ticket in a list": f'{{"ticket": ["{T}"], "quantity": 1}}',
    "ticket in an object": f'{{"ticket": {{"ticket": "{T}"}}, "quantity": 1}}',
    "empty ticket": '{"ticket": "", "quantity": 1}',
    "ticket with a NUL": f'{{"ticket": "{T}\\u0000", "quantity": 1}}',
    "ticket with half a character": f'{{"ticket": "{T}\\ud83c", "quantity": 1}}',
    "ticket of 601 characters": f'{{"ticket": "{"x" * 601}", "quantity": 1}}',
}


def test_a_quantity_that_is_no_whole_number_in_range() -> None:
    shop = open_sale(limit=9)
    (ticket,) = make_tickets(shop, 1)
    before = dump(shop.bucket)
    answers = {text: post_raw(f'{{"ticket": "{ticket}", "quantity": {text}}}') for text in QUANTITIES}
    assert {text: refusal(answer) for text, answer in answers.items()} == dict.fromkeys(QUANTITIES, BAD_REQUEST)
    assert dump(shop.bucket) == before


def test_a_body_that_is_no_purchase() -> None:
    shop = open_sale(limit=9)
    (ticket,) = make_tickets(shop, 1)
    before = dump(shop.bucket)
    answers = {name: post_raw(text.replace(T, ticket)) for name, text in BODIES.items()}
    assert {name: refusal(answer) for name, answer in answers.items()} == dict.fromkeys(BODIES, BAD_REQUEST)
    assert dump(shop.bucket) == before


def test_bytes_that_are_no_utf_8_json() -> None:
    shop = open_sale()
    (ticket,) = make_tickets(shop, 1)
    good = json.dumps({"ticket": ticket, "quantity": 1})
    before = dump(shop.bucket)
    for raw in (
        b"\xef\xbb\xbf" + good.encode(),
        good.encode("utf-16"),
        good.encode("utf-16-le"),
        good.encode() + b"\x00",
        good.replace("1}", '1, "note": "\xff"}').encode("latin-1"),
        b"\xc0\xaf" + good.encode(),
    ):
        assert refusal(post_raw(raw)) == BAD_REQUEST, raw
    assert dump(shop.bucket) == before


def test_a_body_longer_than_any_purchase() -> None:
    """100,000 brackets, 5,000 digits or an endless ticket are not even read to the end."""
    shop = open_sale()
    (ticket,) = make_tickets(shop, 1)
    before = dump(shop.bucket)
    good = json.dumps({"ticket": ticket, "quantity": 1})
    for text in (
        "[" * 100_000,
        f'{{"ticket": "{ticket}", "quantity": {"9" * 5_000}}}',
        f'{{"ticket": "{"x" * 60_000}", "quantity": 1}}',
        good + " " * (4_097 - len(good)),
    ):
        assert refusal(post_raw(text)) == TOO_LARGE
    assert dump(shop.bucket) == before
    assert post_raw(good + " " * (4_096 - len(good))).status == 202


def test_another_type_of_body() -> None:
    """CASES 40e: what a cross-site form can send is not even looked at."""
    shop = open_sale()
    body = json.dumps({"ticket": make_tickets(shop, 1)[0], "quantity": 1})
    before = dump(shop.bucket)
    answers = {kind: post_raw(body, content_type=kind) for kind in OTHER_TYPES}
    assert {kind: refusal(answer) for kind, answer in answers.items()} == dict.fromkeys(OTHER_TYPES, UNSUPPORTED)
    assert dump(shop.bucket) == before


def test_forms() -> None:
    shop = open_sale()
    (ticket,) = make_tickets(shop, 1)
    before = dump(shop.bucket)
    form = {"ticket": ticket, "quantity": "1"}
    assert refusal(read(Client().post(PURCHASES, data=form))) == UNSUPPORTED
    assert refusal(read(Client().post(PURCHASES, query_params=form))) == UNSUPPORTED
    assert refusal(read(Client().generic("POST", PURCHASES))) == BAD_REQUEST
    assert dump(shop.bucket) == before


def test_a_quantity_up_to_the_largest_gets_to_the_gate() -> None:
    """The control of the above: the same bodies with a good quantity are purchases."""
    shop = open_sale(units=1_000, limit=1_000)
    first, second = make_tickets(shop, 2)
    assert refusal(post_purchase(ticket=first, quantity=1_000 + 1)) == BAD_REQUEST
    assert post_raw(f' {{"quantity":1000 ,"ticket":"{first}"}}\n').status == 202
    assert refusal(post_purchase(ticket=second, quantity=1)) == (409, "sold_out")
