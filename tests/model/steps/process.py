"""What every process of the model is: a slot for its local state, and the moves it can make from a state."""

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

from tests.model.rules import Model
from tests.model.state import FREE, Local, MySql, Redis, State


class Move(NamedTuple):
    """One step: what is done, the state after it, and whether the system does it without anybody's wish or fault."""

    step: str
    after: State
    is_by_itself: bool


class Process:
    """Base of the processes. ``STEPS`` names each step's place in the code."""

    STEPS: ClassVar[dict[str, str]] = {}

    def __init__(self, *, model: Model, slot: int) -> None:
        self.model = model
        self.slot = slot

    def moves(self, state: State) -> Iterator[Move]:
        """Yield what can happen next."""
        raise NotImplementedError

    def next(
        self,
        step: str,
        state: State,
        local: Local = (),
        *,
        redis: Redis | None = None,
        mysql: MySql | None = None,
        lock: int | None = None,
    ) -> Move:
        """Return the move that does a step, writes what is given, and leaves this process about to do ``local``."""
        after = state._replace(
            redis=state.redis if redis is None else redis,
            mysql=state.mysql if mysql is None else mysql,
            lock=state.lock if lock is None else lock,
            locals=state.put(self.slot, local),
        )
        return Move(f"{step} [{self.slot}]", after, is_by_itself=True)

    def deaths(self, state: State) -> Iterator[Move]:
        """Yield the death of this process before its next step; its transaction is rolled back."""
        if state.faults.deaths and state.locals[self.slot]:
            faults = state.faults._replace(deaths=state.faults.deaths - 1)
            after = state._replace(locals=state.put(self.slot, ()), lock=state.frees(self.slot), faults=faults)
            yield Move(f"dies before {state.locals[self.slot][0]} [{self.slot}]", after, is_by_itself=False)

    def has_lock(self, state: State) -> bool:
        """Tell whether this process still holds the bucket's lock."""
        return state.lock == self.slot

    def can_lock(self, state: State) -> bool:
        """Tell whether the bucket's lock is free."""
        return state.lock == FREE
