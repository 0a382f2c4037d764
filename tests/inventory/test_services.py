"""Receiving and allocating: the number and its ledger rows change together, once per reference, whoever else writes."""

from collections import Counter
from itertools import count

import pytest
from django.db import transaction
from django.db.models import Sum
from django.db.transaction import TransactionManagementError

from inventory.errors import NoStockRow, NotEnoughOnHand
from inventory.models import Sku, Stock, StockMovement
from inventory.selectors import balance
from inventory.services import WAREHOUSE, Kind, Movement, allocate, put_into_warehouse, receive, record
from tests.support.rows import DUPLICATE, NO_PARENT, NOW, error_code, make_sku
from tests.support.shop import make_buyers
from tests.support.threads import run_together
from tests.support.unsafe_writes import unsafe_allocate, unsafe_receive

ACCOUNT = "item:1:0"

_references = count(1)


def give(sku: Sku, units: int) -> None:
    receive(sku_id=sku.pk, units=units, reference=f"receipt:{next(_references)}", now=NOW)


def take(sku: Sku, units: int, reference: str = "") -> bool:
    """Allocate in a transaction; tell whether the warehouse had enough."""
    try:
        with transaction.atomic():
            name = reference or f"allocate:{next(_references)}"
            allocate(sku_id=sku.pk, units=units, account=ACCOUNT, reference=name, now=NOW)
    except NotEnoughOnHand:
        return False
    return True


def numbers(sku: Sku) -> tuple[int, int]:
    return Stock.objects.values_list("on_hand", "version").get(sku=sku)


def ledger(sku: Sku) -> list[tuple[str, str, int, str]]:
    rows = StockMovement.objects.filter(sku=sku).order_by("pk")
    return list(rows.values_list("account", "kind", "units", "reference"))


def assert_ledger_is_stock(sku: Sku, *, on_hand: int, allocated: int) -> None:
    """The sum of an account's rows is its balance, always."""
    assert numbers(sku)[0] == balance(account=WAREHOUSE, sku_id=sku.pk) == on_hand
    assert balance(account=ACCOUNT, sku_id=sku.pk) == balance(account=ACCOUNT) == allocated


def test_receive_writes_the_number_and_its_row() -> None:
    sku = make_sku()
    (clerk,) = make_buyers(1)
    receive(sku_id=sku.pk, units=7, reference="delivery 1", now=NOW, actor_id=clerk.pk)
    receive(sku_id=sku.pk, units=5, reference="delivery 2", now=NOW)
    assert numbers(sku) == (12, 2)
    assert ledger(sku) == [("warehouse", "RECEIPT", 7, "delivery 1"), ("warehouse", "RECEIPT", 5, "delivery 2")]
    first = StockMovement.objects.get(reference="delivery 1")
    assert (first.actor_id, first.created_at) == (clerk.pk, NOW)


@pytest.mark.parametrize("units", [0, -5])
def test_receive_takes_no_fewer_than_one_unit(units: int) -> None:
    """CASES 38: a negative quantity must not move stock the other way."""
    sku = make_sku()
    with pytest.raises(ValueError, match=f"^{units} units cannot be moved$"):
        give(sku, units)
    assert not Stock.objects.exists()
    assert ledger(sku) == []


def test_a_delivery_told_twice_is_received_once() -> None:
    sku = make_sku()
    receive(sku_id=sku.pk, units=7, reference="delivery 1", now=NOW)
    assert error_code(lambda: receive(sku_id=sku.pk, units=7, reference="delivery 1", now=NOW)) == DUPLICATE
    assert numbers(sku) == (7, 1)
    assert ledger(sku) == [("warehouse", "RECEIPT", 7, "delivery 1")]


def test_receive_of_an_unknown_sku_writes_nothing() -> None:
    assert error_code(lambda: receive(sku_id=10**9, units=1, reference="delivery 1", now=NOW)) == NO_PARENT
    assert not Stock.objects.exists()
    assert not StockMovement.objects.exists()


def test_allocate_moves_units_from_the_warehouse_to_an_account() -> None:
    sku = make_sku()
    receive(sku_id=sku.pk, units=10, reference="delivery 1", now=NOW)
    assert take(sku, 4, reference="allocate:1")
    assert numbers(sku) == (6, 2)
    assert ledger(sku)[1:] == [
        ("warehouse", "ALLOCATION", -4, "allocate:1:out"),
        (ACCOUNT, "ALLOCATION", 4, "allocate:1:in"),
    ]
    assert_ledger_is_stock(sku, on_hand=6, allocated=4)


def test_allocate_gives_all_or_nothing_and_tells_the_numbers() -> None:
    sku = make_sku()
    give(sku, 3)
    with pytest.raises(NotEnoughOnHand) as caught, transaction.atomic():
        allocate(sku_id=sku.pk, units=4, account=ACCOUNT, reference="allocate:1", now=NOW)
    assert (caught.value.sku_id, caught.value.asked, caught.value.on_hand) == (sku.pk, 4, 3)
    assert str(caught.value) == f"SKU {sku.pk}: 4 units asked for, 3 in the warehouse"
    assert numbers(sku) == (3, 1)
    assert_ledger_is_stock(sku, on_hand=3, allocated=0)


def test_allocate_of_what_was_never_received_finds_nothing() -> None:
    sku = make_sku()
    with pytest.raises(NotEnoughOnHand) as caught, transaction.atomic():
        allocate(sku_id=sku.pk, units=1, account=ACCOUNT, reference="allocate:1", now=NOW)
    assert caught.value.on_hand == 0
    assert ledger(sku) == []


