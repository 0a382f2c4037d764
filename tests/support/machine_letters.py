"""The shop of random operations and faults, with what operators do: letters decided, queues put aside, windows moved.

And with what a hand or a death leaves behind: numbers no column can hold, and the claim and the keys of a dead rebuild.
"""

from contextlib import suppress
from datetime import timedelta

from django.utils import timezone
from hypothesis import strategies as st
from hypothesis.stateful import rule

from inventory.changes import ChangeState
from seckill import rebuild, replay
from seckill.attempt_tables import SettleAttempt
from seckill.change_tables import WindowChange
from seckill.errors import DecisionRefused, GateUnavailable, RebuildRefused
from seckill.followup import follow_up
from seckill.gate import changing, gate, parked
from seckill.gate.connection import raw_client
from seckill.models import Bucket, DeadLetter, FlashSale
from seckill.pausing import pause_item, resume_item
from seckill.rebuild import Orders, Queue, bury, rebuild_bucket
from seckill.replay import Verdict, decide_letter, take_up_decisions
from seckill.settlement import settle_bucket
from tests.support.machine import dying_at, one_of, unavailable_is_fine
from tests.support.machine_money import MoneyMachine

HUGE = "99999999999990"
Decision = DeadLetter.Decision


class LetterMachine(MoneyMachine):
    """A shop whose operators are busy."""

    @rule(dies=st.booleans())
    def park(self, *, dies: bool) -> None:
        """The head of the queue has killed its workers, and is parked; whoever does so may die before it is dropped."""
        queue = self.shop.bucket.keys[4]
        if raw_client().type(queue) != b"stream" or not (head := raw_client().xrange(queue, count=1)):
            return
        SettleAttempt.objects.update_or_create(
            pool=self.shop.pool,
            bucket_no=0,
            defaults={
                "token": "dead",
                "head": head[0][0].decode(),
                "deaths": 2,
                "size_max": 1,
                "started_at": timezone.now(),
            },
        )
        # Its unit shows as a leak from now on, and its receipt does not outlive a rebuild.
        self.was_tampered_with = self.has_lost_receipts = True
        with dying_at(gate, "drop", dies=dies), unavailable_is_fine():
            settle_bucket(bucket=self.shop.bucket, clock=timezone.now)

    @rule(data=st.data(), decision=st.sampled_from(list(Decision)), death=st.sampled_from(["", "before", "after"]))
    def decide(self, data: st.DataObject, decision: DeadLetter.Decision, death: str) -> None:
        """An operator decides a letter; the process may die around the step in Redis."""
        letter = one_of(data, DeadLetter.objects.filter(pool=self.shop.pool, concluded_at=None))
        name = "requeue" if decision is Decision.REPLAY else "conclude"
        if letter is not None:
            with dying_at(parked, name, dies=death != "", is_done=death == "after"):
                self._decide(letter, decision)

    def _decide(self, letter: DeadLetter, decision: DeadLetter.Decision) -> None:
        verdict = Verdict(letter_id=letter.pk, decision=decision, actor_id=None, reason="he called")
        with suppress(DecisionRefused, GateUnavailable):
            decide_letter(verdict=verdict, clock=timezone.now)

    @rule()
    def take_up(self) -> None:
        """The sweep carries out what was decided."""
        take_up_decisions(clock=lambda: timezone.now() + timedelta(seconds=replay.TAKE_UP_SECONDS + 1))

    @rule()
    def put_aside(self) -> None:
        """An operator has the queue put aside by a rebuild."""
        self.was_tampered_with = self.has_lost_receipts = True
        with suppress(RebuildRefused):
            rebuild_bucket(bucket=self.shop.bucket, clock=timezone.now, orders=Orders(queue=Queue.IS_PUT_ASIDE))

    @rule(step=st.sampled_from(["drain_survivors", "_fill_staging", "_swap"]), is_done=st.booleans())
    def rebuild_and_die(self, step: str, *, is_done: bool) -> None:
        """A rebuild dies at a step: its claim, its token and its keys stay."""
        with (
            dying_at(rebuild, step, dies=True, is_done=is_done),
            dying_at(rebuild, "let_go", dies=True),
            suppress(RebuildRefused),
        ):
            rebuild_bucket(bucket=self.shop.bucket, clock=timezone.now)

    @rule()
    def outlast(self) -> None:
        """The claim of whoever died runs out."""
        Bucket.objects.filter(pool=self.shop.pool, claim_until__isnull=False).update(
            claim_until=timezone.now() - timedelta(seconds=1)
        )

    @rule()
    def sweep(self) -> None:
        """The sweep leaves a bucket alone that somebody alive rebuilds."""
        with suppress(RebuildRefused):
            super().sweep()

    @rule()
    def rebuild_for_nothing(self) -> None:
        """Somebody rebuilds a sound bucket."""
        with suppress(RebuildRefused):
            super().rebuild_for_nothing()

    @rule(field=st.sampled_from(["epoch", "seq", "settled_seq", "adj_no", "repair_no"]))
    def spoil_a_number(self, field: str) -> None:
        """Somebody writes a number into the gate that no column can hold."""
        if raw_client().hexists(self.shop.bucket.keys[1], "epoch"):
            raw_client().hset(self.shop.bucket.keys[1], field, HUGE)
            self.was_tampered_with = True

    @rule(is_paused=st.booleans())
    def pause(self, *, is_paused: bool) -> None:
        """An operator pauses the item, or resumes it."""
        with suppress(GateUnavailable):
            (pause_item if is_paused else resume_item)(item_id=self.shop.item.pk)

    @rule(hours=st.integers(1, 3), dies=st.booleans(), is_done=st.booleans())
    def move_window(self, *, hours: int, dies: bool, is_done: bool) -> None:
        """The sale is to close later; whoever carries that into Redis may die."""
        sale = FlashSale.objects.get(pk=self.shop.sale.pk)
        WindowChange.objects.create(
            sale=sale,
            opens_at=sale.opens_at,
            closes_at=timezone.now() + timedelta(hours=hours),
            reason="many came late",
            state=ChangeState.APPROVED,
            requested_by=self.clerk,
            requested_at=timezone.now(),
            decided_by=self.manager,
            decided_at=timezone.now(),
        )
        with dying_at(changing, "set_window", dies=dies, is_done=is_done):
            follow_up(clock=timezone.now)

    def come_to_rest(self) -> None:
        """Everybody has died who was to die, and all letters are decided: replayed where that can be."""
        super().come_to_rest()
        self.outlast()
        with suppress(GateUnavailable):
            bury(bucket=self.shop.bucket, now=timezone.now())  # as the sweep does it
        self.take_up()
        for letter in DeadLetter.objects.filter(pool=self.shop.pool, concluded_at=None, decision=""):
            for decision in (Decision.REPLAY, Decision.REFUSE):
                self._decide(letter, decision)

    def is_at_rest(self) -> bool:
        """No letter waits, no window, and no key of a dead rebuild is left in Redis."""
        letters = DeadLetter.objects.filter(pool=self.shop.pool, concluded_at=None)
        windows = WindowChange.objects.filter(sale=self.shop.sale, state=ChangeState.APPROVED)
        return not letters.exists() and not windows.exists() and super().is_at_rest() and self._is_tidy()

    def _is_tidy(self) -> bool:
        keys = {key.decode() for key in raw_client().scan_iter(f"seckill:{{{self.shop.pool.pk}:0}}:*")}
        return keys == set(self.shop.bucket.keys)
