"""A shop under random operations and faults, on the real stores, against the laws.

Each run has a sale of its own. Whatever happened, the shop must come to rest by what runs by itself:
sweep, rebuild, settlement, returns, reconciliation.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeVar, cast

import pytest
from django.db.models import Model, Q, QuerySet, Sum
from django.utils import timezone
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from inventory.changes import ChangeState
from inventory.models import Stock, StockMovement
from orders.errors import TransitionRefused
from orders.models import Order
from orders.services import cancel_order, expire_orders
from seckill import adjusting, settlement, wakeups
from seckill.adjusting import pending_item_adjustments
from seckill.change_tables import ItemAdjustment
from seckill.errors import CommitsLost, GateUnavailable, NotPreheated, PurchaseRefused
from seckill.followup import follow_up
from seckill.gate import changing, gate
from seckill.gate.connection import raw_client
from seckill.gate.keys import BucketRef
from seckill.members import receipt_of
from seckill.models import ItemBucket, Reservation
from seckill.purchase import purchase
from seckill.rebuild import rebuild_bucket
from seckill.reconciliation import BucketReport, compare_now
from seckill.repair import reconcile_and_repair
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from seckill.sweep import examine
from seckill.tickets import read_ticket
from tests.support.shop import make_buyers, open_sale, ticket_of

UNITS = 4
LIMIT = 2
BUYERS = 4
ROUNDS_TO_REST_MAX = 20
STEPS_MAX = 20

M = TypeVar("M", bound=Model)
Machine = TypeVar("Machine", bound=RuleBasedStateMachine)


class Crash(Exception):
    """Stands for a process that died at a step."""


class ShopMachine(RuleBasedStateMachine):
    """One item, four units, a limit of two, four buyers with many tickets.

    Wake-up calls go into a list: they are delivered late, twice, or never.
    """

    messages: ClassVar[list[BucketRef]] = []

    def __init__(self) -> None:
        super().__init__()
        self.messages.clear()
        self.shop = open_sale(units=UNITS, limit=LIMIT)
        self.buyers = make_buyers(BUYERS)
        self.clerk, self.manager = make_buyers(2)
        self.tickets: list[str] = []
        self.accepted: dict[str, int] = {}
        self.saved: list[bytes] | None = None
        self.was_rolled_back = False
        self.was_tampered_with = False
        self.has_lost_receipts = False

    @initialize(buys=st.lists(st.sampled_from([1, 2]), min_size=1, max_size=BUYERS), is_late=st.booleans())
    def begin(self, *, buys: list[int], is_late: bool) -> None:
        """Some are quick, and a worker may be as well."""
        for buyer, quantity in enumerate(buys):
            self.buy(buyer=buyer, quantity=quantity)
        if not is_late:
            self.settle(dies=False)

    @rule()
    def arrive(self) -> None:
        """The next buyer has his order at once.

        Hypothesis prefers the first rule by number of arguments and name: it had better be one that does something.
        """
        self.buy(buyer=len(self.tickets) % BUYERS, quantity=1)
        self.settle(dies=False)

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

    @rule(dies=st.booleans())
    def settle(self, *, dies: bool) -> None:
        """A worker comes, and may die between the commit and Redis."""
        with dying_at(settlement, "_tell_redis", dies=dies), unavailable_is_fine():
            settle_bucket(bucket=self.shop.bucket, clock=timezone.now)

    @precondition(lambda self: self.messages)
    @rule(times=st.integers(0, 2))
    def deliver(self, times: int) -> None:
        """A wake-up call arrives, or twice, or is lost."""
        bucket = self.messages.pop()
        for _ in range(times):
            with unavailable_is_fine():
                settle_bucket(bucket=bucket, clock=timezone.now)

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """A buyer cancels one of his orders."""
        order = one_of(data, self.orders())
        if order is not None:
            try:
                cancel_order(number=order.number, buyer_id=order.buyer_id, now=timezone.now())
            except TransitionRefused:
                order.refresh_from_db()
                assert order.state != "PENDING_PAYMENT"

    @rule()
    def expire(self) -> None:
        """All unpaid orders run out of time."""
        self.orders().update(pay_by_at=timezone.now() - timedelta(seconds=1))
        expire_orders(now=timezone.now(), batch_size=100)

    @rule(dies=st.booleans())
    def give_back(self, *, dies: bool) -> None:
        """The return job runs, and may die before it has told Redis."""
        with dying_at(gate, "restock", dies=dies):
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

    @rule(death=st.sampled_from(["", "before Redis", "after Redis"]))
    def adjust(self, death: str) -> None:
        """The follow-up applies what is approved; it may die around the step in Redis."""
        module, name = (adjusting, "_end") if death == "after Redis" else (changing, "adjust")
        with dying_at(module, name, dies=death != ""):
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
        """Laws 1 to 4 in MySQL at every moment, and law 7 while nobody has interfered."""
        unit, stock = ItemBucket.objects.get(item_id=self.shop.item.pk), Stock.objects.get(sku_id=self.shop.item.sku_id)
        rows = list(Reservation.objects.filter(pool_id=self.shop.pool.pk))
        settled = {row.order_no: row for row in rows if row.state == "SETTLED"}
        orders = list(self.orders())
        # Law 1: what is sold is what somebody holds.
        assert unit.sold == sum(row.quantity for row in settled.values()) <= unit.allocated
        # Law 2: nobody holds more than the limit.
        assert all(units <= LIMIT for units in units_held(rows).values())
        # Laws 3 and 4: who has an order that is not closed has his units; who gave them back once has not.
        assert {o.number for o in orders if o.closed_at is None or o.units_due_at is not None} == set(settled)
        # Every unit is on sale, sold, or in the warehouse, or was written off; and the ledger says so.
        written_off = sum(o.quantity for o in orders if o.units_to == "WRITTEN_OFF" and o.number not in settled)
        assert unit.allocated + stock.on_hand == UNITS + self.units_adjusted(counterpart="OUTSIDE") - written_off
        assert self._ledger() == (unit.allocated - unit.sold, stock.on_hand)
        if not self.was_tampered_with and not self.was_rolled_back:
            # A bucket that awaits its rebuild cannot be compared.
            with suppress(GateUnavailable, NotPreheated, CommitsLost):
                assert [item.drift for item in compare_now(bucket=self.shop.bucket).items] == [0]

    def teardown(self) -> None:
        """Let everything that runs by itself run; then nobody is lost and nothing is left over."""
        for n in range(ROUNDS_TO_REST_MAX):
            self.sweep()
            self.settle(dies=False)
            self.give_back(dies=False)
            self.adjust(death="")
            self.come_to_rest()
            self._reconcile(ahead=timedelta(seconds=31 * (n + 1)))
            if self.is_at_rest():
                break
        assert self.is_at_rest()
        if not self.was_rolled_back:
            fates = set(Reservation.objects.filter(pool_id=self.shop.pool.pk).values_list("order_no", flat=True))
            assert set(self.accepted) <= fates
        if not self.was_rolled_back and not self.was_tampered_with:
            assert not Reservation.objects.filter(pool_id=self.shop.pool.pk, state="REFUSED").exists()

    def come_to_rest(self) -> None:
        """Whatever else runs by itself."""

    def is_at_rest(self) -> bool:
        """Nothing waits, nothing is owed, and all that is in Redis is right."""
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
        wanted = {row.order_no: str(receipt_of(row)) for row in rows}
        return fields(self.shop.bucket.keys[3]) == wanted and fields(self.shop.bucket.keys[2]) == {
            key: str(units) for key, units in units_held(rows).items()
        }

    def _ledger(self) -> tuple[int, int]:
        """What the ledger has on the item's account, and on the warehouse's."""
        sums = StockMovement.objects.filter(sku_id=self.shop.item.sku_id).values_list("account").annotate(Sum("units"))
        units = dict(sums.order_by())
        return units.get(f"item:{self.shop.item.pk}:0", 0), units.get("warehouse", 0)

    def orders(self) -> QuerySet[Order]:
        """All orders of the sale."""
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
def dying_at(module: Any, name: str, *, dies: bool, is_done: bool = False) -> Iterator[None]:
    """Make a function the last thing a process does, or, ``is_done``, the last it has done; nothing unless it dies."""
    function = getattr(module, name)

    def die(*args: object, **arguments: object) -> None:
        if is_done:
            function(*args, **arguments)
        raise Crash

    with pytest.MonkeyPatch.context() as patch:
        if dies:
            patch.setattr(module, name, die)
        try:
            yield
        except Crash:
            return


def one_of(data: st.DataObject, rows: QuerySet[M]) -> M | None:
    """Draw one of the rows; None where there are none."""
    found = list(rows.order_by("pk"))
    return data.draw(st.sampled_from(found)) if found else None


def units_held(rows: Iterable[Reservation]) -> Counter[str]:
    """Units each buyer has by settled reservations."""
    held = Counter[str]()
    for row in rows:
        if row.state == "SETTLED":
            held[row.limit_key] += row.quantity
    return held


def only(machine: type[Machine], *names: str) -> type[Machine]:
    """The same shop under the same laws with no other rules than these; all else it can do, it does when asked."""
    others = {r.function.__name__: r.function for r in machine.setup_state().rules if r.function.__name__ not in names}
    return cast("type[Machine]", type("Narrow", (machine,), others))


def run(machine: type[ShopMachine], *, examples: int, phases: tuple[Phase, ...]) -> None:
    """Run a machine so many times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wakeups, "request", machine.messages.append)
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
