"""A shop under random operations and faults, on the real stores, against the laws.

Each run has a sale of its own. Whatever happened, the shop must come to rest by what runs by itself:
sweep, rebuild, settlement, returns, reconciliation.
"""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError
from django.db.models import Q, Sum
from django.utils import timezone
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from inventory.changes import ChangeState
from orders.errors import TransitionRefused
from orders.models import Order
from orders.services import cancel_order, expire_orders
from seckill import adjusting, decisions, reconciliation, settlement
from seckill.adjusting import pending_item_adjustments
from seckill.change_tables import ItemAdjustment
from seckill.errors import GateUnavailable, PurchaseRefused
from seckill.followup import follow_up
from seckill.gate import changing, gate
from seckill.gate.connection import raw_client
from seckill.gate.entries import QueueEntry
from seckill.members import receipt_of
from seckill.models import ItemBucket, Reservation
from seckill.purchase import purchase
from seckill.rebuild import rebuild_bucket
from seckill.reconciliation import BucketReport
from seckill.repair import reconcile_and_repair
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from seckill.states import RefusalReason
from seckill.sweep import examine
from seckill.tickets import read_ticket
from tests.support.shop import make_buyers, open_sale, ticket_of

UNITS = 4
LIMIT = 2
BUYERS = 4
ROUNDS_TO_REST_MAX = 20


class Crash(Exception):
    """Stands for a process that died at a step."""


