"""The shop under random operations and faults with two buckets, and units that move between them.

The rules are those of one bucket, each for a bucket that is drawn; what moves units dies at any step.
"""

from contextlib import suppress
from datetime import timedelta

import pytest
from django.db.models import Sum
from django.utils import timezone
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from inventory.changes import ChangeState
from inventory.models import Stock
from inventory.selectors import balance
from orders.errors import TransitionRefused
from orders.models import Order
from orders.services import cancel_order
from seckill import adjusting, settlement, transfers, wakeups
from seckill.change_tables import ItemAdjustment
from seckill.elsewhere import memory
from seckill.errors import CommitsLost, GateUnavailable, NotPreheated, PurchaseRefused
from seckill.followup import follow_up
from seckill.gate import gate
from seckill.gate.connection import raw_client
from seckill.gate.keys import BucketRef
from seckill.gathering import Want, gather
from seckill.models import ItemBucket, Reservation
from seckill.outcomes import account_of
from seckill.purchase import purchase
from seckill.rebuild import rebuild_bucket
from seckill.reconciliation import compare_now
from seckill.repair import reconcile_and_repair
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from seckill.sweep import examine
from seckill.tickets import read_ticket
from seckill.transfer_tables import Transfer
from seckill.transfers import finish_transfer, open_transfers
from tests.support.buckets import key_in
from tests.support.machine import STEPS_MAX, Crash, dying_at, one_of, unavailable_is_fine
from tests.support.shop import make_buyers, open_sale, ticket_of

UNITS = 4
LIMIT = 2
BUYERS = 4
BUCKETS = 2
ROUNDS_TO_REST_MAX = 20
NUMBERS = st.integers(0, BUCKETS - 1)
STEPS = ["", "_take", "_move", "_give", "_close"]


