"""Reconciliation and repair: law 7 by numbers; the safe direction at once, the other with proof.

As seckill/reconciliation.py and seckill/repair.py.
"""

from collections.abc import Iterator
from typing import cast

from tests.model.balance import Debts, drift, drift_now
from tests.model.scripts import read_gate, repair
from tests.model.state import MySql, Redis, Run, State, is_open
from tests.model.steps.process import Move, Process
from tests.model.steps.returns import debts_of

NEW = False


class Reconciliation(Process):
    """One run after another, each with what repair follows from it."""

    STEPS = {
        "debts_of": "seckill.reconciliation._compare",
        "snapshot": "seckill.gate.gate.snapshot",
        "compare": "seckill.reconciliation._compare",
        "plan": "seckill.repair._plan",
        "repair": "seckill.gate.gate.repair",
        "proof seconds pass": "seckill.repair.PROOF_SECONDS",
    }

    def moves(self, state: State) -> Iterator[Move]:
        """Yield the run's next step, or its death before it."""
        local = state.locals[self.slot]
        if not local:
            yield from self._start(state)
            yield from self._time_passes(state)
            return
        match local[0]:
            case "snapshot":
                yield self._snapshot(state, cast("Debts", local[1]))
            case "compare":
                yield self._compare(state, cast("Debts", local[1]), cast("Redis", local[2]))
            case "plan":
                mysql = state.mysql._replace(repair_no=cast("int", local[3]) + 1)
                yield self.next("plan", state, ("repair", *local[1:]), mysql=mysql)
            case _:
                delta, epoch, repair_no = cast("tuple[int, int, int]", local[1:])
                yield self.next("repair", state, redis=repair(self.model, state.redis, epoch, repair_no, delta))
        yield from self.deaths(state)

    def _time_passes(self, state: State) -> Iterator[Move]:
        """Half a minute passes: whatever was in flight at the last run is done."""
        run, busy = state.mysql.run, [local for local in state.locals if local]
        if run is not None and not run.is_old and not busy and not state.redis.queue and not debts_of(state.mysql):
            mysql = state.mysql._replace(run=run._replace(is_old=True))
            yield self.next("proof seconds pass", state, mysql=mysql)

    def _start(self, state: State) -> Iterator[Move]:
        """Begin: by the schedule a few times at any moment, and by itself as long as numbers differ."""
        if not self.can_lock(state) or not read_gate(self.model, state.redis):
            return
        local = ("snapshot", debts_of(state.mysql))
        if is_open(state) and _can_be_repaired(state, drift_now(self.model.world, state)):
            yield self.next("debts_of", state, local, lock=self.slot)
        elif state.faults.reconciles:
            faults = state.faults._replace(reconciles=state.faults.reconciles - 1)
            move = self.next("debts_of", state._replace(faults=faults), local, lock=self.slot)
            yield move._replace(is_by_itself=False)

    def _snapshot(self, state: State, debts: Debts) -> Move:
        redis, is_shut = state.redis, state.redis.frozen or state.redis.epoch != state.mysql.epoch
        is_barred = self.model.rule("compare_skips_a_bucket_in_rebuild", is_shut)
        is_barred = is_barred or self.model.rule("compare_skips_a_sealed_bucket", redis.is_sealed)
        if is_barred or not read_gate(self.model, redis):
            return self.next("snapshot", state, lock=state.frees(self.slot))
        return self.next("snapshot", state, ("compare", debts, redis))

    def _compare(self, state: State, debts: Debts, redis: Redis) -> Move:
        if self.model.rule("compare_holds_the_lock", not self.has_lock(state)):
            return self.next("finds its connection gone", state)
        late = debts_of(state.mysql)
        if late != debts and not self.model.always("compare_lists_debts_first"):
            debts = late
        found = drift(self.model, redis, state.mysql, debts)
        delta, run = self._judge(state.mysql, redis, found)
        local = ("plan", delta, redis.epoch, redis.repair_no) if delta else ()
        mysql = state.mysql._replace(run=run)
        return self.next("compare", state, local, mysql=mysql, lock=state.frees(self.slot))

    def _judge(self, mysql: MySql, redis: Redis, found: int) -> tuple[int, Run | None]:
        """Return the delta to repair by, and the run to remember."""
        model, last = self.model, mysql.run
        key = (redis.epoch, redis.adj_no, redis.repair_no)
        if last is not None and model.rule("proof_ends_with_a_repair", last[2:] != key):
            last = None
        if found == 0:
            return 0, None
        if found < 0:
            return found if model.rule("excess_is_lowered_at_once", found) else 0, Run(found, NEW, *key)
        before = found if last is None else last.drift
        is_old = last is not None and last.is_old
        is_least = model.rule("a_leak_is_raised_by_the_least", before != found)
        least = min(before, found) if is_least else max(before, found)
        if model.rule("a_leak_needs_an_old_run", not is_old):
            return 0, Run(least, NEW, *key)
        is_proved = least > 0 and model.rule("a_leak_is_raised_with_proof", found)
        return least if is_proved else 0, Run(least, is_old, *key)


def _can_be_repaired(state: State, found: int) -> bool:
    """Tell whether a repair can change anything: of what was sold already, nothing is left to be lowered."""
    return found > 0 or (found < 0 and state.redis.left > 0)
