"""The gate's scripts as pure functions; each is one instant. Named like the files in seckill/gate/lua."""

from collections.abc import Sequence
from typing import NamedTuple

from seckill.gate.codes import ReserveCode
from seckill.members import RECEIPT_STATES
from tests.model.rules import Model
from tests.model.state import (
    CONFIRMED_RECEIPT,
    NO_RECEIPT,
    QUEUED_RECEIPT,
    REFUSED_RECEIPT,
    RETURNED_RECEIPT,
    Change,
    Entry,
    Redis,
    Row,
    swap_at,
)

RESERVED = ReserveCode.RESERVED.value
ALREADY_YOURS = ReserveCode.ALREADY_YOURS.value
SOLD_OUT = ReserveCode.SOLD_OUT.value
LIMIT_REACHED = ReserveCode.LIMIT_REACHED.value
ENDED = ReserveCode.ENDED.value
NOT_PREHEATED = ReserveCode.NOT_PREHEATED.value
UNAVAILABLE = ReserveCode.UNAVAILABLE.value


# Stock, gate, buyers, receipts, queue.
KEYS_COUNT = 5


class Frozen(NamedTuple):
    """What a freeze found; see ``seckill.gate.staging.Frozen``."""

    token: int
    run_id: int
    last_id: int
    seq: int
    epoch: int


def read_gate(model: Model, redis: Redis) -> bool:
    """Tell whether a script may go on: all keys are there, and the server was not restarted since it was checked."""
    if model.rule("scripts_miss_missing_keys", redis.missing):
        return False
    return not model.rule("scripts_check_the_run_id", redis.run_id != redis.server)


def reserve(model: Model, redis: Redis, order: int) -> tuple[int, Redis]:
    """Return the code and Redis after one purchase."""
    key, quantity = model.world.purchases[order].limit_key, model.world.purchases[order].quantity
    if (code := _refusal(model, redis, order)) is not None:
        return code, redis
    seq = redis.seq + 1
    return RESERVED, redis._replace(
        left=redis.left - quantity,
        queued=redis.queued + quantity,
        buyers=swap_at(redis.buyers, key, redis.buyers[key] + quantity),
        receipts=swap_at(redis.receipts, order, QUEUED_RECEIPT),
        queue=(*redis.queue, Entry(order, redis.epoch, seq)),
        seq=seq,
        last_id=seq,
    )


def _refusal(model: Model, redis: Redis, order: int) -> int | None:
    """Return the code of the first check that does not let a purchase pass, in the order of reserve.lua."""
    key, quantity = model.world.purchases[order].limit_key, model.world.purchases[order].quantity
    code = None
    if not read_gate(model, redis):
        code = NOT_PREHEATED if len(redis.missing) == KEYS_COUNT else UNAVAILABLE
    elif model.rule("reserve_replays_first", redis.receipts[order] != NO_RECEIPT):
        code = ALREADY_YOURS
    elif model.rule("reserve_stops_when_frozen", redis.frozen):
        code = UNAVAILABLE
    elif model.rule("reserve_stops_at_the_end", redis.is_over):
        code = ENDED
    elif model.rule("reserve_checks_the_limit", redis.buyers[key] + quantity > model.world.limit):
        code = LIMIT_REACHED
    elif model.rule("reserve_checks_the_stock", redis.left < quantity):
        code = SOLD_OUT
    return code


def freeze(redis: Redis, token: int) -> tuple[Frozen, Redis]:
    """Close the gate, if there is one."""
    frozen = Frozen(token, redis.server, redis.last_id, redis.seq, redis.epoch)
    return frozen, redis if "gate" in redis.missing else redis._replace(frozen=token)


def seal(redis: Redis) -> Redis:
    """Nothing but settlement changes the bucket from now on; the caller has looked whether it is there and over."""
    return redis._replace(is_sealed=True)


def confirm(model: Model, redis: Redis, epoch: int, entries: Sequence[Entry]) -> Redis:
    """MySQL has these reservations."""
    if not read_gate(model, redis) or model.rule("confirm_checks_the_epoch", redis.epoch != epoch):
        return redis
    for entry in entries:
        redis, is_removed = _xdel(model, redis, entry)
        if is_removed and redis.receipts[entry.order] == QUEUED_RECEIPT:
            redis = redis._replace(receipts=swap_at(redis.receipts, entry.order, CONFIRMED_RECEIPT))
    return redis


def release(model: Model, redis: Redis, epoch: int, refused: Sequence[tuple[Entry, int]]) -> Redis:
    """MySQL has refused these; with each, the units it is owed."""
    if not read_gate(model, redis) or model.rule("confirm_checks_the_epoch", redis.epoch != epoch):
        return redis
    for entry, units_owed in refused:
        redis, is_removed = _xdel(model, redis, entry)
        if not is_removed or redis.receipts[entry.order] != QUEUED_RECEIPT:
            continue
        redis = redis._replace(receipts=swap_at(redis.receipts, entry.order, REFUSED_RECEIPT))
        if model.rule("release_gives_back_what_is_owed", units_owed):
            redis = redis._replace(left=redis.left + units_owed)
        if model.always("release_frees_the_buyer"):
            redis = _free_buyer(model, redis, entry.order)
    return redis


def _xdel(model: Model, redis: Redis, entry: Entry) -> tuple[Redis, bool]:
    is_there = entry in redis.queue
    if model.rule("confirm_counts_what_it_removed", not is_there):
        return redis, False
    queue = tuple(other for other in redis.queue if other != entry)
    return redis._replace(queue=queue, queued=redis.queued - model.world.purchases[entry.order].quantity), True


