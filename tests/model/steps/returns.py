"""Returns: units of closed orders come back once; as seckill/returns.py."""

from collections.abc import Iterator
from typing import cast

from tests.model.rules import Model
from tests.model.scripts import restock
from tests.model.state import (
    CANCELLED,
    EXPIRED,
    LEASE_DISPUTED,
    LEASE_LIVE,
    LEASE_OVER,
    ON_SALE,
    PREHEATED,
    RETURNED,
    SETTLED,
    MySql,
    State,
    swap_at,
)
from tests.model.steps.process import Move, Process

Debts = tuple[tuple[int, int], ...]


class Returns(Process):
    """The return job, or whoever else pays debts."""

    STEPS = {
        "take_back": "seckill.returns.take_back",
        "debts_of": "seckill.returns.debts_of",
        "pay_debts": "seckill.returns.pay_debts",
        "restock": "seckill.gate.gate.restock",
        "mark": "seckill.returns.pay_debts",
    }

    def moves(self, state: State) -> Iterator[Move]:
        """Yield the job's next step, or its death before it."""
        local = state.locals[self.slot]
        if not local:
            yield from self._take_back(state)
            yield from self._list_debts(state)
            return
        debts = cast("Debts", local[1])
        match local[0]:
            case "pay_debts":
                yield self.next("pay_debts", state, ("restock", debts, state.mysql.epoch))
            case "restock":
                yield self._restock(state, debts, cast("int", local[2]))
            case _:
                yield self.next("mark", state, mysql=_crossed_off(state.mysql, cast("tuple[int, ...]", local[1])))
        yield from self.deaths(state)

    def _take_back(self, state: State) -> Iterator[Move]:
        mysql, model = state.mysql, self.model
        due = due_returns(model, mysql)
        if not due or not self.can_lock(state):
            return
        if model.rule("return_waits_for_a_rebuild", mysql.lease == LEASE_LIVE):
            return
        if model.rule("return_voids_an_old_claim", mysql.lease == LEASE_DISPUTED):
            mysql = mysql._replace(lease=LEASE_OVER)
        for order in due:
            mysql = _counted_back(model, mysql, order)
        yield self.next("take_back", state, mysql=mysql)

    def _list_debts(self, state: State) -> Iterator[Move]:
        debts = debts_of(state.mysql)
        if debts and not state.redis.missing and state.redis.run_id == state.redis.server:
            yield self.next("debts_of", state, ("pay_debts", debts))

    def _restock(self, state: State, debts: Debts, epoch: int) -> Move:
        has_run, done, redis = restock(self.model, state.redis, epoch, debts)
        if not has_run:
            return self.next("restock", state)
        if not self.model.rule("debt_is_crossed_off_when_done", len(done) < len(debts)):
            done = tuple(order for order, _ in debts)
        return self.next("restock", state, ("mark", done) if done else (), redis=redis)


def due_returns(model: Model, mysql: MySql) -> list[int]:
    """List closed orders whose units MySQL still counts as sold."""
    return [
        order
        for order, row in enumerate(mysql.rows)
        if row is not None
        and mysql.orders[order] in {CANCELLED, EXPIRED}
        and not model.rule("return_needs_a_settled_row", row.state != SETTLED)
    ]


def debts_of(mysql: MySql) -> Debts:
    """List returned orders that Redis was not told about, with the units it is owed."""
    return tuple((order, row.units_owed) for order, row in enumerate(mysql.rows) if row is not None and row.is_owed)


def _counted_back(model: Model, mysql: MySql, order: int) -> MySql:
    quantity, row = model.world.purchases[order].quantity, mysql.rows[order]
    assert row is not None
    is_live = mysql.sale == PREHEATED
    is_back = is_live and mysql.units_to[order] == ON_SALE
    if not is_back and model.always("units_that_leave_lower_allocated"):
        mysql = mysql._replace(allocated=mysql.allocated - quantity, warehouse=mysql.warehouse + quantity)
    row = row._replace(state=RETURNED, units_owed=quantity if is_back else 0, is_owed=is_live)
    return mysql._replace(sold=mysql.sold - quantity, rows=swap_at(mysql.rows, order, row))


def _crossed_off(mysql: MySql, done: tuple[int, ...]) -> MySql:
    for order in done:
        row = mysql.rows[order]
        if row is not None:
            mysql = mysql._replace(rows=swap_at(mysql.rows, order, row._replace(is_owed=False)))
    return mysql
