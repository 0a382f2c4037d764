"""Manual changes of an item's units: numbered, one at a time; up MySQL first, down Redis first.

As seckill/adjusting.py.
"""

from collections.abc import Iterator
from typing import cast

from tests.model.scripts import adjust
from tests.model.state import PREHEATED, Change, MySql, State
from tests.model.steps.process import Move, Process


class Adjusting(Process):
    """Whoever applies what was approved, or takes up what somebody has left half done."""

    STEPS = {
        "begin": "seckill.adjusting._begin",
        "take_up": "seckill.adjusting._begin",
        "refuse": "seckill.adjusting._refuse",
        "adjust": "seckill.gate.changing.adjust",
        "finish": "seckill.adjusting._end",
        "end_off_sale": "seckill.adjusting._end_off_sale",
    }

    def moves(self, state: State) -> Iterator[Move]:
        """Yield the next step of the change under way, or the death before it."""
        local = state.locals[self.slot]
        if not local:
            yield from self._begin(state)
            return
        change = cast("Change", local[1])
        if local[0] == "adjust":
            applied, redis = adjust(self.model, state.redis, change, self._delta(change))
            yield self.next("adjust", state, () if applied is None else ("finish", change, applied), redis=redis)
        elif self.can_lock(state):
            mysql = self._finished(state.mysql, change, cast("int", local[2]))
            yield self.next("finish", state, mysql=mysql)
        yield from self.deaths(state)

    def _delta(self, change: Change) -> int:
        return self.model.world.deltas[change.which]

    def _begin(self, state: State) -> Iterator[Move]:
        """Give the next change its number, or take up the one under way; off sale, end it."""
        mysql, index = state.mysql, len(state.mysql.changed)
        if not self.can_lock(state) or index == len(self.model.world.deltas):
            return
        delta = self.model.world.deltas[index]
        if mysql.sale != PREHEATED:
            yield self.next("end_off_sale", state, mysql=_off_sale(mysql, delta))
        elif mysql.change is not None:
            change = mysql.change._replace(epoch=mysql.epoch)
            yield self.next("take_up", state, ("adjust", change), mysql=mysql._replace(change=change))
        elif self.model.rule("numbers_are_for_one_at_a_time", mysql.half):
            return
        elif mysql.warehouse < delta:
            yield self.next("refuse", state, mysql=_ended(mysql, 0))
        else:
            change = Change(index, mysql.adj_no + 1, mysql.epoch)
            mysql = self._numbered(mysql._replace(change=change), change, delta)
            yield self.next("begin", state, ("adjust", change), mysql=mysql)

    def _numbered(self, mysql: MySql, change: Change, delta: int) -> MySql:
        """Make the half that MySQL makes at the beginning."""
        if delta > 0:
            is_first = self.model.always("up_goes_to_mysql_first")
        else:
            is_first = not self.model.always("down_goes_to_redis_first")
        return _moved(mysql, delta)._replace(adj_no=change.number) if is_first else mysql

    def _finished(self, mysql: MySql, change: Change, applied: int) -> MySql:
        model, delta = self.model, self._delta(change)
        is_late = mysql.change is None or mysql.change.which != change.which
        if model.rule("a_change_is_finished_once", is_late):
            return mysql
        if mysql.sale != PREHEATED:
            return _off_sale(mysql, delta)
        is_in_mysql = mysql.adj_no == change.number
        if delta > 0 and is_in_mysql:
            return _ended(mysql, delta)
        if model.rule("down_checks_the_epoch", delta < 0 and not is_in_mysql and mysql.epoch != change.epoch):
            return mysql
        is_refused = applied != delta or model.rule("allocated_covers_sold", mysql.allocated + delta < mysql.sold)
        if is_refused:
            is_numbered = model.always("a_refusal_uses_its_number")
            return _ended(mysql._replace(adj_no=change.number if is_numbered else mysql.adj_no), 0)
        if not is_in_mysql:
            mysql = _moved(mysql, delta)
        return _ended(mysql._replace(adj_no=change.number), delta)


def _moved(mysql: MySql, delta: int) -> MySql:
    return mysql._replace(allocated=mysql.allocated + delta, warehouse=mysql.warehouse - delta)


def _ended(mysql: MySql, units: int) -> MySql:
    return mysql._replace(change=None, changed=(*mysql.changed, units))


def _off_sale(mysql: MySql, delta: int) -> MySql:
    """Off sale, what MySQL has made stands, and everything else is not made any more."""
    return _ended(mysql, delta if delta > 0 and mysql.change is not None else 0)
