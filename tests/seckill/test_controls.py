"""The laws, each with its control: the same story on a shop that lacks one protection, and what is broken then.

Laws 1 and 2 have theirs in ``test_races.py`` and ``test_settlement.py``.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from orders.models import Order
from orders.services import cancel_order
from seckill import reconciliation, settlement
from seckill.errors import GateUnavailable
from seckill.gate import gate
from seckill.gate.connection import raw_client
from seckill.mending import Extent, Treatment, compare_members
from seckill.models import Incident, ItemBucket, Reservation
from seckill.purchase import purchase
from seckill.repair import reconcile_and_repair
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from tests.support import unsafe_laws
from tests.support.shop import Shop, buy, make_buyers, make_ticket, make_tickets, open_sale, ticket_of
from tests.support.state import numbers

PROTECTED, UNSAFE = "protected", "control"


def settle(shop: Shop) -> None:
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


def ahead(seconds: float) -> Callable[[], datetime]:
    return lambda: timezone.now() + timedelta(seconds=seconds)


def is_order(answer: str) -> bool:
    return "-" in answer


def cancel_and_return(order_no: str) -> None:
    buyer_id = Order.objects.get(number=order_no).buyer_id
    cancel_order(number=order_no, buyer_id=buyer_id, now=timezone.now())
    return_closed_orders(clock=timezone.now)


@pytest.mark.parametrize("shop_is", [PROTECTED, UNSAFE])
def test_law_7_reconciling_while_orders_wait(shop_is: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CASES and article 6: what is in flight is no drift. Without the queue it is an alarm, and is sold twice."""
    shop = open_sale(units=3)
    if shop_is == UNSAFE:
        unsafe_laws.count_without_the_queue(monkeypatch)
    tickets = make_tickets(shop, 4)
    assert all(is_order(buy(ticket)) for ticket in tickets[:3])
    with monkeypatch.context() as patch:
        patch.setattr(reconciliation, "settle_bucket", lambda **_: None)  # MySQL's workers are busy elsewhere
        for seconds in (0, 31):
            reconcile_and_repair(bucket=shop.bucket, clock=ahead(seconds))
    alarms = list(Incident.objects.filter(kind="drift").values_list("detail", flat=True))
    answer = buy(tickets[3])
    settle(shop)
    phantoms = Reservation.objects.filter(reason="phantom").count()
    if shop_is == PROTECTED:
        assert (alarms, answer, phantoms) == ([], "SoldOut", 0)
    else:
        assert (alarms, is_order(answer), phantoms) == ([f"item {shop.item.pk}: +3"], True, 1)


