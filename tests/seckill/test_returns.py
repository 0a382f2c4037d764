"""Returns: whatever closes an order and whatever dies meanwhile, its units come back exactly once."""

from datetime import timedelta

import pytest
from django.db import ProgrammingError, connection
from django.utils import timezone

from inventory.models import Stock
from inventory.selectors import balance
from orders.errors import TransitionRefused
from orders.models import Order, OrderEvent
from orders.services import cancel_order, expire_orders, move_order
from orders.states import OrderState, UnitsTo
from seckill import rebuild, returns
from seckill.conf import Limits
from seckill.errors import RebuildRefused
from seckill.gate import gate
from seckill.gate.connection import raw_client
from seckill.models import Bucket, FlashSale, Incident, ItemBucket, Reservation
from seckill.rebuild import rebuild_bucket
from seckill.reconciliation import Verdict, reconcile_bucket
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from tests.support.die import run_and_die
from tests.support.shop import Shop, buy, make_buyers, make_ticket, make_tickets, open_sale, ticket_of
from tests.support.state import numbers, sold_units
from tests.support.threads import run_together


def sell(shop: Shop, number: int) -> list[Order]:
    """Sell to so many buyers; return their orders."""
    sold = [buy(ticket) for ticket in make_tickets(shop, number)]
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    return list(Order.objects.filter(number__in=sold).order_by("pk"))


def cancel(order: Order) -> bool:
    try:
        cancel_order(number=order.number, buyer_id=order.buyer_id, now=timezone.now())
    except TransitionRefused:
        return False
    return True


def give_back(*, seconds: float = 0) -> int:
    return return_closed_orders(clock=lambda: timezone.now() + timedelta(seconds=seconds))


def assert_balanced(shop: Shop, *, sold: int, left: int) -> None:
    assert sold_units(shop) == sold
    assert numbers(shop).left == {shop.item.pk: left}
    report = reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    assert (report.verdict, [item.owed for item in report.items]) == (Verdict.BALANCED, [0])
    unit = ItemBucket.objects.get(item_id=shop.item.pk)
    assert balance(account=f"item:{shop.item.pk}:0") == unit.allocated - unit.sold
    assert not Reservation.objects.filter(owed_at__isnull=False).exists()
    assert not Order.objects.filter(units_due_at__isnull=False).exists()


def test_a_cancelled_order_gives_its_unit_back_and_its_buyer_may_buy_again() -> None:
    shop = open_sale(units=1)
    (buyer,) = make_buyers(1)
    order_no = buy(ticket_of(shop, buyer))
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert buy(ticket_of(shop, buyer)) == "LimitReached"
    assert cancel(Order.objects.get(number=order_no))
    assert give_back() == 1
    assert_balanced(shop, sold=0, left=1)
    receipt = gate.look_up(bucket=shop.bucket, order_no=order_no)
    assert receipt is not None
    assert receipt.state == "returned"
    assert "-" in buy(ticket_of(shop, buyer))


def test_ten_cancels_at_once_are_one() -> None:
    """CASES 3: exactly one wins, one event, one unit."""
    shop = open_sale(units=5)
    (order,) = sell(shop, 1)
    assert sorted(run_together(lambda _: cancel(order), range(10))) == [False] * 9 + [True]
    assert OrderEvent.objects.count() == 1
    run_together(lambda _: give_back(), range(4))
    give_back()
    assert_balanced(shop, sold=0, left=5)


def test_two_doors_race_for_one_order() -> None:
    """CASES 3: the buyer cancels while the order expires."""
    shop = open_sale(units=5)
    (order,) = sell(shop, 1)
    Order.objects.update(pay_by_at=timezone.now() - timedelta(seconds=1))
    doors = [lambda: cancel(order), lambda: expire_orders(now=timezone.now(), batch_size=10) == 1]
    assert sorted(run_together(lambda door: door(), doors)) == [False, True]
    give_back()
    assert_balanced(shop, sold=0, left=5)


@pytest.mark.slow
def test_200_expire_and_one_bad_row_stops_nobody() -> None:
    """CASES 4: row 57 cannot be closed; the other 199 go in the first run, and it alone is tried again."""
    shop = open_sale(units=200)
    orders = sell(shop, 200)
    bad = orders[57]
    Order.objects.update(pay_by_at=timezone.now() - timedelta(seconds=1))
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE orders_orderevent ADD CONSTRAINT bad CHECK (order_id <> {bad.pk})")
    try:
        assert expire_orders(now=timezone.now(), batch_size=500) == 199
        assert expire_orders(now=timezone.now(), batch_size=500) == 0
        give_back()
        assert_balanced(shop, sold=1, left=199)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE orders_orderevent DROP CONSTRAINT bad")
    assert expire_orders(now=timezone.now(), batch_size=500) == 1
    give_back()
    assert_balanced(shop, sold=0, left=200)


