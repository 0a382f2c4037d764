"""Transfers of units from one bucket of an item to another: take, move, give, close; as seckill/transfers.py.

A transfer is a decrease of the donor and an increase of the receiver, numbered as changes by hand are, whose two
halves in MySQL are one transaction.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, cast

from tests.model.pair import Mover, Pair, PairMove, Transfer
from tests.model.rules import Model
from tests.model.scripts import adjust, take
from tests.model.state import PREHEATED, Change, Local

if TYPE_CHECKING:
    from tests.model.pair import PairScenario


class Transferring(Mover):
    """Whoever transfers, or takes up what somebody has left half done."""

    STEPS: ClassVar[dict[str, str]] = {
        "open": "seckill.transfers._open",
        "take_up": "seckill.transfers._take_up",
        "take": "seckill.gate.changing.take",
        "move": "seckill.transfers._move",
        "give": "seckill.gate.changing.adjust",
        "close": "seckill.transfers._close",
    }

    def __init__(self, *, models: tuple[Model, Model], slot: int, scenario: "PairScenario") -> None:
        self.model = models[0]
        self.slot = slot
        self.scenario = scenario

    def moves(self, pair: Pair) -> Iterator[PairMove]:
        """Yield the next step of the transfer under way, or the death before it."""
        local = pair.locals[self.slot]
        if not local:
            yield from self._open(pair) if pair.transfer is None else self._take_up(pair, pair.transfer)
            return
        transfer = cast("Transfer", local[1])
        match local[0]:
            case "take":
                yield self._take(pair, transfer)
            case "move":
                if pair.can_lock():
                    yield self._move(pair, transfer, cast("int", local[2]))
            case "give":
                yield self._give(pair, transfer, *cast("tuple[int, Local]", local[2:]))
            case _:
                if pair.can_lock():
                    is_mine = pair.transfer is not None and pair.transfer.pk == transfer.pk
                    yield self._next("close", pair.with_transfer(None) if is_mine else pair)
        if pair.faults.deaths:
            faults = pair.faults._replace(deaths=pair.faults.deaths - 1)
            yield f"dies before {local[0]} [{self.slot}]", self._put(pair._replace(faults=faults), ()), False

    def _open(self, pair: Pair) -> Iterator[PairMove]:
        if pair.begun == self.scenario.transfers_max or not pair.can_lock():
            return
        if any(half.mysql.sale != PREHEATED for half in pair.halves):
            return
        is_busy = any(half.mysql.change is not None for half in pair.halves)
        if self.model.rule("numbers_are_for_one_at_a_time", is_busy):
            return
        for which in self.scenario.donors:
            donor, receiver = pair.halves[which].mysql, pair.halves[1 - which].mysql
            numbers = donor.adj_no + 1, receiver.adj_no + 1
            transfer = Transfer(pair.begun + 1, which, self.scenario.units, *numbers, donor.epoch, 0)
            local: Local = ("take", transfer)
            if not self.model.always("take_comes_before_the_move"):
                local = ("move", transfer, transfer.units)
            after = pair._replace(begun=pair.begun + 1).with_transfer(transfer)
            yield f"open [{self.slot}]", self._put(after, local), False

    def _take_up(self, pair: Pair, transfer: Transfer) -> Iterator[PairMove]:
        if not pair.can_lock():
            return
        if transfer.moved:
            yield self._next("take_up", pair, self._to_give(pair, transfer))
            return
        transfer = transfer._replace(donor_epoch=pair.halves[transfer.donor].mysql.epoch)
        yield self._next("take_up", pair.with_transfer(transfer), ("take", transfer))

    def _to_give(self, pair: Pair, transfer: Transfer) -> Local:
        return "give", transfer, pair.halves[transfer.receiver].mysql.epoch, ("close", transfer)

    def _take(self, pair: Pair, transfer: Transfer) -> PairMove:
        half = pair.halves[transfer.donor]
        changed, redis = take(self.model, half.redis, transfer.donor_adj_no, transfer.donor_epoch, transfer.units)
        after = pair.put(transfer.donor, half._replace(redis=redis))
        if changed is None:
            return self._next("take", after)
        local: Local = ("move", transfer, -changed)
        if changed and not self.model.always("give_comes_after_the_move"):
            moved = transfer._replace(moved=-changed)
            local = ("give", moved, pair.halves[transfer.receiver].mysql.epoch, local)
        return self._next("take", after, local)

    def _move(self, pair: Pair, transfer: Transfer, taken: int) -> PairMove:
        """Make both halves in MySQL at once, in the epoch in which Redis was asked; once."""
        model, row = self.model, pair.transfer
        is_late = row is None or row.pk != transfer.pk or row.moved
        if row is None or model.rule("a_transfer_moves_once", is_late):
            return self._next("move", pair)
        donor, receiver = pair.halves[transfer.donor], pair.halves[transfer.receiver]
        if model.rule("move_checks_the_epoch", donor.mysql.epoch != transfer.donor_epoch):
            return self._next("move", pair)
        if not taken or model.rule("allocated_covers_sold", donor.mysql.allocated - taken < donor.mysql.sold):
            is_used = model.always("a_take_of_nothing_uses_its_number")
            number = transfer.donor_adj_no if is_used else donor.mysql.adj_no
            mysql = donor.mysql._replace(adj_no=number)
            return self._next("move", pair.put(transfer.donor, donor._replace(mysql=mysql)).with_transfer(None))
        moved = transfer._replace(moved=taken)
        for which, half, number, units in (
            (transfer.donor, donor, transfer.donor_adj_no, -taken),
            (transfer.receiver, receiver, transfer.receiver_adj_no, taken),
        ):
            mysql = half.mysql
            mysql = mysql._replace(allocated=mysql.allocated + units, moved=mysql.moved + units, adj_no=number)
            pair = pair.put(which, half._replace(mysql=mysql))
        pair = pair.with_transfer(moved)
        return self._next("move", pair, self._to_give(pair, moved))

    def _give(self, pair: Pair, transfer: Transfer, epoch: int, then: Local) -> PairMove:
        half = pair.halves[transfer.receiver]
        change = Change(0, transfer.receiver_adj_no, epoch)
        applied, redis = adjust(self.model, half.redis, change, transfer.moved)
        after = pair.put(transfer.receiver, half._replace(redis=redis))
        return self._next("give", after, () if applied is None else then)

    def _next(self, step: str, pair: Pair, local: Local = ()) -> PairMove:
        return f"{step} [{self.slot}]", self._put(pair, local), True

    def _put(self, pair: Pair, local: Local) -> Pair:
        return pair._replace(locals=(*pair.locals[: self.slot], local, *pair.locals[self.slot + 1 :]))