class BucketsMachine(RuleBasedStateMachine):
    """One item, four units in two buckets, two buyers for each of them."""

    def __init__(self) -> None:
        super().__init__()
        memory.forget()
        self.shop = open_sale(units=UNITS, limit=LIMIT, buckets=BUCKETS)
        self.buyers = make_buyers(BUYERS)
        self.keys = [key_in(self.shop, n % BUCKETS, after=n) for n in range(BUYERS)]
        self.clerk, self.manager = make_buyers(2)
        self.tickets: list[tuple[str, int]] = []
        self.accepted: set[str] = set()
        self.has_lost_keys = False

    @rule(buyer=st.integers(0, BUYERS - 1), quantity=st.integers(1, LIMIT))
    def buy(self, buyer: int, quantity: int) -> None:
        """Buy with a new ticket; nobody hears that nothing is left while something is."""
        ticket = ticket_of(self.shop, self.buyers[buyer], key=self.keys[buyer])
        self.tickets.append((ticket, quantity))
        self._purchase(ticket, quantity)

    @precondition(lambda self: self.tickets)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """Send an old ticket again."""
        ticket, quantity = data.draw(st.sampled_from(self.tickets))
        is_accepted = self._purchase(ticket, quantity)
        if read_ticket(ticket).order_no in self.accepted and not self.has_lost_keys:
            assert is_accepted is not False

    def _purchase(self, ticket: str, quantity: int) -> bool | None:
        memory.forget()
        try:
            self.accepted.add(purchase(ticket=ticket, quantity=quantity).order_no)
        except GateUnavailable:
            return None
        except PurchaseRefused as refusal:
            if type(refusal).__name__ == "SoldOut":
                assert self._units_to_be_had() == 0
            return False
        return True

    def _units_to_be_had(self) -> int:
        """Units left in buckets that sell, and those that are on their way between two."""
        moving = Transfer.objects.filter(finished_at__isnull=True).exists()
        return sum(self._left(bucket) for bucket in self.shop.buckets) + moving

    def _left(self, bucket: BucketRef) -> int:
        with suppress(GateUnavailable, NotPreheated):
            return gate.snapshot(bucket=bucket, entries_max=0).left[self.shop.item.pk]
        return 0

    @rule(number=NUMBERS, dies=st.booleans())
    def settle(self, number: int, *, dies: bool) -> None:
        """A worker comes, and may die between the commit and Redis."""
        with dying_at(settlement, "_tell_redis", dies=dies), unavailable_is_fine():
            settle_bucket(bucket=self.shop.buckets[number], clock=timezone.now)

    @rule(number=NUMBERS, units=st.integers(1, LIMIT), step=st.sampled_from(STEPS), is_done=st.booleans())
    def bring(self, number: int, units: int, step: str, *, is_done: bool) -> None:
        """Units are brought to a bucket; whoever does it may die before or after any step."""
        want = Want(bucket=self.shop.buckets[number], item_id=self.shop.item.pk, units=units)
        with dying_at(transfers, step or "_take", dies=step != "", is_done=is_done), suppress(*AWAY):
            gather(want=want, clock=timezone.now, stays=timedelta(0))

    @rule(step=st.sampled_from(STEPS), is_done=st.booleans())
    def finish(self, step: str, *, is_done: bool) -> None:
        """The sweep takes up a transfer that was left, and may die as well."""
        for pk in open_transfers(before=timezone.now() + timedelta(seconds=1)):
            with dying_at(transfers, step or "_take", dies=step != "", is_done=is_done), suppress(*AWAY):
                finish_transfer(transfer_id=pk, clock=timezone.now)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """A buyer cancels one of his orders, and its units come back."""
        order = one_of(data, Order.objects.filter(number__startswith=f"{self.shop.pool.pk}-"))
        if order is not None:
            with suppress(TransitionRefused):
                cancel_order(number=order.number, buyer_id=order.buyer_id, now=timezone.now())

    @rule()
    def give_back(self) -> None:
        """The return job runs."""
        return_closed_orders(clock=timezone.now)

    @rule(delta=st.sampled_from([-3, -1, 1, 2]))
    def ask_for_an_adjustment(self, delta: int) -> None:
        """Somebody asks for more or fewer units, and somebody else approves."""
        ItemAdjustment.objects.create(
            item=self.shop.item,
            delta=delta,
            counterpart="WAREHOUSE",
            reason="counted again",
            state=ChangeState.APPROVED,
            requested_by=self.clerk,
            requested_at=timezone.now(),
            decided_by=self.manager,
            decided_at=timezone.now(),
        )

    @rule(dies=st.booleans())
    def adjust(self, *, dies: bool) -> None:
        """The follow-up applies what is approved; it may die after the step in Redis."""
        with dying_at(adjusting, "_end", dies=dies):
            follow_up(clock=timezone.now)

    @rule(number=NUMBERS)
    def lose_everything(self, number: int) -> None:
        """A bucket's keys vanish, and what stood in its queue alone."""
        raw_client().delete(*self.shop.buckets[number].keys)
        self.has_lost_keys = True

    @rule(number=NUMBERS, is_wanted=st.booleans())
    def rebuild(self, number: int, *, is_wanted: bool) -> None:
        """The sweep has a bucket rebuilt where it must be, or somebody does for nothing."""
        bucket = self.shop.buckets[number]
        if not is_wanted or examine(bucket=bucket):
            rebuild_bucket(bucket=bucket, clock=timezone.now)

    @rule(number=NUMBERS)
    def reconcile(self, number: int) -> None:
        """A minute is over. Nothing is ever wrong: no hand is in Redis, and what is on its way is counted."""
        report = reconcile_and_repair(bucket=self.shop.buckets[number], clock=timezone.now)
        if report.is_seen:
            assert report.is_balanced

    @invariant()
    def laws(self) -> None:
        """Law 7 in each bucket that can be compared, the books, and all units over both buckets."""
        rows = list(ItemBucket.objects.filter(item=self.shop.item).select_related("bucket"))
        for row in rows:
            bucket = BucketRef(pool_id=self.shop.pool.pk, number=row.bucket.number)
            assert balance(account=account_of(item_id=self.shop.item.pk, bucket=bucket)) == row.allocated - row.sold
            with suppress(GateUnavailable, NotPreheated, CommitsLost):
                assert [item.drift for item in compare_now(bucket=bucket).items] == [0]
        settled = Reservation.objects.filter(pool_id=self.shop.pool.pk, state="SETTLED")
        held = dict(settled.values_list("limit_key").annotate(units=Sum("quantity")).order_by())
        assert sum(row.sold for row in rows) == sum(held.values())
        assert all(units <= LIMIT for units in held.values())
        stock = Stock.objects.get(sku_id=self.shop.item.sku_id)
        assert sum(row.allocated for row in rows) + stock.on_hand == UNITS
        if not self.has_lost_keys:
            assert not Reservation.objects.filter(pool_id=self.shop.pool.pk, state="REFUSED").exists()

    def teardown(self) -> None:
        """Let everything that runs by itself run; then nothing waits, and nobody is lost."""
        for _ in range(ROUNDS_TO_REST_MAX):
            for number in range(BUCKETS):
                self.rebuild(number, is_wanted=True)
                self.settle(number, dies=False)
            self.give_back()
            self.finish("", is_done=False)
            self.adjust(dies=False)
            if self._is_at_rest():
                break
        assert self._is_at_rest()
        self.laws()
        if not self.has_lost_keys:
            rows = Reservation.objects.filter(pool_id=self.shop.pool.pk)
            assert self.accepted <= set(rows.values_list("order_no", flat=True))

    def _is_at_rest(self) -> bool:
        if Transfer.objects.filter(finished_at__isnull=True).exists():
            return False
        if ItemAdjustment.objects.filter(state=ChangeState.APPROVED).exists():
            return False
        snapshots = [gate.snapshot(bucket=bucket, entries_max=0) for bucket in self.shop.buckets]
        unsold = {
            row.bucket.number: row.allocated - row.sold
            for row in ItemBucket.objects.select_related("bucket").filter(item=self.shop.item)
        }
        left = {number: snapshot.left[self.shop.item.pk] for number, snapshot in enumerate(snapshots)}
        return left == unsold and not any(snapshot.queue_length for snapshot in snapshots)


def run(machine: type[BucketsMachine], *, examples: int, phases: tuple[Phase, ...]) -> None:
    """Run a machine so many times; wake-up calls are lost, and whoever brings units comes by chance."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wakeups, "request", lambda _bucket: None)
        patch.setattr(wakeups, "request_units", lambda **_: None)
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=STEPS_MAX,
                deadline=None,
                phases=phases,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )


AWAY: tuple[type[Exception], ...] = (GateUnavailable, NotPreheated, Crash)