def test_orders_that_are_not_due_or_paid_stay() -> None:
    shop = open_sale(units=3)
    first, second, _ = sell(shop, 3)
    Order.objects.filter(pk__in=[first.pk, second.pk]).update(pay_by_at=timezone.now() - timedelta(seconds=1))
    move_order(number=first.number, from_state=OrderState.PENDING_PAYMENT, to_state=OrderState.PAID, now=timezone.now())
    assert expire_orders(now=timezone.now(), batch_size=10) == 1
    give_back()
    assert_balanced(shop, sold=2, left=1)


@pytest.mark.parametrize("units_to", [UnitsTo.WAREHOUSE, UnitsTo.WRITTEN_OFF])
def test_units_that_leave_the_sale(units_to: UnitsTo) -> None:
    """The buyer is free again, the sale has one unit less, the warehouse has it or the books have lost it."""
    shop = open_sale(units=3)
    (order,) = sell(shop, 1)
    move_order(
        number=order.number,
        from_state=OrderState.PENDING_PAYMENT,
        to_state=OrderState.CANCELLED,
        now=timezone.now(),
        units_to=units_to,
    )
    give_back()
    assert_balanced(shop, sold=0, left=2)
    assert ItemBucket.objects.get().allocated == 2
    assert Stock.objects.get().on_hand == (1 if units_to is UnitsTo.WAREHOUSE else 0)
    assert balance(account="warehouse", sku_id=shop.item.sku_id) == Stock.objects.get().on_hand
    assert raw_client().hlen(shop.bucket.keys[2]) == 1


def test_after_the_sale_units_go_to_the_warehouse_and_no_script_runs() -> None:
    shop = open_sale(units=3)
    (order,) = sell(shop, 1)
    FlashSale.objects.update(state="ARCHIVING")
    assert cancel(order)
    assert give_back() == 1
    unit = ItemBucket.objects.get()
    assert (unit.allocated, unit.sold, Stock.objects.get().on_hand) == (2, 0, 1)
    assert numbers(shop).left == {shop.item.pk: 2}
    assert Reservation.objects.get().owed_at is None


def test_quantities_come_back_whole() -> None:
    shop = open_sale(units=10, limit=3)
    tickets = make_tickets(shop, 3)
    sold = [buy(ticket, n + 1) for n, ticket in enumerate(tickets)]
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert cancel(Order.objects.get(number=sold[2]))
    give_back()
    assert_balanced(shop, sold=3, left=7)


def test_no_return_while_a_rebuild_holds_the_claim() -> None:
    shop = open_sale(units=3)
    (order,) = sell(shop, 1)
    cancel(order)
    Bucket.objects.update(claim="token", claim_until=timezone.now() + timedelta(seconds=30))
    assert give_back() == 0
    assert sold_units(shop) == 1
    Bucket.objects.update(claim_until=None)
    assert give_back() == 1
    assert_balanced(shop, sold=0, left=3)


@pytest.mark.parametrize("moment", ["before the restock", "after the restock"])
def test_a_rebuild_between_commit_and_mark(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The staging already counts what MySQL has returned; the debt is crossed off, not paid twice."""
    shop = open_sale(units=3)
    (order,) = sell(shop, 1)
    cancel(order)
    pay = returns.pay_debts

    def rebuild_and_pay(**arguments: object) -> int:
        if moment == "before the restock":
            rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
        paid = pay(**arguments)  # type: ignore[arg-type]
        rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
        return paid

    monkeypatch.setattr(returns, "pay_debts", rebuild_and_pay)
    give_back()
    assert_balanced(shop, sold=0, left=3)


def test_a_return_voids_a_claim_that_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebuild that slept past its lease, by a clock behind ours, must not swap in its stale staging."""
    shop = open_sale(units=5)
    (order,) = sell(shop, 1)
    cancel(order)
    fill = rebuild._fill_staging

    def fill_and_sleep(**arguments: object) -> None:
        fill(**arguments)  # type: ignore[arg-type]
        assert return_closed_orders(clock=lambda: timezone.now() + timedelta(seconds=31)) == 1

    monkeypatch.setattr(rebuild, "_fill_staging", fill_and_sleep)
    with pytest.raises(RebuildRefused, match="lost its claim"):
        rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    monkeypatch.setattr(rebuild, "_fill_staging", fill)
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    give_back()
    assert_balanced(shop, sold=0, left=5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "moment"),
    [
        ("orders.services.expiry._expire_page", "before"),
        ("orders.services.expiry._expire_page", "after"),
        ("orders.services.expiry._expire_unlocked", "before"),
        ("orders.services.expiry._expire_unlocked", "after"),
        ("orders.services.expiry._expire", "before"),
        ("orders.services.expiry.columns_of", "after"),
        ("orders.services.expiry.write_events", "before"),
        ("orders.services.expiry.write_events", "after"),
        ("orders.services.expiry._expire", "after"),
    ],
)
def test_expiry_killed_at_any_step(function: str, moment: str) -> None:
    """A batch is expired as a whole or not at all; the next run does the rest, each order once."""
    shop = open_sale(units=5)
    orders = sell(shop, 5)
    Order.objects.update(pay_by_at=timezone.now() - timedelta(seconds=1))
    assert run_and_die(job="expire", pool_id=shop.pool.pk, function=function, moment=moment) == -9
    is_committed = function.endswith(("_expire_page", "_expire_unlocked")) and moment == "after"
    expired = set(Order.objects.filter(state="EXPIRED").values_list("pk", flat=True))
    assert len(expired) == (2 if is_committed else 0)
    assert set(OrderEvent.objects.values_list("order_id", flat=True)) == expired
    assert expire_orders(now=timezone.now(), batch_size=2) == 5 - len(expired)
    assert sorted(OrderEvent.objects.values_list("order_id", flat=True)) == sorted(order.pk for order in orders)
    assert give_back() == 5
    assert_balanced(shop, sold=0, left=5)


