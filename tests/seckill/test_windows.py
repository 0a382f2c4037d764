"""The window of a preheated sale: by approval, in MySQL and every gate, and no late old call wins."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from inventory.changes import ChangeState, approve, submit
from inventory.errors import UnknownChange
from seckill import rebuild
from seckill.change_tables import WindowChange
from seckill.errors import GateUnavailable
from seckill.followup import buckets_to_reconcile, follow_up
from seckill.gate import changing
from seckill.gate.connection import raw_client
from seckill.gate.staging import milliseconds
from seckill.models import FlashSale
from seckill.rebuild import rebuild_bucket
from seckill.reconciliation import reconcile_bucket
from seckill.sweep import look_over
from seckill.tickets import IssuedTicket, Wish, read_ticket, ticket_for
from seckill.windows import apply_window_change
from tests.support.die import run_and_die
from tests.support.people import person
from tests.support.shop import Shop, buy, make_buyers, make_ticket, make_tickets, open_sale, ticket_of
from tests.support.state import dump, numbers

HOUR = timedelta(hours=1)


def ask(shop: Shop, *, opens_at: datetime | None = None, closes_at: datetime | None = None) -> int:
    """Make an approved change of the sale's window; return its primary key."""
    sale = FlashSale.objects.get(pk=shop.sale.pk)
    change = WindowChange(
        sale=sale, opens_at=opens_at or sale.opens_at, closes_at=closes_at or sale.closes_at, reason="the site was slow"
    )
    submit(change=change, by=person("add_windowchange"), now=timezone.now())
    decider = person("approve_windowchange")
    approve(table=WindowChange, change_id=change.pk, by=decider, reason="seen", now=timezone.now())
    return change.pk


def apply(change_id: int) -> ChangeState:
    return apply_window_change(change_id=change_id, clock=timezone.now)


def gate_window(shop: Shop) -> tuple[int, int, int]:
    fields = raw_client().hmget(shop.bucket.keys[1], "window_no", "opens_ms", "closes_ms")
    return int(fields[0]), int(fields[1]), int(fields[2])


def assert_window(shop: Shop, *, number: int) -> None:
    """MySQL and the gate have the same window, of the same number."""
    sale = FlashSale.objects.get(pk=shop.sale.pk)
    assert sale.window_no == number
    assert gate_window(shop) == (number, milliseconds(sale.opens_at), milliseconds(sale.closes_at))


def redis_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(**_: object) -> None:
        raise GateUnavailable("away")

    monkeypatch.setattr(changing, "set_window", unavailable)


def test_a_sale_is_extended() -> None:
    shop = open_sale()
    FlashSale.objects.update(closes_at=timezone.now())
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert buy(make_ticket(shop)) == "Ended"
    before = FlashSale.objects.get()
    assert apply(ask(shop, closes_at=timezone.now() + HOUR)) is ChangeState.APPLIED
    assert_window(shop, number=1)
    assert "-" in buy(make_ticket(shop))
    change = WindowChange.objects.get()
    assert (change.opened_at_before, change.closed_at_before) == (before.opens_at, before.closes_at)


def test_a_sale_opens_earlier_and_later() -> None:
    shop = open_sale(opens_in=HOUR, closes_in=2 * HOUR)
    early, late = make_tickets(shop, 2)
    assert buy(early) == "NotStarted"
    apply(ask(shop, opens_at=timezone.now() - timedelta(seconds=1)))
    assert "-" in buy(early)
    change_id = ask(shop, opens_at=timezone.now() + HOUR)
    assert apply(change_id) is ChangeState.REFUSED
    outcome = WindowChange.objects.get(pk=change_id).outcome
    assert outcome == "the sale has opened; only its end can be moved"
    assert "-" in buy(late)
    assert_window(shop, number=1)


def test_an_end_in_the_past_is_refused_when_it_is_applied() -> None:
    shop = open_sale()
    change_id = ask(shop, closes_at=timezone.now() - timedelta(seconds=1))
    assert apply(change_id) is ChangeState.REFUSED
    assert WindowChange.objects.get().outcome == "it would be over already"
    assert FlashSale.objects.get().window_no == 0


@pytest.mark.parametrize("state", ["DRAFT", "SCHEDULED", "ARCHIVING", "ARCHIVED"])
def test_only_a_preheated_sale_s_window_is_changed_so(state: str) -> None:
    shop = open_sale()
    change_id = ask(shop, closes_at=timezone.now() + 2 * HOUR)
    FlashSale.objects.update(state=state)
    before, window = dump(shop.bucket), FlashSale.objects.get().closes_at
    assert apply(change_id) is ChangeState.REFUSED
    assert (dump(shop.bucket), FlashSale.objects.get().closes_at) == (before, window)


