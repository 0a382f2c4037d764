"""Law 7 in numbers: what is missing in Redis, counting what is in flight. As seckill/reconciliation.py counts it."""

from tests.model.rules import Model, World
from tests.model.state import (
    CONFIRMED_RECEIPT,
    QUEUED_RECEIPT,
    REFUSED,
    MySql,
    Redis,
    State,
)

Debts = tuple[tuple[int, int], ...]


def drift(model: Model, redis: Redis, mysql: MySql, debts: Debts) -> int:
    """Return units missing in Redis if positive, units too many if negative, by the rules of reconciliation."""
    world = model.world
    head = redis.queue[: world.batch_size]
    known = [entry for entry in head if mysql.rows[entry.order] is not None]
    known_units = sum(world.purchases[entry.order].quantity for entry in known)
    if len(redis.queue) <= len(head):
        in_flight = sum(world.purchases[entry.order].quantity for entry in head)
    else:
        in_flight = redis.queued
    if model.rule("compare_knows_what_is_settled", known_units):
        in_flight -= known_units
    if not model.rule("compare_counts_the_queue", in_flight):
        in_flight = 0
    refused = sum(row.units_owed for entry in known if (row := mysql.rows[entry.order]) and row.state == REFUSED)
    if not model.rule("compare_counts_refusals_owed", refused):
        refused = 0
    owed = sum(units for order, units in debts if _is_unpaid(model, redis.receipts[order]))
    if not model.rule("compare_counts_debts", owed):
        owed = 0
    half = half_a_change(world, redis, mysql)
    if not model.rule("compare_counts_half_a_change", half):
        half = 0
    moving = half_a_transfer(redis, mysql)
    if model.rule("compare_counts_half_a_transfer", moving):
        half += moving
    return mysql.allocated - mysql.sold - redis.left - in_flight - refused - owed - half


def half_a_change(world: World, redis: Redis, mysql: MySql) -> int:
    """Return the units of a manual change that one side has and the other not yet: what Redis lacks meanwhile."""
    change = mysql.change
    if change is None:
        return 0
    delta = world.deltas[change.which]
    if delta > 0:
        return delta if redis.adj_no == change.number - 1 else 0
    is_half = redis.adj_no == change.number and redis.epoch == change.epoch
    return -redis.adj_applied if is_half else 0


def half_a_transfer(redis: Redis, mysql: MySql) -> int:
    """Return the units that an open transfer keeps out of this bucket: taken already, or not given yet."""
    half = mysql.half
    if half is None:
        return 0
    if half.units > 0:
        return half.units if redis.adj_no == half.number - 1 else 0
    is_taken = redis.adj_no == half.number and redis.epoch == half.epoch
    return -redis.adj_applied if is_taken else 0


def _is_unpaid(model: Model, receipt: str) -> bool:
    return not model.rule("compare_skips_paid_debts", receipt not in {QUEUED_RECEIPT, CONFIRMED_RECEIPT})


def drift_now(world: World, state: State) -> int:
    """Return the drift at this instant, by the laws, whatever rules a mutant has switched off."""
    mysql, redis = state.mysql, state.redis
    in_flight = refused = 0
    for entry in redis.queue:
        row = mysql.rows[entry.order]
        if row is None:
            in_flight += world.purchases[entry.order].quantity
        elif row.state == REFUSED and redis.receipts[entry.order] == QUEUED_RECEIPT:
            refused += row.units_owed
    owed = sum(
        row.units_owed
        for order, row in enumerate(mysql.rows)
        if row is not None and row.is_owed and redis.receipts[order] in {QUEUED_RECEIPT, CONFIRMED_RECEIPT}
    )
    half = half_a_change(world, redis, mysql) + half_a_transfer(redis, mysql)
    return mysql.allocated - mysql.sold - redis.left - in_flight - refused - owed - half