def test_bad_rows_at_the_head_hold_up_no_expiry_behind_them() -> None:
    shop = open_sale(units=6)
    orders = sell(shop, 6)
    Order.objects.update(pay_by_at=timezone.now() - timedelta(seconds=1))
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE orders_orderevent ADD CONSTRAINT bad CHECK (order_id > {orders[2].pk})")
    try:
        assert expire_orders(now=timezone.now(), batch_size=2) == 3
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE orders_orderevent DROP CONSTRAINT bad")


def test_a_receipt_still_queued_comes_again() -> None:
    """Closed before the confirm arrived: the return waits for it, nothing is paid out of turn."""
    shop = open_sale(units=3)
    (order,) = sell(shop, 1)
    raw_client().hset(shop.bucket.keys[3], order.number, f"queued|{shop.item.pk}|1|{order.buyer_id}")
    cancel(order)
    give_back()
    assert numbers(shop).left == {shop.item.pk: 2}
    report = reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    assert (report.verdict, report.items[0].owed) == (Verdict.BALANCED, 1)
    raw_client().hset(shop.bucket.keys[3], order.number, f"confirmed|{shop.item.pk}|1|{order.buyer_id}")
    give_back()
    assert_balanced(shop, sold=0, left=3)


def test_a_stuck_bucket_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """More closed orders of a bucket under rebuild than fit one page; another bucket's come back all the same."""
    stuck, other = open_sale(units=5), open_sale(units=5)
    for order in [*sell(stuck, 5), *sell(other, 1)]:
        cancel(order)
    Bucket.objects.filter(pool=stuck.pool).update(claim="token", claim_until=timezone.now() + timedelta(seconds=30))
    monkeypatch.setattr(returns, "LIMITS", Limits(batch_size=2))
    assert give_back() == 1
    assert numbers(other).left == {other.item.pk: 5}
    Bucket.objects.update(claim_until=None)
    assert give_back() == 5
    assert numbers(stuck).left == {stuck.item.pk: 5}


def test_one_bad_row_stops_none_of_its_page() -> None:
    """CASES 4: of 20 closed orders one cannot be taken back; 19 are, and it alone is tried again."""
    shop = open_sale(units=20)
    orders = sell(shop, 20)
    for order in orders:
        cancel(order)
    bad = Reservation.objects.get(order_no=orders[7].number)
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE seckill_reservation ADD CONSTRAINT bad CHECK"
            f" (order_no <> '{bad.order_no}' OR state <> 'RETURNED')"
        )
    try:
        assert [give_back(), give_back(), give_back(seconds=61)] == [19, 0, 0]
        assert numbers(shop).left == {shop.item.pk: 19}
        incident = Incident.objects.get()
        assert (incident.kind, incident.count, incident.units) == ("returns_stuck", 2, 1)
        assert incident.detail.startswith(f"order {bad.order_no}: ")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE seckill_reservation DROP CONSTRAINT bad")
    assert Incident.objects.get().resolved_at is None
    assert give_back(seconds=122) == 1
    assert Incident.objects.get().resolved_at is not None
    assert_balanced(shop, sold=0, left=20)


