"""The verdict on a rush: each kind of broken promise is found, and only what a fault may bring about is let pass."""

from pathlib import Path

import pytest
from django.utils import timezone

from benchmarks.allowance import NOTHING, Allowance
from benchmarks.faults.matrix import MATRIX, Fault, Kind, Target, allowance_of
from benchmarks.faults.power import AppendOnlyFile
from benchmarks.plan import End, Outcome, Result
from benchmarks.verdict import broken_laws, lost_orders, read_books
from inventory.models import Stock
from orders.models import Order
from seckill.gate.connection import raw_client
from seckill.incidents import Severity, open_incident, resolve_incident
from seckill.models import ItemBucket
from seckill.settlement import settle_bucket
from tests.support.shop import Shop, buy, make_tickets, open_sale


@pytest.fixture
def shop() -> Shop:
    """Three units, two of them sold and settled."""
    shop = open_sale(units=3)
    for ticket in make_tickets(shop, 2):
        buy(ticket)
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    return shop


def told(shop: Shop, **changes: object) -> Result:
    """What the buyers of the settled orders were told, the first of them with changes."""
    outcomes = [
        {"buyer_id": buyer, "order_no": number, "was_accepted": True, "end": End.CONFIRMED}
        for number, buyer in Order.objects.order_by("pk").values_list("number", "buyer_id")
    ]
    outcomes[0] |= changes
    return Result(
        outcomes=tuple(Outcome(**outcome) for outcome in outcomes),  # type: ignore[arg-type]
        latencies_ms=(),
        answers={},
        last_answer_at=None,
        last_accepted_at=None,
        last_ticket_at=None,
        trouble_at=None,
        well_again_at=None,
    )


def verdict(shop: Shop, result: Result, allowance: Allowance = NOTHING) -> list[str]:
    return broken_laws(books=read_books(bucket=shop.bucket, item_id=shop.item.pk), result=result, allowance=allowance)


def test_nothing_is_found_where_all_is_well(shop: Shop) -> None:
    assert verdict(shop, told(shop)) == []


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"end": End.TURNED_AWAY, "reason": "sold_out"}, "Law 6"),
        ({"end": End.FAILED, "reason": "no answer"}, "No definite end"),
        ({"order_no": "1-0-nobody"}, "Law 6"),
        ({"was_forgotten": True}, "been forgotten"),
    ],
)
def test_a_lie_is_found(shop: Shop, changes: dict[str, object], found: str) -> None:
    assert any(found in sentence for sentence in verdict(shop, told(shop, **changes)))


def test_a_unit_too_many_in_redis_is_found(shop: Shop) -> None:
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", 1)
    assert any("Law 7" in sentence for sentence in verdict(shop, told(shop)))


def test_warehouse_stock_that_a_hand_has_changed_is_found(shop: Shop) -> None:
    Stock.objects.filter(sku=shop.item.sku).update(on_hand=1)
    assert any("Law 10, the ledger: sku" in sentence for sentence in verdict(shop, told(shop)))


def test_a_mark_too_high_and_a_receipt_that_is_gone_are_found(shop: Shop) -> None:
    buyer, number = Order.objects.values_list("buyer_id", "number").order_by("pk")[0]
    raw_client().hincrby(shop.bucket.keys[2], str(buyer), 1)
    raw_client().hdel(shop.bucket.keys[3], number)
    told_of = [sentence for sentence in verdict(shop, told(shop)) if "Law 4" in sentence]
    assert told_of == [
        f"Law 4, marks and receipts: the receipt of order {number} says nothing; 2 in all are wrong.",
        f"Law 4, marks and receipts: buyer {buyer} is marked with 2 units and holds 1; 2 in all are wrong.",
    ]


def test_more_orders_than_units_are_found(shop: Shop) -> None:
    ItemBucket.objects.update(allocated=2, sold=1)
    Order.objects.update(quantity=2)
    assert any("Law 1" in sentence for sentence in verdict(shop, told(shop)))


def test_an_expected_incident_must_be_closed(shop: Shop) -> None:
    open_incident(kind="redis_lost", severity=Severity.CRITICAL, bucket=shop.bucket, detail="gone", now=timezone.now())
    redis_may_go = Allowance(incidents=frozenset({"redis_lost"}))
    assert any("still open" in sentence for sentence in verdict(shop, told(shop), redis_may_go))
    resolve_incident(kind="redis_lost", bucket=shop.bucket, now=timezone.now())
    assert verdict(shop, told(shop), redis_may_go) == []
    assert any("must not be" in sentence for sentence in verdict(shop, told(shop)))


def test_who_was_accepted_and_has_neither_order_nor_reason_is_lost(shop: Shop) -> None:
    books = read_books(bucket=shop.bucket, item_id=shop.item.pk)

    def lost(**changes: object) -> list[str]:
        return lost_orders(books=books, outcomes=told(shop, **changes).outcomes)

    assert lost() == []
    assert lost(order_no="1-0-nobody") == ["1-0-nobody"]
    assert lost(order_no="1-0-nobody", end=End.REFUSED) == []
    assert lost(order_no="1-0-nobody", was_accepted=False) == []
    assert lost(order_no="1-0-nobody", was_forgotten=True) == []  # Counted as forgotten instead.


def test_only_a_stock_redis_that_ended_may_forget() -> None:
    may_forget = {str(fault) for fault in MATRIX if allowance_of(fault, buyers=10).forgotten_max}
    assert may_forget == {"stock Redis SIGKILL", "stock Redis power cut"}
    assert allowance_of(Fault(target=Target.MYSQL, kind=Kind.KILL), buyers=10) == NOTHING


def test_the_matrix_has_every_fault_of_every_part() -> None:
    assert len(set(MATRIX)) == 20
    assert {(f.target, f.kind) for f in MATRIX} >= {
        (target, kind) for target in Target for kind in (Kind.KILL, Kind.STALL, Kind.RESTART)
    }


def test_a_power_cut_takes_the_last_second(tmp_path: Path) -> None:
    (tmp_path / "appendonlydir").mkdir()
    path = tmp_path / "appendonlydir" / "appendonly.aof.1.incr.aof"
    instants = iter([0.0, 0.5, 1.2, 1.6])
    file = AppendOnlyFile(tmp_path, clock=lambda: next(instants))
    for length in (10, 20, 30, 40):
        path.write_bytes(b"x" * length)
        file.look()
    file.cut()
    assert path.stat().st_size == 20
