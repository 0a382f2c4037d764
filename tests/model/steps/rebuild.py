"""Rebuild: claim, freeze, drain, fill staging, swap; as seckill/rebuild.py. Killed anywhere, it starts again."""

from collections.abc import Iterator
from typing import cast

from seckill.rebuild import SEQ_MARGIN
from tests.model.intake import Intake, NoRoom, QueueForked, units_held
from tests.model.rules import Model
from tests.model.scripts import Frozen, GateFields, Staging, freeze, receipt_of, swap
from tests.model.state import LEASE_DISPUTED, LEASE_LIVE, LEASE_OVER, PREHEATED, MySql, State
from tests.model.steps.process import Move, Process


class Rebuild(Process):
    """One rebuild after another: the sweep's, or an operator's that nobody needed."""

    STEPS = {
        "claim": "seckill.rebuild.claim",
        "freeze": "seckill.gate.staging.freeze",
        "drain": "seckill.rebuild.drain_survivors",
        "fill_staging": "seckill.rebuild._fill_staging",
        "stage_gate": "seckill.rebuild._gate_fields",
        "swap": "seckill.gate.staging.swap",
        "let_go": "seckill.rebuild.let_go",
        "claim runs out": "seckill.rebuild._lease_end",
    }

    def moves(self, state: State) -> Iterator[Move]:
        """Yield the rebuild's next step, or its death before it."""
        local = state.locals[self.slot]
        if not local:
            yield from self._claim(state)
            return
        match local[0]:
            case "freeze":
                yield self._freeze(state, cast("int", local[1]))
            case "drain":
                yield from self._drain(state, cast("Frozen", local[1]))
            case "fill_staging":
                yield self._fill_staging(state, cast("Frozen", local[1]), cast("int", local[2]))
            case "stage_gate":
                yield from self._stage_gate(
                    state, cast("Frozen", local[1]), cast("int", local[2]), cast("Staging", local[3])
                )
            case "swap":
                frozen, gate, staging = cast("tuple[Frozen, GateFields, Staging]", local[1:])
                _, redis = swap(self.model, state.redis, frozen, gate, staging)
                local = ("let_go", frozen.token)
                yield self.next("swap", state, local, redis=redis, lock=state.frees(self.slot))
            case _:
                yield self.next("let_go", state, mysql=let_go(state.mysql, cast("int", local[1])))
        yield from self._lease_ends(state, token_of(local))
        yield from self.deaths(state)

    def _claim(self, state: State) -> Iterator[Move]:
        mysql = state.mysql
        if not self.can_lock(state) or mysql.tokens == (self.model.world.rebuilds_max or -1):
            return
        is_wanted = is_damaged(state)
        if not is_wanted and not state.faults.rebuilds_by_hand:
            return
        if self.model.rule("rebuild_needs_a_sale_that_is_on", mysql.sale != PREHEATED):
            return
        if self.model.rule("a_live_claim_bars_others", mysql.lease == LEASE_LIVE):
            return
        token = mysql.tokens + 1
        mysql = mysql._replace(claim=token, tokens=token, lease=LEASE_LIVE)
        if is_wanted:
            yield self.next("claim", state, ("freeze", token), mysql=mysql)
        else:
            faults = state.faults._replace(rebuilds_by_hand=state.faults.rebuilds_by_hand - 1)
            move = self.next("claim", state._replace(faults=faults), ("freeze", token), mysql=mysql)
            yield move._replace(is_by_itself=False)

    def _freeze(self, state: State, token: int) -> Move:
        frozen, redis = freeze(state.redis, token)
        if not self.model.rule("rebuild_freezes", token):
            redis = state.redis
        return self.next("freeze", state, ("drain", frozen), redis=redis)

    def _drain(self, state: State, frozen: Frozen) -> Iterator[Move]:
        model, mysql = self.model, state.mysql
        if not self.can_lock(state):
            return
        if model.rule("drain_requires_the_claim", not has_claim(mysql, frozen.token)):
            yield self.next("drain", state, ("let_go", frozen.token))
            return
        after = drained(model, state, frozen)
        if after is None:
            yield self.next("drain", state, ("let_go", frozen.token))
        else:
            yield self.next("drain", state, ("fill_staging", frozen, after.epoch), mysql=after)

    def _fill_staging(self, state: State, frozen: Frozen, epoch: int) -> Move:
        if self.model.rule("staging_renews_the_claim", not has_claim(state.mysql, frozen.token)):
            return self.next("fill_staging", state, ("let_go", frozen.token))
        held = units_held(self.model, state.mysql)
        buyers = tuple(held[key] for key in range(self.model.world.limit_keys))
        staging = Staging(buyers, tuple(receipt_of(row) for row in state.mysql.rows))
        return self.next("fill_staging", state, ("stage_gate", frozen, epoch, staging))

    def _stage_gate(self, state: State, frozen: Frozen, epoch: int, staging: Staging) -> Iterator[Move]:
        model, mysql = self.model, state.mysql
        if not self.can_lock(state):
            return
        is_lost = model.rule("swap_requires_the_claim", not has_claim(mysql, frozen.token))
        if is_lost or model.rule("swap_requires_its_epoch", mysql.epoch != epoch):
            yield self.next("stage_gate", state, ("let_go", frozen.token))
            return
        gate = GateFields(
            epoch=epoch,
            seq=max(_highest_seq(mysql), frozen.seq) + SEQ_MARGIN,
            adj_no=mysql.adj_no,
            repair_no=mysql.repair_no,
            left=mysql.allocated - mysql.sold,
        )
        yield self.next("stage_gate", state, ("swap", frozen, gate, staging), lock=self.slot)

    def _lease_ends(self, state: State, token: int) -> Iterator[Move]:
        """A rebuild that is slow, by a clock behind the others', may still believe in its claim."""
        if state.faults.slow_rebuilds and state.mysql.claim == token and state.mysql.lease == LEASE_LIVE:
            faults = state.faults._replace(slow_rebuilds=state.faults.slow_rebuilds - 1)
            mysql = state.mysql._replace(lease=LEASE_DISPUTED)
            yield Move(f"claim runs out [{self.slot}]", state._replace(mysql=mysql, faults=faults), is_by_itself=False)