def test_an_allocation_repeated_is_refused_and_changes_nothing() -> None:
    sku = make_sku()
    give(sku, 10)
    assert take(sku, 4, reference="allocate:1")
    assert error_code(lambda: take(sku, 4, reference="allocate:1")) == DUPLICATE
    assert numbers(sku) == (6, 2)
    assert_ledger_is_stock(sku, on_hand=6, allocated=4)


@pytest.mark.parametrize("units", [0, -5])
def test_allocate_takes_no_fewer_than_one_unit(units: int) -> None:
    """CASES 38: minus five units allocated would be five more in the warehouse, out of nothing."""
    sku = make_sku()
    give(sku, 10)
    with pytest.raises(ValueError, match=f"^{units} units cannot be moved$"):
        take(sku, units)
    assert numbers(sku) == (10, 1)
    assert_ledger_is_stock(sku, on_hand=10, allocated=0)


def test_the_ledger_is_written_only_inside_a_transaction() -> None:
    sku = make_sku()
    give(sku, 10)
    movement = Movement(sku_id=sku.pk, account=ACCOUNT, kind=Kind.SALE, units=-1, reference="sale:1")
    with pytest.raises(TransactionManagementError, match="only inside a transaction"):
        record(movements=[movement], now=NOW)
    with pytest.raises(TransactionManagementError, match="only inside a transaction"):
        allocate(sku_id=sku.pk, units=4, account=ACCOUNT, reference="allocate:1", now=NOW)
    assert numbers(sku) == (10, 1)
    assert_ledger_is_stock(sku, on_hand=10, allocated=0)


def test_what_fails_after_an_allocation_takes_it_back() -> None:
    """CASES 8: the second of two lines is not there, so the first is not allocated either."""
    sku, other = make_sku(), make_sku()
    give(sku, 10)

    def allocate_both() -> None:
        with transaction.atomic():
            for line in (sku, other):
                allocate(sku_id=line.pk, units=4, account=ACCOUNT, reference=f"allocate:{line.pk}", now=NOW)

    with pytest.raises(NotEnoughOnHand):
        allocate_both()
    assert numbers(sku) == (10, 1)
    assert_ledger_is_stock(sku, on_hand=10, allocated=0)


@pytest.mark.parametrize(("fate", "after"), [("back", (9, 3)), ("written off", (6, 2))])
def test_units_leave_a_sale_into_the_warehouse_or_out_of_the_books(fate: str, after: tuple[int, int]) -> None:
    sku = make_sku()
    give(sku, 10)
    assert take(sku, 4)
    with transaction.atomic():
        put_into_warehouse(
            sku_id=sku.pk,
            units=3,
            account=ACCOUNT,
            is_written_off=fate == "written off",
            reference="left over",
            now=NOW,
        )
    assert numbers(sku) == after
    assert_ledger_is_stock(sku, on_hand=after[0], allocated=1)


def test_a_stock_row_that_is_gone_takes_no_units_in_silence() -> None:
    """An update that meets no row is no success: the ledger would say what no number says (CASES 34)."""
    sku = make_sku()
    give(sku, 10)
    assert take(sku, 4)
    Stock.objects.all().delete()
    before = ledger(sku)
    with pytest.raises(NoStockRow, match=f"SKU {sku.pk} has no stock row"), transaction.atomic():
        put_into_warehouse(sku_id=sku.pk, units=3, account=ACCOUNT, is_written_off=False, reference="x", now=NOW)
    assert ledger(sku) == before


def test_two_clerks_each_receive_ten() -> None:
    """CASES 7: two "+10" at once are +20, and two writes."""
    sku = make_sku()
    give(sku, 100)
    run_together(lambda units: give(sku, units), [10, 10])
    assert numbers(sku) == (120, 3)
    assert_ledger_is_stock(sku, on_hand=120, allocated=0)


def test_control_two_clerks_who_write_back_what_they_read() -> None:
    """The control of the test above: read, add, save loses one of the two."""
    sku = make_sku()
    give(sku, 100)
    unsafe = unsafe_receive(writers=2)
    run_together(lambda units: unsafe(sku.pk, units), [10, 10])
    assert numbers(sku)[0] == 110


def test_twenty_clerks_receive_the_first_units_of_a_sku() -> None:
    """CASES 35: the row that all of them want to make is made once, and nobody is a deadlock's victim."""
    sku = make_sku()
    run_together(lambda units: give(sku, units), [1] * 20)
    assert numbers(sku) == (20, 20)
    assert_ledger_is_stock(sku, on_hand=20, allocated=0)


def test_twenty_sales_want_the_last_ten_units() -> None:
    """CASES 1: exactly what is there is given, the rest is told so, and each write counts."""
    sku = make_sku()
    give(sku, 10)
    given = run_together(lambda units: take(sku, units), [1] * 20)
    assert Counter(given) == {True: 10, False: 10}
    assert numbers(sku) == (0, 11)
    assert_ledger_is_stock(sku, on_hand=0, allocated=10)


def test_control_twenty_sales_that_check_then_write() -> None:
    """The control of the test above: all of them find the ten units they read."""
    sku = make_sku()
    give(sku, 10)
    unsafe = unsafe_allocate(writers=20)
    assert sum(run_together(lambda units: unsafe(sku.pk, units), [1] * 20)) > 10


def test_receipts_and_allocations_at_once_stay_what_the_ledger_says() -> None:
    sku = make_sku()
    give(sku, 40)
    changes = [3, -2, -2] * 8
    run_together(lambda units: give(sku, units) if units > 0 else take(sku, -units), changes)
    assert numbers(sku) == (40 + 24 - 32, 1 + 24)
    assert_ledger_is_stock(sku, on_hand=32, allocated=32)
    assert StockMovement.objects.aggregate(units=Sum("units"))["units"] == 64
