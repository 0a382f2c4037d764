"""How often somebody may call, and by what he is counted (CASES 40)."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver
from django_redis import get_redis_connection
from pytest_django import Settings

from rest.addresses import NOWHERE, client_address, client_network
from rest.calls import ApiView
from rest.throttles import SecondCounts
from tests.support.api import ask_ticket, poll, post_purchase, refusal, session_of
from tests.support.shop import make_buyers, make_ticket, open_sale, ticket_of


def test_one_account_is_counted_wherever_it_calls_from(settings: Settings) -> None:
    settings.THROTTLES = settings.THROTTLES | {"ticket": "3/minute"}
    shop = open_sale()
    ann, bob = make_buyers(2)
    client = session_of(ann)
    for address in ("192.0.2.1", "192.0.2.2", "192.0.2.3"):
        client.defaults["REMOTE_ADDR"] = address
        assert ask_ticket(client, shop.item.pk).status in {200, 201}
    answer = ask_ticket(client, shop.item.pk)
    assert refusal(answer) == (429, "throttled")
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    other = session_of(bob)
    other.defaults["REMOTE_ADDR"] = "192.0.2.1"
    assert ask_ticket(other, shop.item.pk).status == 201


def test_who_is_sent_away_costs_no_sql_and_no_script(settings: Settings) -> None:
    """CASES 40f: a bot that answers 429 by calling again at once delays nobody."""
    settings.THROTTLES = settings.THROTTLES | {"ticket": "1/minute"}
    shop = open_sale()
    client = session_of(make_buyers(1)[0])
    ask_ticket(client, shop.item.pk)
    with CaptureQueriesContext(connection) as queries, patch("seckill.gate.gate.units_held") as script:
        assert refusal(ask_ticket(client, shop.item.pk)) == (429, "throttled")
    assert (len(queries), script.called) == (0, False)


def test_fifty_purchases_a_second_with_one_ticket() -> None:
    """CASES 40f: the cheap 429 is never a purchase; the others buy as before."""
    shop = open_sale(units=10)
    mine, theirs = make_ticket(shop), make_ticket(shop)
    with patch("rest.throttles.time.monotonic", return_value=1.0):
        answers = [post_purchase(ticket=mine) for _ in range(50)]
        other = post_purchase(ticket=theirs)
    assert [answer.status for answer in answers] == [202] * 20 + [429] * 30
    assert answers[-1].headers["Retry-After"] == "1"
    assert other.status == 202
    assert post_purchase(ticket=mine).body["order_no"] == answers[0].body["order_no"]


def test_fifty_polls_a_second() -> None:
    shop = open_sale()
    ticket = make_ticket(shop)
    order_no = post_purchase(ticket=ticket).body["order_no"]
    with patch("rest.throttles.time.monotonic", return_value=1.0):
        statuses = [poll(order_no, ticket=ticket).status for _ in range(50)]
    assert statuses == [200] * 20 + [429] * 30


def test_a_made_up_header_is_no_new_caller(settings: Settings) -> None:
    settings.THROTTLES = settings.THROTTLES | {"any": "3/minute"}
    shop = open_sale()
    (buyer,) = make_buyers(1)
    client, number = session_of(buyer), post_purchase(ticket=ticket_of(shop, buyer)).body["order_no"]

    def poll_with(header: str) -> int:
        path = f"/api/v1/purchases/{number}/"
        return client.get(path, headers={"Authorization": header}).status_code

    assert [poll_with(f"Basic {call}") for call in range(5)] == [200, 200, 200, 429, 429]
    assert poll_with("Ticket of nobody") == 403


def test_a_second_begins_with_an_empty_table() -> None:
    counts = SecondCounts()
    with patch("rest.throttles.time.monotonic", side_effect=[1.1, 1.9, 2.0]):
        assert [counts.add("x") for _ in range(3)] == [1, 2, 1]


@pytest.mark.parametrize(
    ("proxies", "forwarded", "client"),
    [
        (0, None, "192.0.2.9"),
        (0, "203.0.113.1", "192.0.2.9"),
        (1, "203.0.113.1", "203.0.113.1"),
        (1, "198.51.100.7, 203.0.113.1", "203.0.113.1"),
        (2, "198.51.100.7, 203.0.113.1, 10.0.0.1", "203.0.113.1"),
        (2, "203.0.113.1", "192.0.2.9"),
        (1, "nonsense", str(NOWHERE)),
        (1, "", str(NOWHERE)),
        (1, "::ffff:203.0.113.1", "203.0.113.1"),
    ],
)
def test_the_address_is_the_one_our_proxies_saw(
    settings: Settings, proxies: int, forwarded: str | None, client: str
) -> None:
    """CASES 40a: whatever a client writes into X-Forwarded-For, it is counted as itself."""
    settings.TRUSTED_PROXIES = proxies
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    request = RequestFactory(REMOTE_ADDR="192.0.2.9").get("/", headers=headers)
    assert str(client_address(request)) == client


def test_a_customer_s_network_counts_as_one_client() -> None:
    def network(address: str) -> str:
        return client_network(RequestFactory(REMOTE_ADDR=address).get("/"))

    assert network("2001:db8:1:2::1") == network("2001:db8:1:2:ffff::9") == "2001:db8:1:2::/64"
    assert network("2001:db8:1:3::1") != network("2001:db8:1:2::1")
    assert network("192.0.2.1") == "192.0.2.1"


def test_a_spoofed_header_helps_nobody_and_harms_nobody(settings: Settings) -> None:
    """CASES 40a: 100 calls, each with another X-Forwarded-For, then one of the person whose address it was."""
    settings.TRUSTED_PROXIES = 1
    settings.THROTTLES = settings.THROTTLES | {"public": "3/minute"}

    def call(forwarded: str) -> int:
        return Client().get("/api/v1/time/", headers={"X-Forwarded-For": forwarded}).status_code

    assert [call(f"198.51.100.{n}, 203.0.113.66") for n in range(5)] == [200, 200, 200, 429, 429]
    assert call("198.51.100.1") == 200


def test_a_token_that_does_not_hold_is_counted_by_its_address(settings: Settings) -> None:
    settings.THROTTLES = settings.THROTTLES | {"any": "2/minute"}
    statuses = [Client().get("/api/v1/me/", headers={"Authorization": f"Bearer {n}.x.y"}).status_code for n in range(3)]
    assert statuses == [401, 401, 429]


def test_nobody_gets_in_uncounted(settings: Settings) -> None:
    """CASES 18: a Redis that cannot count is an outage, not a yes."""
    client = get_redis_connection("default")
    client.config_set("maxmemory", 1)
    try:
        response = Client().get("/api/v1/time/")
    finally:
        client.config_set("maxmemory", 0)
    assert (response.status_code, response["Retry-After"]) == (503, "2")


def views(patterns: list[URLPattern | URLResolver]) -> Iterator[object]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from views(pattern.url_patterns)
        else:
            yield getattr(pattern.callback, "cls", None)


def test_every_call_of_the_api_is_counted() -> None:
    api = [pattern for pattern in get_resolver().url_patterns if str(pattern.pattern).startswith("api/v1/")]
    classes = {view for view in views(api) if isinstance(view, type) and "spectacular" not in view.__module__}
    assert len(classes) > 10
    assert {view for view in classes if not issubclass(view, ApiView)} == set()


def test_the_same_name_from_many_addresses_is_counted_by_address(settings: Settings) -> None:
    settings.THROTTLES = settings.THROTTLES | {"login": "1/minute"}
    User.objects.create_user("ann", password="correct horse battery")

    def log_in(address: str) -> int:
        data = {"username": "ann", "password": "correct horse battery"}
        return Client(REMOTE_ADDR=address).post("/accounts/login/", data).status_code

    assert [log_in("192.0.2.1"), log_in("192.0.2.1"), log_in("192.0.2.2")] == [302, 429, 302]


def test_a_new_account_is_no_new_count(settings: Settings) -> None:
    """Who registers is logged in; his next registration counts with the ones before."""
    settings.THROTTLES = settings.THROTTLES | {"register": "2/minute"}
    client = Client()
    data = {"password": "correct horse battery"}
    statuses = [client.post("/accounts/register/", data | {"username": f"robot{n}"}).status_code for n in range(4)]
    assert statuses == [302, 302, 429, 429]
    assert User.objects.count() == 2


def test_the_admin_s_log_in_is_counted_with_the_other_one(settings: Settings) -> None:
    settings.THROTTLES = settings.THROTTLES | {"login": "2/minute"}
    User.objects.create_superuser("boss", password="correct horse battery")
    client = Client()
    assert client.get("/admin/login/").status_code == 200
    statuses = [client.post("/admin/login/", {"username": f"a{n}", "password": "x"}).status_code for n in range(2)]
    assert statuses == [200, 200]
    data = {"username": "boss", "password": "correct horse battery"}
    assert [client.post(f"/{site}/login/", data).status_code for site in ("admin", "accounts")] == [429, 429]
    assert client.get("/admin/").status_code == 302


def test_the_schema_costs_much_and_is_counted(settings: Settings) -> None:
    settings.THROTTLES = settings.THROTTLES | {"schema": "1/minute"}
    assert [Client().get("/api/v1/schema/").status_code for _ in range(2)] == [200, 429]
