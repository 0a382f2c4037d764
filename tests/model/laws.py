"""The laws, as questions about states, about single steps, and about states at rest."""

from dataclasses import dataclass

from tests.model.balance import drift_now
from tests.model.intake import units_held
from tests.model.rules import Model
from tests.model.scripts import receipt_of
from tests.model.state import (
    ACCEPTED,
    ARCHIVED,
    CANCELLED,
    CLEARED,
    CONFIRMED_RECEIPT,
    DONE,
    EXPIRED,
    FREE,
    NO_ORDER,
    NO_RECEIPT,
    PENDING,
    PHANTOM,
    QUEUED_RECEIPT,
    REFUSED,
    RETURNED,
    SETTLED,
    TURNED_AWAY,
    State,
    is_open,
)

HOLDS = {QUEUED_RECEIPT, CONFIRMED_RECEIPT}


@dataclass(frozen=True, kw_only=True)
class Promises:
    """What a scenario promises beside what always holds."""

    accepts_are_orders: bool = True
    raises_no_alarm: bool = True
    is_balanced: bool = True
    never_exceeds: bool = True
    is_fenced: bool = True
    marks_are_true: bool = True
    hands_raise: int = 0


class Laws:
    """The laws for one scenario: where a hand was in Redis, or a rule is missing, less can be promised."""

    def __init__(self, *, model: Model, promises: Promises, units: int) -> None:
        self.model = model
        self.promises = promises
        self.units = units

    def broken_by_state(self, state: State) -> str:
        """Return the law that does not hold in a state, or ""."""
        return self._books(state) or self._buyers(state) or self._balance(state)

    def _books(self, state: State) -> str:
        mysql, world = state.mysql, self.model.world
        if not 0 <= mysql.sold <= mysql.allocated:
            return f"law 1: {mysql.sold} sold of {mysql.allocated}"
        held = units_held(self.model, mysql)
        if any(units > world.limit for units in held.values()):
            return f"law 2: units held {dict(held)}"
        if mysql.sold != held.total():
            return f"law 1: {mysql.sold} counted as sold, {held.total()} settled"
        if mysql.allocated + mysql.warehouse != self.units + mysql.moved:
            return f"law 4: {mysql.allocated} allocated and {mysql.warehouse} in the warehouse of {self.units}"
        return self._numbers(state)

    def _numbers(self, state: State) -> str:
        if state.redis.left < 0:
            return f"law 7: {state.redis.left} left"
        if state.mysql.change is None and (units := self._allocated(state)) != state.mysql.allocated:
            return f"law 10: {state.mysql.allocated} allocated, where changes and returns make {units}"
        numbers = [(row.epoch, row.seq) for row in state.mysql.rows if row is not None]
        if len(set(numbers)) != len(numbers):
            return f"law 3: a sequence number was used twice: {numbers}"
        return ""

    def _allocated(self, state: State) -> int:
        """What was planned, and what changes, returns and the archive have made of it."""
        mysql, world = state.mysql, self.model.world
        units = world.units + sum(mysql.changed) + mysql.moved
        for purchase, row in zip(world.purchases, mysql.rows, strict=True):
            if row is not None and row.state == RETURNED and not row.units_owed:
                units -= purchase.quantity
        return mysql.sold if mysql.archive is not None and mysql.archive.stage in {CLEARED, DONE} else units

    def _buyers(self, state: State) -> str:
        rows, redis = state.mysql.rows, state.redis
        queued = {entry.order for entry in redis.queue}
        for order, told in enumerate(state.told):
            row = rows[order]
            if told == TURNED_AWAY and (row is not None or order in queued):
                return f"law 6: {order} was turned away, and has a reservation"
            if told != ACCEPTED or state.has_forgotten:
                continue
            if row is None and order not in queued:
                return f"law 6: {order} was accepted, and is nowhere"
            if row is not None and row.state == REFUSED and self.promises.accepts_are_orders:
                return f"law 6: {order} was accepted and refused, though nothing was lost"
        return ""

    def _balance(self, state: State) -> str:
        if self.promises.raises_no_alarm and state.mysql.run is not None:
            return f"false alarm: a reconciliation found {state.mysql.run.drift:+d}"
        drift = drift_now(self.model.world, state) if _is_comparable(state) else 0
        if drift < 0 and self.promises.never_exceeds:
            return f"law 7: {-drift} units are on sale that are not there"
        if drift and self.promises.is_balanced:
            return f"law 7: open, and off by {drift:+d}"
        return ""

    def broken_by_step(self, before: State, step: str, after: State) -> str:
        """Return the law that a step has broken, or ""."""
        if self.promises.is_fenced and after.redis.queue is not before.redis.queue and step.startswith("reserve"):
            redis = before.redis
            if redis.missing or redis.frozen or redis.run_id != redis.server:
                return "law 8: a gate has sold that was missing, frozen or not checked since a restart"
        if law := self._archive(before, step, after):
            return law
        return "" if after.mysql is before.mysql else self._fates(before, after)

    def _fates(self, before: State, after: State) -> str:
        for order, (old, new) in enumerate(zip(before.mysql.rows, after.mysql.rows, strict=True)):
            if old is not None and old != new and not _is_allowed(old.state, new and new.state):
                return f"law 3: {order} has gone from {old.state} to {new and new.state}"
        for order, (was, now) in enumerate(zip(before.mysql.orders, after.mysql.orders, strict=True)):
            if was != now and was not in {NO_ORDER, PENDING}:
                return f"law 3: order {order} has gone from {was} to {now}"
        return ""

    def _archive(self, before: State, step: str, after: State) -> str:
        run = before.mysql.archive
        if run is not None and step.startswith("compare_buyers") and run.copied != before.redis.buyers:
            return "archive: the copy is not what stands in Redis"
        return "" if after.redis is before.redis else self._behind_the_seal(before, step, after)

    def _behind_the_seal(self, before: State, step: str, after: State) -> str:
        if not before.redis.is_sealed or not step.endswith("]"):
            return ""
        if after.redis.missing:
            return "" if self._is_kept(before) else "archive: Redis is removed, and not all of it is kept"
        is_allowed = step.startswith(("confirm", "release", "close", "freeze", "seal"))
        return "" if is_allowed else "archive: Redis has changed behind the seal"

    def _is_kept(self, state: State) -> bool:
        run, rows = state.mysql.archive, state.mysql.rows
        if run is None or any(rows[entry.order] is None for entry in state.redis.queue):
            return False
        return run.is_redis_lost or run.copied == state.redis.buyers or not self.promises.marks_are_true

    def broken_at_rest(self, state: State) -> str:
        """Return what is left undone where the system has nothing more to do, or ""."""
        if self.model.world.is_ended and state.mysql.sale != ARCHIVED:
            return "at rest: the sale is not archived"
        return self._unfinished(state) or ("" if self.model.world.is_ended else self._differs(state))

    def _unfinished(self, state: State) -> str:
        if state.lock != FREE or any(state.locals):
            return f"at rest: somebody waits for ever: {state.locals}"
        if state.mysql.sale != ARCHIVED and not is_open(state):
            return "at rest: the gate stays shut"
        if state.mysql.change is not None or len(state.mysql.changed) < len(self.model.world.deltas):
            return f"at rest: a change is not done: {state.mysql.change}, {state.mysql.changed}"
        for order, row in enumerate(state.mysql.rows):
            if row is None:
                continue
            if row.is_owed:
                return f"at rest: the return of {order} is still owed"
            if (state.mysql.orders[order] in {CANCELLED, EXPIRED}) != (row.state == RETURNED):
                return f"at rest: {order} is {row.state}, its order {state.mysql.orders[order]}"
        return ""

    def _differs(self, state: State) -> str:
        redis, mysql = state.redis, state.mysql
        if redis.adj_no != mysql.adj_no:
            return f"at rest: Redis has change {redis.adj_no}, MySQL {mysql.adj_no}"
        if redis.queue or redis.queued:
            return f"at rest: the queue is {redis.queue}, its counter {redis.queued}"
        if redis.left + mysql.sold != mysql.allocated + self._still_too_high(state):
            return f"law 7 at rest: {redis.left} left and {mysql.sold} sold of {mysql.allocated}"
        for order, receipt in enumerate(redis.receipts):
            if receipt != receipt_of(mysql.rows[order]):
                return f"at rest: the receipt of {order} says {receipt}"
        return self._marks(state)

    def _marks(self, state: State) -> str:
        redis, mysql = state.redis, state.mysql
        held = units_held(self.model, mysql)
        marks = {key: units for key, units in enumerate(redis.buyers) if units}
        if marks != {key: units for key, units in held.items() if units} and self.promises.marks_are_true:
            return f"at rest: the buyers' marks are {marks}, settled {dict(held)}"
        for order, told in enumerate(state.told):
            if told == ACCEPTED and mysql.rows[order] is None and redis.receipts[order] != NO_RECEIPT:
                return f"law 6: {order} can neither have its order nor try again"
        return ""

    def _still_too_high(self, state: State) -> int:
        """Where nobody repairs, what hands have raised goes away only by a refused phantom, which owes nothing."""
        if not self.promises.hands_raise:
            return 0
        phantoms = sum(row is not None and row.reason == PHANTOM for row in state.mysql.rows)
        return self.promises.hands_raise - state.faults.tampers - phantoms


def _is_comparable(state: State) -> bool:
    """Tell whether law 7 is asked: in an open gate, and behind the seal until what is left over is taken out."""
    redis, run = state.redis, state.mysql.archive
    if run is None:
        return is_open(state)
    is_there = not redis.missing and redis.run_id == redis.server and not redis.frozen and redis.epoch == run.epoch
    return is_there and run.stage not in {CLEARED, DONE} and not run.is_redis_lost


def _is_allowed(old: str, new: str | None) -> bool:
    return old == new or (old == SETTLED and new == RETURNED)