class ShopMachine(RuleBasedStateMachine):
    """One item, four units, a limit of two, four buyers with many tickets."""

    def __init__(self) -> None:
        super().__init__()
        self.shop = open_sale(units=UNITS, limit=LIMIT)
        self.buyers = make_buyers(BUYERS)
        self.clerk, self.manager = make_buyers(2)
        self.tickets: list[str] = []
        self.accepted: dict[str, int] = {}
        self.saved: list[bytes] | None = None
        self.was_rolled_back = False
        self.was_tampered_with = False
        self.has_lost_receipts = False

    @rule(buyer=st.integers(0, BUYERS - 1), quantity=st.integers(1, 2))
    def buy(self, buyer: int, quantity: int) -> None:
        """Buy with a new ticket."""
        self.tickets.append(ticket_of(self.shop, self.buyers[buyer]))
        self._purchase(self.tickets[-1], quantity)

    @precondition(lambda self: self.tickets)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """Send an old ticket again: who was accepted is accepted again, as long as nothing was forgotten."""
        ticket = data.draw(st.sampled_from(self.tickets))
        number = read_ticket(ticket).order_no
        is_accepted = self._purchase(ticket, self.accepted.get(number, 1))
        if number in self.accepted and not self.was_rolled_back and not self.has_lost_receipts:
            assert is_accepted is not False

    def _purchase(self, ticket: str, quantity: int) -> bool | None:
        """Return whether it was accepted; None when Redis cannot say."""
        try:
            self.accepted[purchase(ticket=ticket, quantity=quantity).order_no] = quantity
        except GateUnavailable:
            return None
        except PurchaseRefused:
            return False
        return True

    @rule()
    def settle(self) -> None:
        """A worker comes."""
        with unavailable_is_fine():
            settle_bucket(bucket=self.shop.bucket, clock=timezone.now)

    @rule()
    def settle_and_die(self) -> None:
        """A worker dies between the commit and Redis."""
        with dying_at(settlement, "_tell_redis"), unavailable_is_fine():
            settle_bucket(bucket=self.shop.bucket, clock=timezone.now)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """A buyer cancels one of his orders."""
        orders = list(self._orders().order_by("pk"))
        if orders:
            order = data.draw(st.sampled_from(orders))
            try:
                cancel_order(number=order.number, buyer_id=order.buyer_id, now=timezone.now())
            except TransitionRefused:
                assert order.closed_at is not None

    @rule()
    def expire(self) -> None:
        """All unpaid orders run out of time."""
        self._orders().update(pay_by_at=timezone.now() - timedelta(seconds=1))
        expire_orders(now=timezone.now(), batch_size=100)

    @rule()
    def give_back(self) -> None:
        """The return job runs."""
        return_closed_orders(clock=timezone.now)

    @rule()
    def give_back_and_die(self) -> None:
        """The return job dies before it has told Redis."""
        with dying_at(gate, "restock"):
            return_closed_orders(clock=timezone.now)

    @rule(delta=st.sampled_from([-2, -1, 1, 2]), counterpart=st.sampled_from(["WAREHOUSE", "OUTSIDE"]))
    def ask_for_an_adjustment(self, delta: int, counterpart: str) -> None:
        """Somebody asks for more or fewer units, and somebody else approves."""
        ItemAdjustment.objects.create(
            item=self.shop.item,
            delta=delta,
            counterpart=counterpart,
            reason="counted again",
            state=ChangeState.APPROVED,
            requested_by=self.clerk,
            requested_at=timezone.now(),
            decided_by=self.manager,
            decided_at=timezone.now(),
        )

    @rule()
    def adjust(self) -> None:
        """The follow-up applies what is approved, as far as that is possible now."""
        follow_up(clock=timezone.now)

    @rule()
    def adjust_and_die_before_redis(self) -> None:
        """Whoever adjusts dies with his number, and with an increase in MySQL."""
        with dying_at(changing, "adjust"):
            follow_up(clock=timezone.now)

    @rule()
    def adjust_and_die_after_redis(self) -> None:
        """Whoever adjusts dies when Redis has the change."""
        with dying_at(adjusting, "_end"):
            follow_up(clock=timezone.now)

    @rule()
    def reconcile(self) -> None:
        """A minute is over. While nobody has interfered, every number and every member is right."""
        report = self._reconcile()
        if report.is_seen and not self.was_tampered_with and not self.was_rolled_back:
            assert report.is_balanced

    @rule()
    def sweep(self) -> None:
        """The sweep runs, and a rebuild where it wants one."""
        if examine(bucket=self.shop.bucket):
            rebuild_bucket(bucket=self.shop.bucket, clock=timezone.now)

    @rule()
    def rebuild_for_nothing(self) -> None:
        """Somebody rebuilds a sound bucket."""
        rebuild_bucket(bucket=self.shop.bucket, clock=timezone.now)

    @rule()
    def fsync(self) -> None:
        """Redis writes its file."""
        if all(raw_client().exists(key) for key in self.shop.bucket.keys):
            self.saved = [raw_client().dump(key) for key in self.shop.bucket.keys]

    @precondition(lambda self: self.saved is not None)
    @rule()
    def restart_and_forget(self) -> None:
        """Redis restarts with what the file had: another run id, and the last writes gone."""
        assert self.saved is not None
        for key, value in zip(self.shop.bucket.keys, self.saved, strict=True):
            raw_client().restore(key, 0, value, replace=True)
        raw_client().hset(self.shop.bucket.keys[1], "run_id", "the run before")
        self.saved, self.was_rolled_back = None, True

    @rule(part=st.integers(0, 4))
    def lose_a_key(self, part: int) -> None:
        """A key vanishes; what stood in the queue or in a receipt alone is forgotten with it."""
        raw_client().delete(self.shop.bucket.keys[part])
        self.was_rolled_back = True

    @rule(units=st.sampled_from([-1, 1, 2]))
    def tamper(self, units: int) -> None:
        """Somebody changes the stock by hand."""
        key, field = self.shop.bucket.keys[0], f"{self.shop.item.pk}:left"
        if int(raw_client().hget(key, field) or 0) + units >= 0 and raw_client().hexists(key, field):
            raw_client().hincrby(key, field, units)
            self.was_tampered_with = True

    @rule(buyer=st.integers(0, BUYERS - 1))
    def forget_a_buyer(self, buyer: int) -> None:
        """Somebody takes a buyer's mark away: MySQL has to keep the limit alone."""
        if raw_client().hdel(self.shop.bucket.keys[2], str(self.buyers[buyer].pk)):
            self.was_tampered_with = True

    @rule(buyer=st.integers(0, BUYERS - 1), text=st.sampled_from(["9", "1", "x"]))
    def spoil_a_mark(self, buyer: int, text: str) -> None:
        """Somebody writes a buyer's mark by hand: too high, too low, or no number at all."""
        if raw_client().hexists(self.shop.bucket.keys[2], "#epoch"):
            raw_client().hset(self.shop.bucket.keys[2], str(self.buyers[buyer].pk), text)
            self.was_tampered_with = True

    @precondition(lambda self: self.accepted)
    @rule(data=st.data(), text=st.sampled_from([None, "", "garbage"]))
    def spoil_a_receipt(self, data: st.DataObject, text: str | None) -> None:
        """Somebody deletes a receipt, or writes nonsense into it; whoever repeats then may reserve again."""
        number = data.draw(st.sampled_from(sorted(self.accepted)))
        receipts = self.shop.bucket.keys[3]
        if not raw_client().hexists(receipts, number):
            return
        if text is None:
            raw_client().hdel(receipts, number)
        else:
            raw_client().hset(receipts, number, text)
        self.was_tampered_with = self.has_lost_receipts = True

    @invariant()
    def laws(self) -> None:
        """Laws 1, 2 and 3 in MySQL at every moment, and law 7 while nobody has interfered."""
        unit = ItemBucket.objects.get(item_id=self.shop.item.pk)
        settled = Reservation.objects.filter(pool_id=self.shop.pool.pk, state="SETTLED")
        assert unit.sold <= unit.allocated == UNITS + self.units_adjusted()
        assert unit.sold == (settled.aggregate(units=Sum("quantity"))["units"] or 0)
        held = settled.values_list("limit_key").annotate(units=Sum("quantity")).order_by()
        assert all(units <= LIMIT for _, units in held)
        if not self.was_tampered_with and not self.was_rolled_back and not examine(bucket=self.shop.bucket):
            assert [item.drift for item in reconciliation._compare(self.shop.bucket).items] == [0]

    def teardown(self) -> None:
        """Let everything that runs by itself run; then nobody is lost and nothing is left over."""
        for n in range(ROUNDS_TO_REST_MAX):
            self.sweep()
            self.settle()
            self.give_back()
            self.adjust()
            self._reconcile(ahead=timedelta(seconds=31 * (n + 1)))
            if self._is_at_rest():
                break
        assert self._is_at_rest()
        if not self.was_rolled_back:
            fates = set(Reservation.objects.filter(pool_id=self.shop.pool.pk).values_list("order_no", flat=True))
            assert set(self.accepted) <= fates
        if not self.was_rolled_back and not self.was_tampered_with:
            assert not Reservation.objects.filter(pool_id=self.shop.pool.pk, state="REFUSED").exists()

    def _is_at_rest(self) -> bool:
        if examine(bucket=self.shop.bucket) or pending_item_adjustments():
            return False
        unit = ItemBucket.objects.get(item_id=self.shop.item.pk)
        snapshot = gate.snapshot(bucket=self.shop.bucket, entries_max=0)
        return (
            snapshot.queue_length == 0
            and snapshot.queued == {self.shop.item.pk: 0}
            and snapshot.left == {self.shop.item.pk: unit.allocated - unit.sold}
            and self._members_are_right()
            and not Reservation.objects.filter(owed_at__isnull=False, pool_id=self.shop.pool.pk).exists()
        )

    def units_adjusted(self, **which: str) -> int:
        """Units that MySQL has more or fewer by hand: what is applied, and increases that have their number."""
        changes = ItemAdjustment.objects.filter(item=self.shop.item, **which)
        applied = changes.filter(Q(state=ChangeState.APPLIED) | Q(delta__gt=0, open_key__isnull=False))
        return applied.aggregate(units=Sum("delta"))["units"] or 0

    def _members_are_right(self) -> bool:
        """Every buyer's mark is what he holds, and every receipt says what its row says; there are no others."""
        rows = list(Reservation.objects.filter(pool_id=self.shop.pool.pk))
        held = Counter[str]()
        for row in rows:
            held[row.limit_key] += row.quantity if row.state == "SETTLED" else 0
        wanted = {row.order_no: str(receipt_of(row)) for row in rows}
        return fields(self.shop.bucket.keys[3]) == wanted and fields(self.shop.bucket.keys[2]) == {
            key: str(units) for key, units in held.items() if units
        }

    def _orders(self) -> Any:
        return Order.objects.filter(number__startswith=f"{self.shop.pool.pk}-")

    def _reconcile(self, *, ahead: timedelta = timedelta()) -> BucketReport:
        def clock() -> datetime:
            return timezone.now() + ahead

        return reconcile_and_repair(bucket=self.shop.bucket, clock=clock)