def _free_buyer(model: Model, redis: Redis, order: int) -> Redis:
    key, quantity = model.world.purchases[order].limit_key, model.world.purchases[order].quantity
    return redis._replace(buyers=swap_at(redis.buyers, key, max(0, redis.buyers[key] - quantity)))


def restock(
    model: Model, redis: Redis, epoch: int, due: Sequence[tuple[int, int]]
) -> tuple[bool, tuple[int, ...], Redis]:
    """Returned orders, each with its units back: whether the script ran, and those that are done."""
    if not read_gate(model, redis) or model.rule("restock_checks_the_epoch", redis.epoch != epoch):
        return False, (), redis
    if model.rule("restock_stops_at_the_seal", redis.is_sealed):
        return False, (), redis
    done = []
    for order, units_back in due:
        receipt = redis.receipts[order]
        if model.rule("restock_waits_for_confirm", receipt == QUEUED_RECEIPT):
            continue
        done.append(order)
        if receipt == QUEUED_RECEIPT or model.rule("restock_only_confirmed", receipt != CONFIRMED_RECEIPT):
            continue
        receipts = swap_at(redis.receipts, order, RETURNED_RECEIPT)
        redis = redis._replace(left=redis.left + units_back, receipts=receipts)
        if model.always("restock_frees_the_buyer"):
            redis = _free_buyer(model, redis, order)
    return True, tuple(done), redis


def repair(model: Model, redis: Redis, epoch: int, seen_repair_no: int, delta: int) -> Redis:
    """Change the units left by a delta, where nothing else came in between."""
    if not read_gate(model, redis):
        return redis
    if model.rule("repair_checks_epoch_and_freeze", redis.epoch != epoch or redis.frozen):
        return redis
    if model.rule("repair_stops_at_the_seal", redis.is_sealed):
        return redis
    if model.rule("repair_checks_the_number", redis.repair_no != seen_repair_no):
        return redis
    left = redis.left + delta
    if model.rule("repair_never_goes_below_zero", left < 0):
        left = 0
    return redis._replace(left=left, repair_no=redis.repair_no + 1)


def adjust(model: Model, redis: Redis, change: Change, delta: int) -> tuple[int | None, Redis]:
    """Apply a numbered change; return the units applied, now or when it was first tried, None when it cannot be now."""
    if not read_gate(model, redis):
        return None, redis
    if (
        model.rule("adjust_checks_the_epoch", redis.epoch != change.epoch)
        or model.rule("adjust_stops_when_frozen", redis.frozen)
        or model.rule("adjust_stops_at_the_seal", redis.is_sealed)
    ):
        return None, redis
    if model.rule("adjust_is_done_once", redis.adj_no == change.number):
        return redis.adj_applied, redis
    if model.rule("adjust_skips_what_is_over", redis.adj_no > change.number):
        return 0, redis
    if model.rule("adjust_waits_for_its_turn", redis.adj_no + 1 != change.number):
        return None, redis
    applied = 0 if model.rule("adjust_takes_all_or_nothing", redis.left + delta < 0) else delta
    return applied, redis._replace(left=redis.left + applied, adj_no=change.number, adj_applied=applied)


def take(model: Model, redis: Redis, number: int, epoch: int, units: int) -> tuple[int | None, Redis]:
    """Take as many units as are left, up to so many; return the change, None when it cannot be made now."""
    wanted = min(units, redis.left) if model.rule("take_takes_what_is_there", redis.left < units) else units
    is_first = redis.adj_no < number
    return adjust(model, redis, Change(0, number, epoch), -wanted if is_first else 0)


class Staging(NamedTuple):
    """What a rebuild has written beside the bucket."""

    buyers: tuple[int, ...]
    receipts: tuple[str, ...]


class GateFields(NamedTuple):
    """The gate and the stock of a new epoch; see ``seckill.gate.staging.GateFields``."""

    epoch: int
    seq: int
    adj_no: int
    repair_no: int
    left: int


def swap(model: Model, redis: Redis, frozen: Frozen, gate: GateFields, staging: Staging) -> tuple[bool, Redis]:
    """Put the staging into place, only where nothing has changed since the freeze."""
    has_gate = "gate" not in redis.missing
    if (
        model.rule("swap_checks_the_run_id", redis.server != frozen.run_id)
        or model.rule("swap_checks_the_token", has_gate and redis.frozen != frozen.token)
        or model.rule("swap_checks_the_epoch", has_gate and redis.epoch >= gate.epoch)
        or model.rule("swap_checks_the_last_id", redis.last_id != frozen.last_id)
    ):
        return False, redis
    return True, Redis(
        server=redis.server,
        run_id=frozen.run_id,
        epoch=gate.epoch,
        frozen=0,
        seq=gate.seq,
        adj_no=gate.adj_no,
        adj_applied=0,
        repair_no=gate.repair_no,
        left=gate.left,
        queued=0,
        buyers=staging.buyers,
        receipts=staging.receipts,
        queue=(),
        last_id=0,
        missing=(),
        is_over=redis.is_over,
        is_sealed=False,
    )


def receipt_of(row: Row | None) -> str:
    """What a rebuild writes for a row; see ``seckill.members.RECEIPT_STATES``."""
    return NO_RECEIPT if row is None else _RECEIPTS[row.state]


_RECEIPTS = {state.value: receipt.value for state, receipt in RECEIPT_STATES.items()}