@pytest.mark.parametrize("shop_is", [PROTECTED, UNSAFE])
def test_law_3_a_late_writer_after_a_release(shop_is: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker slept with a batch in its hands; meanwhile the entry was refused and its unit was sold again."""
    shop = open_sale(units=2)
    (buyer,) = make_buyers(1)
    first = buy(ticket_of(shop, buyer))
    settle(shop)
    raw_client().hdel(shop.bucket.keys[2], str(buyer.pk))
    second = buy(ticket_of(shop, buyer))
    in_its_hands = list(gate.snapshot(bucket=shop.bucket, entries_max=10).entries)
    if shop_is == UNSAFE:
        unsafe_laws.release_without_tombstone(monkeypatch)
    settle(shop)
    cancel_and_return(first)
    others = [buy(ticket) for ticket in make_tickets(shop, 2)]
    assert all(is_order(answer) for answer in others)
    with monkeypatch.context() as patch:
        patch.setattr(settlement, "_read_queue", lambda **_: in_its_hands)
        settle(shop)
    settle(shop)
    alive = set(Order.objects.filter(closed_at=None).values_list("number", flat=True))
    assert ItemBucket.objects.get().sold == 2
    if shop_is == PROTECTED:
        assert alive == set(others)
    else:  # three were promised two units: the refused one has an order, and one who was accepted has none
        assert alive == {second, others[0]}


@pytest.mark.parametrize("shop_is", [PROTECTED, UNSAFE])
def test_law_4_a_return_job_that_dies_after_its_script(shop_is: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The debt is not crossed off, so it is paid again; the receipt says that it was paid."""
    shop = open_sale(units=3)
    order_no = buy(make_ticket(shop))
    settle(shop)
    if shop_is == UNSAFE:
        unsafe_laws.restock_whatever_the_receipt_says(monkeypatch)
    restock = gate.restock

    def restock_and_die(**arguments: object) -> list[str]:
        restock(**arguments)  # type: ignore[arg-type]
        raise GateUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(gate, "restock", restock_and_die)
        cancel_and_return(order_no)
    return_closed_orders(clock=timezone.now)
    assert numbers(shop).left == {shop.item.pk: 3 if shop_is == PROTECTED else 4}


@pytest.mark.parametrize("shop_is", [PROTECTED, UNSAFE])
def test_law_5_a_reply_that_is_lost(shop_is: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script ran, its answer did not arrive. Whoever gives the unit back then sells it twice."""
    shop = open_sale(units=1)
    ticket, other = make_tickets(shop, 2)
    reserve = gate._reserve

    def reserve_and_lose(*arguments: object) -> None:
        reserve(*arguments)  # type: ignore[arg-type]
        raise GateUnavailable

    if shop_is == UNSAFE:
        unsafe_laws.roll_back_after_a_lost_reply(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(gate, "_reserve", reserve_and_lose)
        with pytest.raises(GateUnavailable):
            purchase(ticket=ticket, quantity=1)
    answer = buy(other)
    settle(shop)
    phantoms = Reservation.objects.filter(reason="phantom").count()
    assert (answer == "SoldOut", phantoms) == ((True, 0) if shop_is == PROTECTED else (False, 1))
    assert is_order(buy(ticket))


@pytest.mark.parametrize("shop_is", [PROTECTED, UNSAFE])
def test_law_6_a_winner_who_asks_again(shop_is: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who holds a reservation is never told "sold out", however long it has been sold out for others."""
    shop = open_sale(units=1)
    if shop_is == UNSAFE:
        unsafe_laws.remember_what_is_sold_out(monkeypatch)
    winner, loser = make_tickets(shop, 2)
    order_no = buy(winner)
    assert buy(loser) == "SoldOut"
    assert buy(winner) == (order_no if shop_is == PROTECTED else "SoldOut")


@pytest.mark.parametrize("shop_is", [PROTECTED, UNSAFE])
def test_law_8_a_restarted_redis_that_nobody_has_checked(shop_is: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It forgot the last sale; without the fence that unit is sold a second time."""
    shop = open_sale(units=1)
    ticket, other = make_tickets(shop, 2)
    before = [raw_client().dump(key) for key in shop.bucket.keys]
    order_no = buy(ticket)
    settle(shop)
    for key, value in zip(shop.bucket.keys, before, strict=True):
        raw_client().restore(key, 0, value, replace=True)
    raw_client().hset(shop.bucket.keys[1], "run_id", "the run before")
    if shop_is == PROTECTED:
        with pytest.raises(GateUnavailable):
            purchase(ticket=other, quantity=1)
    else:
        unsafe_laws.trust_any_run_of_the_server(monkeypatch)
        assert is_order(purchase(ticket=other, quantity=1).order_no)
    assert set(Order.objects.values_list("number", flat=True)) == {order_no}


@pytest.mark.parametrize("shop_is", [PROTECTED, UNSAFE])
def test_members_that_wait_for_mysql(shop_is: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A buyer in the queue holds his unit. Whoever looks at the rows alone takes his mark away and alarms."""
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    buy(ticket_of(shop, buyer))
    if shop_is == UNSAFE:
        unsafe_laws.look_without_the_queue(monkeypatch)
    for seconds in (0, 31):
        compare_members(bucket=shop.bucket, clock=ahead(seconds), extent=Extent.FULL, treatment=Treatment.MEND)
    kinds = set(Incident.objects.values_list("kind", flat=True))
    answer = buy(ticket_of(shop, buyer))
    if shop_is == PROTECTED:
        assert (kinds, answer) == (set(), "LimitReached")
    else:
        assert (kinds, is_order(answer)) == ({"marks_differ", "receipts_differ"}, True)