def fields(key: str) -> dict[str, str]:
    """The members of a hash."""
    return {name.decode(): value.decode() for name, value in raw_client().hgetall(key).items() if name != b"#epoch"}


@contextmanager
def unavailable_is_fine() -> Iterator[None]:
    """Let a job give up on a bucket that awaits its rebuild, and let a process die."""
    try:
        yield
    except (GateUnavailable, Crash):
        return


@contextmanager
def dying_at(module: Any, name: str) -> Iterator[None]:
    """Make a function the last thing a process does."""

    def die(**_: object) -> None:
        raise Crash

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, die)
        try:
            yield
        except Crash:
            return


def run(*, examples: int, phases: tuple[Phase, ...]) -> None:
    """Run the machine so many times."""
    run_state_machine_as_test(
        ShopMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            phases=phases,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_a_machine_of_operations_and_faults() -> None:
    """At least 200 runs; ``SOAK_EXAMPLES`` makes them more, see ``make soak``."""
    run(examples=int(os.environ.get("SOAK_EXAMPLES", "200")), phases=(Phase.generate, Phase.shrink))


@pytest.mark.slow
def test_control_a_second_fate_for_a_known_number_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's control: settlement that refuses what it has settled, when it sees it again."""

    def another_fate(*, entry: QueueEntry, fate: object) -> decisions.Decision:
        del fate
        return decisions._refused(entry=entry, reason=RefusalReason.PHANTOM, units_owed=entry.quantity)

    monkeypatch.setattr(decisions, "_repeat", another_fate)
    with pytest.raises((AssertionError, DatabaseError)):
        run(examples=400, phases=(Phase.generate,))


@pytest.mark.slow
def test_control_reconciliation_that_knows_of_no_adjustments_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of an adjustment looks like drift then, and is repaired as if it was."""
    monkeypatch.setattr(reconciliation, "units_under_way", lambda **_: {})
    with pytest.raises(AssertionError):
        run(examples=400, phases=(Phase.generate,))
