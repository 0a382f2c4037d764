"""Every interleaving, breadth first, so that the first counterexample is a shortest one."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

S = TypeVar("S", bound=tuple[Any, ...])
S_contra = TypeVar("S_contra", bound=tuple[Any, ...], contravariant=True)

# More than any scenario has: a mutant that never ends is caught by this.
STATES_MAX = 150_000


class Mover(Protocol[S]):
    """Whatever has steps: each with its words, the state after it, and whether the system does it by itself."""

    def moves(self, state: S) -> Iterator[tuple[str, S, bool]]:
        """Yield what can happen next."""


class Judge(Protocol[S_contra]):
    """The laws of a world."""

    def broken_by_state(self, state: S_contra) -> str:
        """Return the law that does not hold in a state, or ""."""

    def broken_by_step(self, before: S_contra, step: str, after: S_contra) -> str:
        """Return the law that a step has broken, or ""."""

    def broken_at_rest(self, state: S_contra) -> str:
        """Return what is left undone where the system has nothing more to do, or ""."""


@dataclass(frozen=True, kw_only=True)
class Flaw:
    """A law that does not hold, and the shortest way there."""

    law: str
    steps: tuple[str, ...]
    state: tuple[Any, ...]

    def __str__(self) -> str:
        lines = [f"{number:3} {step}" for number, step in enumerate(self.steps, 1)]
        return "\n".join([self.law, *lines, *(f"    {part}" for part in self.state)])


@dataclass(kw_only=True)
class Exploration(Generic[S]):
    """Everything that can happen from one state on."""

    processes: Sequence[Mover[S]]
    laws: Judge[S]
    is_rest_asked: bool = True
    states: list[S] = field(default_factory=list)
    number_of: dict[S, int] = field(default_factory=dict)
    came_by: list[tuple[int, str]] = field(default_factory=list)
    ways_to: list[list[int]] = field(default_factory=list)
    resting: list[int] = field(default_factory=list)

    def run(self, begin: S, *, states_max: int = STATES_MAX) -> Flaw | None:
        """Look at every state that can be reached; return the first flaw, or None."""
        self._meet(begin, (-1, ""))
        todo = deque([0])
        while todo:
            number = todo.popleft()
            flaw = self._look_at(number, todo)
            if len(self.states) > states_max:
                flaw = self._flaw(f"there are more than {states_max} states", number)
            if flaw is not None:
                return flaw
        return self._restless() if self.is_rest_asked else None

    def _look_at(self, number: int, todo: deque[int]) -> Flaw | None:
        """Judge a state and every step from it, and put what is new on the list."""
        before, laws, rests = self.states[number], self.laws, True
        if law := laws.broken_by_state(before):
            return self._flaw(law, number)
        for process in self.processes:
            for step, after, is_by_itself in process.moves(before):
                if law := laws.broken_by_step(before, step, after):
                    return self._flaw(law, number, step, after)
                met = self.number_of.get(after)
                if met is None:
                    met = self._meet(after, (number, step))
                    todo.append(met)
                if is_by_itself:
                    rests = False
                    self.ways_to[met].append(number)
        if rests and self.is_rest_asked:
            self.resting.append(number)
            if law := laws.broken_at_rest(before):
                return self._flaw(law, number)
        return None

    def _restless(self) -> Flaw | None:
        """Return a state from which the system cannot come to rest by itself, if there is one."""
        can_rest = set(self.resting)
        todo = list(self.resting)
        while todo:
            for number in self.ways_to[todo.pop()]:
                if number not in can_rest:
                    can_rest.add(number)
                    todo.append(number)
        for number in range(len(self.states)):
            if number not in can_rest:
                return self._flaw("it does not come to rest", number)
        return None

    def _meet(self, state: S, came_by: tuple[int, str]) -> int:
        number = len(self.states)
        self.number_of[state] = number
        self.states.append(state)
        self.came_by.append(came_by)
        self.ways_to.append([])
        return number

    def _flaw(self, law: str, number: int, step: str = "", after: S | None = None) -> Flaw:
        steps = [step] if step else []
        at = number
        while at > 0:
            at, by = self.came_by[at]
            steps.append(by)
        return Flaw(law=law, steps=tuple(reversed(steps)), state=after or self.states[number])
