"""Lists over tables of any size: what is counted, searched, sorted and listed of them."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from inventory.models import Sku, StockMovement
from inventory.services import receive
from orders.models import Order
from rest import large_lists
from rest.large_lists import ReachedPaginator, lookup_of, ordered_columns, protectors
from seckill.models import Reservation
from tests.support.rows import make_order, make_sku
from tests.support.shop import make_buyers


@pytest.fixture
def boss() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    return client


def movements(number: int) -> Sku:
    sku = make_sku()
    for n in range(number):
        receive(sku_id=sku.pk, units=1, reference=f"{sku.pk}:delivery:{n}", now=timezone.now())
    return sku


def ledger(client: Client, **query: str) -> str:
    answer = client.get(reverse("admin:inventory_stockmovement_changelist"), query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_count_stops_where_nobody_looks_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_lists, "ROWS_REACHED_MAX", 3)
    movements(5)
    with CaptureQueriesContext(connection) as queries:
        assert ReachedPaginator(StockMovement.objects.order_by("-units"), 2).num_pages == 2
    assert "LIMIT 3" in queries[0]["sql"]
    assert "ORDER BY" not in queries[0]["sql"]
    assert ReachedPaginator([1, 2, 3, 4], 2).num_pages == 2


def test_a_list_joins_nothing_before_it_is_cut(boss: Client) -> None:
    sku = movements(2)
    with CaptureQueriesContext(connection) as queries:
        assert sku.code in ledger(boss)
    selects = [query["sql"] for query in queries if "FROM `inventory_stockmovement`" in query["sql"]]
    assert selects
    assert not [sql for sql in selects if "JOIN" in sql]


def test_a_search_asks_one_index_after_the_other(boss: Client) -> None:
    """By a column's beginning or its whole; a word in the middle of a reference is not looked for."""
    sku, other = movements(2), movements(1)
    found = {
        word: ledger(boss, q=word).count('class="field-reference')
        for word in (f"{sku.pk}:deliv", sku.code, "warehouse", "delivery", " ")
    }
    assert list(found.values()) == [2, 2, 3, 0, 3]
    with CaptureQueriesContext(connection) as queries:
        ledger(boss, q=other.code)
    assert not [query["sql"] for query in queries if "LIKE '%" in query["sql"]]


def test_only_what_an_index_has_in_order_can_be_sorted_by() -> None:
    """An index of several columns does not have the key behind the first."""
    assert {"number", "units_due_at", "sku"} <= ordered_columns(Order)
    assert not {"quantity", "unit_price", "created_at", "state"} & ordered_columns(Order)
    assert {"order_no", "owed_at"} <= ordered_columns(Reservation)
    assert not {"pool", "limit_key"} & ordered_columns(Reservation)
    page = admin.site._registry[Order]
    assert page.get_sortable_by(RequestFactory().get("/")) == ["number", "buyer", "sku"]


def test_a_sorted_list_is_read_from_its_index(boss: Client) -> None:
    """By the column, then by key in the same direction; by a unique one alone; by no other, whatever is typed."""
    movements(3)
    asked = {}
    for query in ("o=1", "o=-1", "o=5", "o=-5", "o=4"):
        with CaptureQueriesContext(connection) as queries:
            boss.get(f"{reverse('admin:inventory_stockmovement_changelist')}?{query}")
        (asked[query],) = [q["sql"].partition("ORDER BY ")[2] for q in queries if "`reason`" in q["sql"]]
    assert [sql.partition(" LIMIT")[0].replace("`inventory_stockmovement`.", "") for sql in asked.values()] == [
        "`sku_id` ASC, `id` ASC",
        "`sku_id` DESC, `id` DESC",
        "`reference` ASC",
        "`reference` DESC",
        "`id` DESC",
    ]


@pytest.mark.parametrize(
    ("name", "lookup"),
    [("^a", "a__istartswith"), ("=a__b", "a__b__iexact"), ("a__exact", "a__exact"), ("a", "a__istartswith")],
)
def test_marks_of_search_fields(name: str, lookup: str) -> None:
    assert lookup_of(name) == lookup


def test_what_keeps_a_row_is_told_by_number_and_not_listed(boss: Client) -> None:
    order = make_order()
    sku = order.sku
    assert protectors(model=Sku, keys=[sku.pk]) == ["orders: 1"]
    with CaptureQueriesContext(connection) as queries:
        html = boss.get(reverse("admin:inventory_sku_delete", args=[sku.pk])).content.decode()
    assert "orders: 1" in html
    assert order.number not in html
    assert len(queries) < 20
    boss.post(reverse("admin:inventory_sku_delete", args=[sku.pk]), {"post": "yes"})
    assert Sku.objects.filter(pk=sku.pk).exists()


def test_what_nothing_refers_to_can_be_deleted(boss: Client) -> None:
    sku = make_sku()
    boss.post(reverse("admin:inventory_sku_delete", args=[sku.pk]), {"post": "yes", "why": "it is tried"})
    assert not Sku.objects.exists()


def test_an_account_is_found_by_its_beginning_and_never_deleted(boss: Client) -> None:
    first, second = make_buyers(2)
    answer = boss.get(reverse("admin:auth_user_changelist"), {"q": first.username})
    html = answer.content.decode()
    assert first.username in html
    assert f">{second.username}<" not in html
    assert boss.get(reverse("admin:auth_user_delete", args=[first.pk])).status_code == 403