def test_what_is_about_no_row_is_not_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing column would fail a thousand times; it is one failure, and an incident."""
    shop = open_sale(units=5)
    for order in sell(shop, 5):
        cancel(order)
    tries = []

    def fail(**arguments: object) -> int:
        tries.append(arguments)
        raise ProgrammingError(1054, "Unknown column")

    monkeypatch.setattr(returns, "take_back", fail)
    assert give_back() == 0
    assert len(tries) == 1
    assert Incident.objects.get().kind == "returns_stuck"


def test_a_bucket_full_of_bad_rows_is_given_up_for_this_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Books of an item that cannot be right fail each order alone; a run tries only so many of them."""
    shop = open_sale(units=10)
    for order in sell(shop, 10):
        cancel(order)
    ItemBucket.objects.update(sold=0)
    monkeypatch.setattr(returns, "BAD_ROWS_MAX", 3)
    assert give_back() == 0
    incident = Incident.objects.get()
    assert (incident.kind, incident.units) == ("returns_stuck", 4)


def test_however_many_bad_rows_are_in_front_those_behind_them_come_back() -> None:
    """More than one run singles out; they step aside for a minute, and the incident is open until the last is back."""
    shop = open_sale(units=70)
    orders = sell(shop, 63)
    for order in orders:
        cancel(order)
    numbers_of_bad = [order.number for order in orders[:60]]
    with connection.cursor() as cursor:
        listed = ", ".join(f"'{number}'" for number in numbers_of_bad)
        cursor.execute(
            "ALTER TABLE seckill_reservation ADD CONSTRAINT bad CHECK"
            f" (order_no NOT IN ({listed}) OR state <> 'RETURNED')"
        )
    try:
        assert [give_back(), give_back(), give_back()] == [0, 3, 0]
        assert numbers(shop).left == {shop.item.pk: 10}
        incident = Incident.objects.get(kind="returns_stuck")
        assert (incident.resolved_at, incident.count) == (None, 2)
        late = sell(shop, 1)
        cancel(late[0])
        assert give_back(seconds=30) == 1
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE seckill_reservation DROP CONSTRAINT bad")
    assert give_back(seconds=61) == 60
    assert Incident.objects.get(kind="returns_stuck").resolved_at is not None
    assert_balanced(shop, sold=0, left=70)


def test_a_row_that_cannot_even_be_put_off_keeps_no_other_in_front(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(units=5)
    first, second, third = sell(shop, 3)
    for order in (first, second, third):
        cancel(order)
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE orders_order ADD CONSTRAINT bad CHECK"
            f" (number NOT IN ('{first.number}', '{second.number}') OR units_due_at IS NOT NULL)"
        )
        cursor.execute(
            "ALTER TABLE orders_order ADD CONSTRAINT worse CHECK"
            f" (number <> '{first.number}' OR units_retry_at IS NULL)"
        )
    try:
        assert give_back() == 1
        assert [bool(at) for at in Order.objects.order_by("pk").values_list("units_retry_at", flat=True)] == [
            False,
            True,
            False,
        ]
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE orders_order DROP CONSTRAINT bad, DROP CONSTRAINT worse")
    assert give_back(seconds=61) == 2
    assert_balanced(shop, sold=0, left=5)


def test_books_that_cannot_be_right_are_an_incident_and_hold_up_no_other() -> None:
    broken, other = open_sale(units=5), open_sale(units=5)
    for order in [*sell(broken, 1), *sell(other, 1)]:
        cancel(order)
    ItemBucket.objects.filter(item_id=broken.item.pk).update(sold=0)
    assert give_back() == 1
    assert numbers(other).left == {other.item.pk: 5}
    assert list(Incident.objects.values_list("kind", flat=True)) == ["returns_stuck"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "moment"),
    [
        ("seckill.returns._count_back", "after"),
        ("seckill.returns.units_taken_back", "after"),
        ("seckill.returns.take_back", "after"),
        ("seckill.gate.gate.restock", "before"),
        ("seckill.gate.gate.restock", "after"),
    ],
)
def test_killed_at_any_step(function: str, moment: str) -> None:
    shop = open_sale(units=5)
    for order in sell(shop, 3):
        cancel(order)
    assert run_and_die(job="return", pool_id=shop.pool.pk, function=function, moment=moment) == -9
    give_back()
    assert_balanced(shop, sold=0, left=5)


def test_a_returned_units_next_buyer() -> None:
    """Sold out, one returned, and the unit is bought by somebody who came too late at first."""
    shop = open_sale(units=1)
    (order,) = sell(shop, 1)
    late = make_ticket(shop)
    assert buy(late) == "SoldOut"
    cancel(order)
    give_back()
    assert "-" in buy(late)
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert_balanced(shop, sold=1, left=0)
