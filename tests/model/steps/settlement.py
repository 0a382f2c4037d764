"""Settlement: lock and read, take in and commit, tell Redis; as seckill/settlement.py."""

from collections.abc import Iterator
from typing import cast

from tests.model.intake import Decided, Intake, NoRoom, QueueForked
from tests.model.scripts import confirm, freeze, read_gate, release
from tests.model.state import FORKED, FREE, PREHEATED, REFUSED, Entry, State
from tests.model.steps.process import Move, Process


class Settlement(Process):
    """One settle worker."""

    STEPS = {
        "read_queue": "seckill.settlement._read_queue",
        "take_in": "seckill.intake.take_in",
        "confirm": "seckill.gate.gate.confirm",
        "release": "seckill.gate.gate.release",
        "close": "seckill.settlement._close",
    }

    def moves(self, state: State) -> Iterator[Move]:
        """Yield the worker's next step, or its death before it."""
        local = state.locals[self.slot]
        if not local:
            yield from self._read_queue(state)
            return
        match local[0]:
            case "take_in":
                yield from self._take_in(state, cast("tuple[Entry, ...]", local[1]))
            case "confirm":
                yield self._confirm(state, cast("tuple[Decided, ...]", local[1]), cast("int", local[2]))
            case "release":
                yield self._release(state, cast("tuple[Decided, ...]", local[1]), cast("int", local[2]))
            case _:
                _, redis = freeze(state.redis, FORKED)
                yield self.next("close", state, redis=redis)
        yield from self.deaths(state)

    def _read_queue(self, state: State) -> Iterator[Move]:
        model, redis, mysql = self.model, state.redis, state.mysql
        if not redis.queue or not self.can_lock(state) or not read_gate(model, redis):
            return
        if model.rule("settle_checks_the_gate_epoch", redis.epoch != mysql.epoch):
            return
        batch = redis.queue[: model.world.batch_size]
        if model.rule("settle_checks_entry_epochs", any(entry.epoch != mysql.epoch for entry in batch)):
            yield self.next("read_queue", state, ("close",))
        elif model.rule("settle_reads_under_the_lock", batch):
            yield self.next("read_queue", state, ("take_in", batch), lock=self.slot)
        else:
            yield self.next("read_queue", state, ("take_in", batch))

    def _take_in(self, state: State, batch: tuple[Entry, ...]) -> Iterator[Move]:
        has_locked_late = "settle_reads_under_the_lock" in self.model.without
        if not self.has_lock(state) and not has_locked_late:
            yield self.next("finds its connection gone", state)
            return
        if has_locked_late and state.lock != FREE:
            return
        try:
            mysql, decided = Intake(model=self.model, mysql=state.mysql, is_rebuild=False).take_in(batch)
        except QueueForked:
            yield self.next("take_in", state, ("close",), lock=state.frees(self.slot))
            return
        except NoRoom:
            yield self.next("take_in", state, lock=state.frees(self.slot))
            return
        local = ("confirm", decided, state.mysql.epoch)
        yield self.next("take_in", state, local, mysql=mysql, lock=state.frees(self.slot))

    def _confirm(self, state: State, decided: tuple[Decided, ...], epoch: int) -> Move:
        settled = [entry for entry, fate, _ in decided if fate != REFUSED]
        refused = tuple(one for one in decided if one[1] == REFUSED)
        redis = confirm(self.model, state.redis, epoch, settled)
        if not settled:
            return self._release(state, refused, epoch)
        return self.next("confirm", state, ("release", refused, epoch) if refused else (), redis=redis)

    def _release(self, state: State, refused: tuple[Decided, ...], epoch: int) -> Move:
        owed = [(entry, units) for entry, _, units in refused]
        return self.next("release", state, redis=release(self.model, state.redis, epoch, owed))


def may_settle(state: State) -> bool:
    """Tell whether the sweep would look at the bucket."""
    return state.mysql.sale == PREHEATED
