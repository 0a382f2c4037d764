"""Two buckets of one item, and the transfer between them: each half is a world of its own, as the others are."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.model.balance import half_a_transfer
from tests.model.explore import STATES_MAX, Exploration, Flaw
from tests.model.laws import Laws
from tests.model.rules import Model
from tests.model.scenarios import Scenario, begin
from tests.model.state import TURNED_AWAY, Faults, Half, Local, State
from tests.model.steps.process import Process

NO_FAULTS = Faults()


class Transfer(NamedTuple):
    """The row of a transfer under way. ``moved`` is what MySQL has moved of it, 0 until then."""

    pk: int
    donor: int
    units: int
    donor_adj_no: int
    receiver_adj_no: int
    donor_epoch: int
    moved: int

    @property
    def receiver(self) -> int:
        """The other half."""
        return 1 - self.donor


class Pair(NamedTuple):
    """Both halves at one instant; ``begun`` counts transfers, ``locals`` is what those who transfer are about to do.

    ``was_empty`` is whether there was an instant, since somebody began to ask, at which nothing was to be had.
    """

    halves: tuple[State, State]
    transfer: Transfer | None
    begun: int
    locals: tuple[Local, ...]
    asking: Local
    was_empty: bool
    faults: Faults

    def put(self, which: int, half: State) -> "Pair":
        """Return the pair with one half replaced."""
        return self._replace(halves=(half, self.halves[1]) if which == 0 else (self.halves[0], half))

    def with_transfer(self, transfer: Transfer | None) -> "Pair":
        """Return the pair with another row; each half knows what it may still lack because of it."""
        pair = self._replace(transfer=transfer)
        for which, half in enumerate(self.halves):
            pair = pair.put(which, half._replace(mysql=half.mysql._replace(half=_half(transfer, which))))
        return pair

    def can_lock(self) -> bool:
        """Tell whether nobody holds either bucket's lock."""
        return all(half.lock < 0 for half in self.halves)

    def units_to_be_had(self) -> int:
        """What is left in both halves and on its way between them."""
        return sum(half.redis.left + half_a_transfer(half.redis, half.mysql) for half in self.halves)


PairMove = tuple[str, Pair, bool]


def _half(transfer: Transfer | None, which: int) -> Half | None:
    if transfer is None:
        return None
    if which == transfer.donor:
        is_open = not transfer.moved
        return Half(transfer.donor_adj_no, transfer.donor_epoch * is_open, -transfer.units * is_open)
    return Half(transfer.receiver_adj_no, 0, transfer.moved)


class Mover:
    """Whatever has steps in a pair."""

    def moves(self, pair: Pair) -> Iterator[PairMove]:
        """Yield what can happen next."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class In(Mover):
    """A process of one bucket, in its half of the pair; faults are counted for both."""

    which: int
    process: Process

    def moves(self, pair: Pair) -> Iterator[PairMove]:
        """Yield the process's moves."""
        before = pair.halves[self.which]._replace(faults=pair.faults)
        for step, after, is_by_itself in self.process.moves(before):
            half = after._replace(faults=NO_FAULTS)
            yield f"{'AB'[self.which]}: {step}", pair.put(self.which, half)._replace(faults=after.faults), is_by_itself


class PairLaws:
    """The laws of each half, and those of both together."""

    def __init__(self, laws: tuple[Laws, Laws]) -> None:
        self.laws = laws

    def broken_by_state(self, state: Pair) -> str:
        """Return the law that does not hold in a state, or ""."""
        if moved := sum(half.mysql.moved for half in state.halves):
            return f"law 7: transfers have made {moved:+d} units"
        found = (laws.broken_by_state(half) for laws, half in zip(self.laws, state.halves, strict=True))
        return next((law for law in found if law), "")

    def broken_by_step(self, before: Pair, step: str, after: Pair) -> str:
        """Return the law that a step has broken, or ""."""
        for which, laws in enumerate(self.laws):
            old, new = before.halves[which], after.halves[which]
            if old is not new and (law := laws.broken_by_step(old, step.partition(": ")[2] or step, new)):
                return law
            if not after.was_empty and any(told == TURNED_AWAY for told in new.told) and new.told != old.told:
                return "law 6: somebody was turned away though a unit was there all the while"
        return ""

    def broken_at_rest(self, state: Pair) -> str:
        """Return what is left undone where the system has nothing more to do, or ""."""
        if state.transfer is not None or any(state.locals):
            return f"at rest: a transfer is not done: {state.transfer}, {state.locals}"
        found = (laws.broken_at_rest(half) for laws, half in zip(self.laws, state.halves, strict=True))
        return next((law for law in found if law), "")


@dataclass(frozen=True, kw_only=True)
class PairScenario:
    """Two scenarios side by side, with transfers between them."""

    says: str
    halves: tuple[Scenario, Scenario]
    transferrings: int = 1
    transfers_max: int = 1
    units: int = 1
    donors: tuple[int, ...] = (0,)
    has_asking: bool = False
    faults: Faults = field(default_factory=Faults)
    without: frozenset[str] = frozenset()

    def explore(
        self, *, without: frozenset[str] = frozenset(), states_max: int = STATES_MAX
    ) -> tuple[Exploration[Pair], Flaw | None, Model]:
        """Look through all of it, with further rules switched off; return what was seen, and the first flaw."""
        first = self.halves[0].model(without=self.without | without)
        laws = PairLaws((_laws(self.halves[0]), _laws(self.halves[1])))
        exploration = Exploration(processes=self.movers(model=first), laws=laws)
        return exploration, exploration.run(self._begin(), states_max=states_max), first

    def movers(self, *, model: Model) -> tuple[Mover, ...]:
        """Make everything that moves: both halves' processes, those who transfer, and one who asks."""
        from tests.model.steps.asking import Asking
        from tests.model.steps.transferring import Transferring

        models = (model, Model(world=self.halves[1].world, without=model.without, applied=model.applied))
        movers: list[Mover] = [
            In(which=which, process=process)
            for which, scenario in enumerate(self.halves)
            for process in scenario.processes(model=models[which])
        ]
        movers += [Transferring(models=models, slot=slot, scenario=self) for slot in range(self.transferrings)]
        if self.has_asking:
            movers.append(Asking(models=models))
        return tuple(Watched(mover=mover) for mover in movers)

    def _begin(self) -> Pair:
        first, second = (begin(scenario)._replace(faults=NO_FAULTS) for scenario in self.halves)
        return Pair((first, second), None, 0, ((),) * self.transferrings, (), was_empty=False, faults=self.faults)


@dataclass(frozen=True, kw_only=True)
class Watched(Mover):
    """Notes with each step of a mover whether, while somebody asks, nothing is to be had."""

    mover: Mover

    def moves(self, pair: Pair) -> Iterator[PairMove]:
        """Yield the mover's moves."""
        for step, after, is_by_itself in self.mover.moves(pair):
            is_empty = bool(pair.asking or after.asking) and after.units_to_be_had() == 0
            yield (
                step,
                after._replace(was_empty=(pair.was_empty or is_empty) and bool(after.asking or pair.asking)),
                (is_by_itself),
            )


def _laws(scenario: Scenario) -> Laws:
    world = scenario.world
    return Laws(model=Model(world=world), promises=scenario.promises, units=world.units + world.warehouse)