def test_a_late_old_call_loses() -> None:
    shop = open_sale()
    apply(ask(shop, closes_at=timezone.now() + 2 * HOUR))
    apply(ask(shop, closes_at=timezone.now() + 3 * HOUR))
    before = gate_window(shop)
    for number in (0, 1, 2):
        changing.set_window(bucket=shop.bucket, number=number, opens_ms=1, closes_ms=2)
    assert gate_window(shop) == before
    assert_window(shop, number=2)


def test_two_changes_of_which_the_first_never_reached_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first comes up again after the second is done, and loses by its number; both are finished."""
    shop = open_sale()
    first = ask(shop, closes_at=timezone.now() + 2 * HOUR)
    with monkeypatch.context() as patch:
        redis_away(patch)
        assert apply(first) is ChangeState.APPROVED
    apply(ask(shop, closes_at=timezone.now() + 3 * HOUR))
    assert apply(first) is ChangeState.APPLIED
    assert_window(shop, number=2)
    assert FlashSale.objects.get().closes_at > timezone.now() + 2 * HOUR


def test_a_rebuild_takes_the_window_from_mysql(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale()
    change_id = ask(shop, closes_at=timezone.now() + 2 * HOUR)
    with monkeypatch.context() as patch:
        redis_away(patch)
        apply(change_id)
    raw_client().delete(*shop.bucket.keys)
    assert apply(change_id) is ChangeState.APPROVED
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert_window(shop, number=1)
    assert apply(change_id) is ChangeState.APPLIED


def test_a_rebuild_that_read_the_old_window_does_not_bring_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that a rebuild has frozen is not told: it is told when the rebuild is over, whatever that had read."""
    shop = open_sale()
    change_id = ask(shop, closes_at=timezone.now() + 2 * HOUR)
    fill = rebuild._fill_staging
    states = []

    def changed_meanwhile(**wish: object) -> None:
        fill(**wish)  # type: ignore[arg-type]
        states.append(apply(change_id))

    monkeypatch.setattr(rebuild, "_fill_staging", changed_meanwhile)
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert states == [ChangeState.APPROVED]
    assert apply(change_id) is ChangeState.APPLIED
    assert_window(shop, number=1)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("function", ["seckill.windows._store", "seckill.gate.changing.set_window"])
def test_killed_at_any_step(function: str, moment: str) -> None:
    shop = open_sale()
    ask(shop, closes_at=timezone.now() + 2 * HOUR)
    assert run_and_die(job="follow_up", pool_id=shop.pool.pk, function=function, moment=moment) == -9
    follow_up(clock=timezone.now)
    assert WindowChange.objects.get().state == "APPLIED"
    assert_window(shop, number=1)


def test_a_changed_window_signs_the_same_number_again() -> None:
    """A ticket that has expired with the old end buys again after the buyer has asked for it once more."""
    shop = open_sale(closes_in=HOUR)
    (buyer,) = make_buyers(1)
    first = ticket_for(buyer=buyer, item_id=shop.item.pk, wish=Wish.FIRST, now=timezone.now())
    apply(ask(shop, closes_at=timezone.now() + 2 * HOUR))
    second = ticket_for(buyer=buyer, item_id=shop.item.pk, wish=Wish.FIRST, now=timezone.now())
    assert isinstance(first, IssuedTicket)
    assert isinstance(second, IssuedTicket)
    assert (first.order_no, first.is_new, second.is_new) == (second.order_no, True, False)
    longer = read_ticket(second.ticket).expires_ms - read_ticket(first.ticket).expires_ms
    assert longer == pytest.approx(HOUR.total_seconds() * 1000, abs=10_000)
    assert buy(second.ticket) == buy(first.ticket) == first.order_no


def test_it_is_reconciled_at_once() -> None:
    shop = open_sale()
    apply(ask(shop, closes_at=timezone.now() + 2 * HOUR))
    assert buckets_to_reconcile(now=timezone.now()) == [shop.bucket]
    reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    assert buckets_to_reconcile(now=timezone.now()) == []


def test_a_change_nobody_asked_for() -> None:
    with pytest.raises(UnknownChange):
        apply(10**9)


def test_what_is_sold_stays_sold_when_the_window_moves() -> None:
    shop = open_sale(units=5)
    order_no = buy(ticket_of(shop, make_buyers(1)[0]))
    apply(ask(shop, closes_at=timezone.now() + 2 * HOUR))
    assert numbers(shop).left == {shop.item.pk: 4}
    assert "-" in order_no


def test_a_window_on_its_way_to_redis_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands in MySQL, and Redis was away: the follow-up brings it there, not a rebuild."""
    shop = open_sale()
    change_id = ask(shop, closes_at=timezone.now() + 3 * HOUR)
    with monkeypatch.context() as patch:
        redis_away(patch)
        assert apply(change_id) == ChangeState.APPROVED
    assert look_over(now=timezone.now()).to_rebuild == []
    assert apply(change_id) == ChangeState.APPLIED
    assert look_over(now=timezone.now()).to_rebuild == []
