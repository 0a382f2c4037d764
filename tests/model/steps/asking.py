"""Who is refused by an empty bucket is told that nothing is left only when nothing is: as seckill/elsewhere.py."""

from collections.abc import Iterator
from typing import ClassVar, cast

from tests.model.pair import Mover, Pair, PairMove
from tests.model.rules import Model
from tests.model.scripts import SOLD_OUT, reserve
from tests.model.state import ACCEPTED, NOTHING, TURNED_AWAY, Local, swap_at


class Asking(Mover):
    """One process of the shop that looks through all buckets, one after another, for one buyer."""

    STEPS: ClassVar[dict[str, str]] = {
        "look": "seckill.elsewhere.units_of_item",
        "read": "seckill.gate.gate.snapshot",
        "look again": "seckill.elsewhere.units_of_item",
    }

    def __init__(self, *, models: tuple[Model, Model]) -> None:
        self.models = models
        self.model = models[0]

    def moves(self, pair: Pair) -> Iterator[PairMove]:
        """Yield the next look."""
        if not pair.asking:
            yield from self._begin(pair)
            return
        step, which, order, seen = cast("tuple[str, int, int, int]", pair.asking)
        if step == "look":
            is_moving = self.model.rule("sold_out_looks_at_transfers", pair.transfer)
            yield self._next("look", pair, () if is_moving else ("read 0", which, order, pair.begun))
        elif step.startswith("read"):
            place = int(step[-1])
            is_there = self.model.rule("sold_out_looks_at_all_buckets", pair.halves[place].redis.left)
            then: Local = ("read 1" if place == 0 else "look again", which, order, seen)
            yield self._next(step, pair, () if is_there else then)
        elif self.model.rule("sold_out_looks_at_them_again", pair.begun != seen):
            yield self._next("look again", pair, ())
        else:
            yield self._answer(pair, which, order)

    def _answer(self, pair: Pair, which: int, order: int) -> PairMove:
        """Ask the gate once more: another call of the same ticket may have been quicker."""
        half = pair.halves[which]
        code, redis = reserve(self.models[which], half.redis, order)
        if code != SOLD_OUT and self.model.always("sold_out_asks_the_gate_last"):
            told = swap_at(half.told, order, ACCEPTED)
            return self._next("accepted", pair.put(which, half._replace(redis=redis, told=told)), ())
        return self._next("sold out", pair.put(which, half._replace(told=swap_at(half.told, order, TURNED_AWAY))), ())

    def _begin(self, pair: Pair) -> Iterator[PairMove]:
        for which, half in enumerate(pair.halves):
            for order, told in enumerate(half.told):
                if told == NOTHING and reserve(self.models[which], half.redis, order)[0] == SOLD_OUT:
                    yield "somebody asks", pair._replace(asking=("look", which, order, 0)), False

    def _next(self, step: str, pair: Pair, asking: Local) -> PairMove:
        return step, pair._replace(asking=asking), True
