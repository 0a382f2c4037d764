"""Buyers: each order number is sent, perhaps again; a reply may be lost on its way."""

from collections.abc import Iterator

from tests.model.scripts import ALREADY_YOURS, ENDED, NOT_PREHEATED, RESERVED, SOLD_OUT, UNAVAILABLE, reserve
from tests.model.state import ACCEPTED, NOTHING, PREHEATED, REPLY_LOST, TURNED_AWAY, State, swap_at
from tests.model.steps.process import Move, Process


class Buyers(Process):
    """Everybody who may send a ticket. They have no local state: a call is one script."""

    STEPS = {"reserve": "seckill.purchase.purchase"}

    def moves(self, state: State) -> Iterator[Move]:
        """Yield every call that may come."""
        for order, told in enumerate(state.told):
            if told in {NOTHING, REPLY_LOST}:
                yield from self._call(state, order, is_repeat=told == REPLY_LOST)
            elif state.faults.repeats:
                faults = state.faults._replace(repeats=state.faults.repeats - 1)
                yield from self._call(state._replace(faults=faults), order, is_repeat=True)

    def _call(self, state: State, order: int, *, is_repeat: bool) -> Iterator[Move]:
        is_remembered = is_repeat and state.remembers_sold_out
        if is_remembered and not self.model.rule("a_repeat_reaches_the_gate", is_remembered):
            yield self._answer(state, order, TURNED_AWAY)
            return
        code, redis = reserve(self.model, state.redis, order)
        if code == UNAVAILABLE:
            return
        if code in {NOT_PREHEATED, ENDED}:
            yield from self._look_up(state, order)
            return
        if code == SOLD_OUT and self.model.world.is_spread:
            return  # What one bucket does not have may be in another: see the pair's ``Asking``.
        after = state._replace(redis=redis)
        if code == SOLD_OUT and self.model.world.has_sold_out_memory:
            after = after._replace(remembers_sold_out=True)
        yield self._answer(after, order, ACCEPTED if code in {RESERVED, ALREADY_YOURS} else TURNED_AWAY)
        if code == RESERVED and state.faults.lost_replies:
            faults = state.faults._replace(lost_replies=state.faults.lost_replies - 1)
            yield self._answer(after._replace(faults=faults), order, REPLY_LOST)

    def _look_up(self, state: State, order: int) -> Iterator[Move]:
        """Nobody is told that it is over before MySQL was asked; a lost bucket of a sale that is on is an outage."""
        if self.model.rule("a_repeat_is_looked_up", state.mysql.rows[order] is not None):
            yield self._answer(state, order, ACCEPTED)
        elif state.mysql.sale != PREHEATED or not state.redis.missing:
            yield self._answer(state, order, TURNED_AWAY)

    def _answer(self, state: State, order: int, told: int) -> Move:
        words = {ACCEPTED: "accepted", TURNED_AWAY: "turned away", REPLY_LOST: "the reply is lost"}[told]
        return Move(
            f"reserve {order}: {words}", state._replace(told=swap_at(state.told, order, told)), is_by_itself=False
        )
