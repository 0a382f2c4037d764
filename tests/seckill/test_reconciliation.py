"""Law 7 by numbers: exact at every moment of a reservation's way, and off by just what was tampered with."""

import pytest
from django.utils import timezone

from orders.services import cancel_order
from seckill import reconciliation, settlement
from seckill.errors import GateUnavailable
from seckill.gate.connection import raw_client
from seckill.models import ReconciliationRun, Reservation
from seckill.reconciliation import BucketReport, ItemBalance, Verdict, reconcile_bucket
from seckill.returns import return_closed_orders
from tests.support.shop import Shop, buy, make_buyers, make_ticket, make_tickets, open_sale, ticket_of
from tests.support.threads import run_together


def compare(shop: Shop) -> BucketReport:
    """Compare without settling first, to look at a moment in the middle."""
    return reconciliation._compare(shop.bucket)


def balance(shop: Shop, *, sold: int, left: int, in_flight: int, owed: int) -> ItemBalance:
    return ItemBalance(
        item_id=shop.item.pk, allocated=shop.item.units, sold=sold, left=left, in_flight=in_flight, owed=owed
    )


def test_queued_units_are_in_flight_and_no_drift() -> None:
    shop = open_sale(units=10, limit=2)
    for ticket in make_tickets(shop, 3):
        buy(ticket, 2)
    report = compare(shop)
    assert report.verdict is Verdict.BALANCED
    assert report.items == (balance(shop, sold=0, left=4, in_flight=6, owed=0),)


def test_between_commit_and_confirm_nothing_counts_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(units=10)
    for ticket in make_tickets(shop, 3):
        buy(ticket)
    monkeypatch.setattr(settlement, "_tell_redis", lambda **_: 0)
    settlement.settle_bucket(bucket=shop.bucket, clock=timezone.now)
    report = compare(shop)
    assert report.verdict is Verdict.BALANCED
    assert report.items == (balance(shop, sold=3, left=7, in_flight=0, owed=0),)


def test_between_tombstone_and_release_the_unit_is_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(units=10)
    (buyer,) = make_buyers(1)
    for _ in range(2):
        buy(ticket_of(shop, buyer))
        raw_client().hdel(shop.bucket.keys[2], str(buyer.pk))
    monkeypatch.setattr(settlement, "_tell_redis", lambda **_: 0)
    settlement.settle_bucket(bucket=shop.bucket, clock=timezone.now)
    report = compare(shop)
    assert report.verdict is Verdict.BALANCED
    assert report.items == (balance(shop, sold=1, left=8, in_flight=0, owed=1),)


@pytest.mark.parametrize(("tampered", "verdict"), [(3, Verdict.EXCESS), (-2, Verdict.LEAK)])
def test_stock_changed_by_hand_is_seen_exactly(tampered: int, verdict: Verdict) -> None:
    shop = open_sale(units=10)
    buy(make_ticket(shop))
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", tampered)
    report = reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    assert report.verdict is verdict
    assert [item.drift for item in report.items] == [-tampered]
    run = ReconciliationRun.objects.get()
    assert (run.verdict, run.drift, run.numbers[0]["left"]) == (verdict, abs(tampered), 9 + tampered)


def test_reconciliation_settles_first_and_changes_no_stock() -> None:
    shop = open_sale(units=10)
    buy(make_ticket(shop))
    report = reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    assert report.items == (balance(shop, sold=1, left=9, in_flight=0, owed=0),)


def test_a_bucket_that_cannot_be_asked_is_no_drift() -> None:
    shop = open_sale(units=10)
    raw_client().hset(shop.bucket.keys[1], "run_id", "another")
    report = reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    assert (report.verdict, report.items) == (Verdict.UNAVAILABLE, ())
    raw_client().flushall()
    assert reconcile_bucket(bucket=shop.bucket, clock=timezone.now).verdict is Verdict.UNAVAILABLE


@pytest.mark.slow
def test_no_false_alarm_in_a_rush() -> None:
    """Reconcile again and again while 200 buyers buy and two workers settle: never a drift."""
    shop = open_sale(units=150)
    tickets = make_tickets(shop, 200)

    def work(number: int) -> list[str]:
        if number == 0:
            return [compare(shop).verdict for _ in range(30)]
        if number <= 2:
            for _ in range(10):
                settlement.settle_bucket(bucket=shop.bucket, clock=timezone.now)
            return []
        for ticket in tickets[number - 3 :: 8]:
            buy(ticket)
        return []

    verdicts = run_together(work, range(11))[0]
    assert verdicts == [Verdict.BALANCED] * 30


def test_control_ignoring_the_queue_raises_a_false_alarm() -> None:
    """The seed articles' comparison: what is in flight is taken for drift."""
    shop = open_sale(units=10)
    buy(make_ticket(shop))
    (item,) = compare(shop).items
    assert item.allocated - item.sold - item.left == 1
    assert item.drift == 0


def test_a_frozen_bucket_is_not_compared() -> None:
    shop = open_sale()
    raw_client().hset(shop.bucket.keys[1], "frozen", "token")
    with pytest.raises(GateUnavailable):
        compare(shop)


@pytest.mark.parametrize("receipt", ["", "garbage", "confirmed|x|1|1"])
def test_one_damaged_receipt_hides_no_other_number(receipt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receipt of a return that is owed is read with the numbers; a damaged one is as good as none."""
    shop = open_sale(units=10)
    order_no = buy(make_ticket(shop))
    settlement.settle_bucket(bucket=shop.bucket, clock=timezone.now)
    cancel_order(number=order_no, buyer_id=Reservation.objects.get().buyer_id, now=timezone.now())
    monkeypatch.setattr("seckill.returns.pay_debts", lambda **_: 0)
    return_closed_orders(clock=timezone.now)
    assert compare(shop).items == (balance(shop, sold=0, left=9, in_flight=0, owed=1),)
    raw_client().hset(shop.bucket.keys[3], order_no, receipt)
    assert compare(shop).items == (balance(shop, sold=0, left=9, in_flight=0, owed=0),)