class Clock(Process):
    """Time ends the claim of a rebuild that is dead."""

    STEPS = {"claim runs out": "seckill.rebuild._lease_end"}

    def __init__(self, *, slots: tuple[int, ...], model: Model, slot: int) -> None:
        super().__init__(model=model, slot=slot)
        self.slots = slots

    def moves(self, state: State) -> Iterator[Move]:
        """Yield the end of a claim that nobody alive holds."""
        mysql = state.mysql
        if mysql.lease == LEASE_OVER or mysql.claim in (token_of(state.locals[slot]) for slot in self.slots):
            return
        yield Move("claim runs out", state._replace(mysql=mysql._replace(lease=LEASE_OVER)), is_by_itself=True)


def is_damaged(state: State) -> bool:
    """Tell whether the sweep would have the bucket rebuilt; see ``seckill.sweep.examine``."""
    redis = state.redis
    return bool(redis.missing or redis.run_id != redis.server or redis.frozen or redis.epoch != state.mysql.epoch)


def token_of(local: tuple[object, ...]) -> int:
    """Return the token that a rebuild works with, 0 when it is idle."""
    return next((part if isinstance(part, int) else part.token for part in local if isinstance(part, (int, Frozen))), 0)


def drained(model: Model, state: State, frozen: Frozen) -> MySql | None:
    """Return MySQL with what survives in the queue, under a new epoch; None when the transaction fails."""
    mysql = state.mysql
    epoch = max(mysql.epoch, frozen.epoch)
    if model.rule("drain_raises_the_epoch", epoch):
        epoch += 1
    entries = state.redis.queue if model.rule("drain_keeps_what_survived", state.redis.queue) else ()
    if model.rule("drain_renumbers", entries):
        first = max(frozen.seq, _highest_seq(mysql)) + SEQ_MARGIN
        entries = tuple(entry._replace(epoch=epoch, seq=first + n) for n, entry in enumerate(entries))
    try:
        mysql, _ = Intake(model=model, mysql=mysql, is_rebuild=True).take_in(entries)
    except (QueueForked, NoRoom):
        return None
    return mysql._replace(epoch=epoch)


def has_claim(mysql: MySql, token: int) -> bool:
    return mysql.claim == token and mysql.lease != LEASE_OVER


def let_go(mysql: MySql, token: int) -> MySql:
    return mysql._replace(claim=0, lease=LEASE_OVER) if mysql.claim == token else mysql


def _highest_seq(mysql: MySql) -> int:
    return max((row.seq for row in mysql.rows if row is not None), default=0)
