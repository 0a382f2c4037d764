"""Entries of the queue become fates in MySQL, for settlement and for a rebuild; as seckill/intake.py."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.model.rules import Model
from tests.model.state import LIMIT_REACHED, PENDING, PHANTOM, REFUSED, SETTLED, Entry, MySql, Row, swap_at

Decided = tuple[Entry, str, int]


class QueueForked(Exception):
    """A sequence number belongs to two orders; the transaction fails."""


class NoRoom(Exception):
    """The guarded update of sold units found no room; the transaction fails."""


@dataclass(kw_only=True)
class Intake:
    """One batch on its way into MySQL."""

    model: Model
    mysql: MySql
    is_rebuild: bool

    def take_in(self, entries: Sequence[Entry]) -> tuple[MySql, tuple[Decided, ...]]:
        """Return MySQL after the batch, and each entry with its fate and what Redis is owed."""
        before = units_held(self.model, self.mysql)
        batch: Counter[int] = Counter()
        decided = []
        for entry in entries:
            row = self.mysql.rows[entry.order]
            if row is None or not self.model.rule("known_number_keeps_its_fate", row):
                row = self._decide(entry, before, batch)
            decided.append((entry, row.state, row.units_owed))
        return self.mysql, tuple(decided)

    def _decide(self, entry: Entry, before: Counter[int], batch: Counter[int]) -> Row:
        model, mysql, purchase = self.model, self.mysql, self.model.world.purchases[entry.order]
        is_used = any(row and (row.epoch, row.seq) == (entry.epoch, entry.seq) for row in mysql.rows)
        if model.rule("numbers_are_used_once", is_used):
            raise QueueForked
        in_batch = batch[purchase.limit_key]
        held = before[purchase.limit_key]
        if model.rule("decide_counts_the_batch", in_batch):
            held += in_batch
        if model.rule("decide_checks_the_limit", held + purchase.quantity > model.world.limit):
            owed = self._owed("limit_refusal_owes_its_units", purchase.quantity)
            return self._write(entry, Row(REFUSED, entry.epoch, entry.seq, LIMIT_REACHED, owed, is_owed=False))
        if model.rule("decide_checks_the_room", mysql.allocated - mysql.sold < purchase.quantity):
            owed = 0 if model.rule("phantom_owes_nothing", not self.is_rebuild) else self._owed("", purchase.quantity)
            return self._write(entry, Row(REFUSED, entry.epoch, entry.seq, PHANTOM, owed, is_owed=False))
        if model.rule("sold_is_guarded", mysql.sold + purchase.quantity > mysql.allocated):
            raise NoRoom
        batch[purchase.limit_key] += purchase.quantity
        self.mysql = mysql._replace(sold=mysql.sold + purchase.quantity)
        return self._write(entry, Row(SETTLED, entry.epoch, entry.seq, "", 0, is_owed=False))

    def _owed(self, rule: str, quantity: int) -> int:
        if self.is_rebuild or (rule and not self.model.always(rule)):
            return 0
        return quantity

    def _write(self, entry: Entry, row: Row) -> Row:
        mysql = self.mysql
        orders = swap_at(mysql.orders, entry.order, PENDING) if row.state == SETTLED else mysql.orders
        self.mysql = mysql._replace(rows=swap_at(mysql.rows, entry.order, row), orders=orders)
        return row


def units_held(model: Model, mysql: MySql) -> Counter[int]:
    """Sum the settled units of each limit key."""
    held: Counter[int] = Counter()
    for order, row in enumerate(mysql.rows):
        if row is not None and row.state == SETTLED:
            purchase = model.world.purchases[order]
            held[purchase.limit_key] += purchase.quantity
    return held
