"""The archive: seal, drain, copy, compare, clear, remove; each stage in MySQL, so that it goes on where it was killed.

As seckill/archive.py: whatever a step writes, it writes only where the run still stands as the step has read it.
"""

from collections.abc import Iterator
from typing import cast

from tests.model.intake import units_held
from tests.model.scripts import Frozen, freeze, read_gate, seal
from tests.model.state import (
    ARCHIVED,
    ARCHIVING,
    CHECKED,
    CLAIMED,
    CLEARED,
    COMPARED,
    COPIED,
    DONE,
    DRAINED,
    LEASE_DISPUTED,
    LEASE_LIVE,
    LEASE_OVER,
    PREHEATED,
    SEALED,
    ArchiveRun,
    MySql,
    State,
)
from tests.model.steps.faults import KEYS, without_keys
from tests.model.steps.process import Move, Process
from tests.model.steps.rebuild import drained, has_claim, is_damaged, let_go
from tests.model.steps.returns import debts_of


class Archive(Process):
    """A worker of the archive."""

    STEPS = {
        "look": "seckill.archive_begin._look_at",
        "begin": "seckill.archive_begin.begin",
        "seal_bucket": "seckill.archive_steps.seal_bucket",
        "drain_bucket": "seckill.archive_steps.drain_bucket",
        "copy_buyers": "seckill.archive_buyers.copy_buyers",
        "copy_again": "seckill.archive_buyers._copy_again",
        "compare_buyers": "seckill.archive_buyers.compare_buyers",
        "check_receipts": "seckill.archive_receipts.check_receipts",
        "clear_leftovers": "seckill.archive_steps.clear_leftovers",
        "unlink_bucket": "seckill.archive_steps.unlink_bucket",
        "reach": "seckill.archive_run.reach",
        "overtaken": "seckill.archive_run.Overtaken",
        "finish_from_mysql": "seckill.archive_loss.finish_from_mysql",
        "claim": "seckill.rebuild.claim",
        "freeze": "seckill.gate.staging.freeze",
        "drain": "seckill.rebuild.drain_survivors",
        "note_loss": "seckill.archive_loss._note_loss",
        "let_go": "seckill.rebuild.let_go",
    }

    def moves(self, state: State) -> Iterator[Move]:
        """Yield the worker's next step, or its death before it."""
        local, run = state.locals[self.slot], state.mysql.archive
        if not local:
            if run is not None and run.stage != DONE:
                yield from self._step(state, run)
            elif state.mysql.sale == PREHEATED and state.redis.is_over and not is_damaged(state):
                yield self.next("look", state, ("begin",))
            return
        match local[0]:
            case "begin":
                yield from self._begin(state)
            case "reach":
                yield self._reach(state, cast("ArchiveRun", local[1]), cast("ArchiveRun", local[2]))
            case _:
                yield from self._salvage(state, local)
        yield from self.deaths(state)

    def _begin(self, state: State) -> Iterator[Move]:
        mysql, model = state.mysql, self.model
        if not self.can_lock(state):
            return
        if mysql.sale != PREHEATED or model.rule("archive_waits_for_a_rebuild", mysql.lease == LEASE_LIVE):
            yield self.next("begin", state)
            return
        if model.rule("archive_waits_for_changes", mysql.change):
            yield self.next("begin", state)
            return
        if model.rule("archive_voids_an_old_claim", mysql.lease == LEASE_DISPUTED):
            mysql = mysql._replace(lease=LEASE_OVER)
        run = ArchiveRun(CLAIMED, mysql.epoch, (), is_redis_lost=False)
        yield self.next("begin", state, mysql=mysql._replace(sale=ARCHIVING, archive=run))

    def _step(self, state: State, run: ArchiveRun) -> Iterator[Move]:
        """Do what leads from the stage to the next one, or take note that Redis is lost."""
        is_copied = len(run.copied) == self.model.world.limit_keys
        if self.model.rule("redis_is_kept_until_compared", run.stage != CLEARED):
            yield from self._towards_cleared(state, run, is_copied=is_copied)
            return
        redis = without_keys(state.redis, KEYS)
        yield self.next("unlink_bucket", state, ("reach", run, run._replace(stage=DONE)), redis=redis)

    def _towards_cleared(self, state: State, run: ArchiveRun, *, is_copied: bool) -> Iterator[Move]:
        if run.stage == CHECKED:
            if self.can_lock(state):
                yield self.next("clear_leftovers", state, mysql=self._cleared(state.mysql, run))
        elif run.stage == COMPARED:
            yield self.next("check_receipts", state, ("reach", run, run._replace(stage=CHECKED)))
        elif run.is_redis_lost:
            yield self._copy_from_reservations(state, run)
        elif not self._is_there(state, run):
            yield self._lose(state, run)
        elif run.stage == CLAIMED:
            yield from self._seal(state, run)
        elif run.stage == SEALED:
            if not self.model.rule("drain_waits_for_the_queue", state.redis.queue):
                yield self.next("drain_bucket", state, ("reach", run, run._replace(stage=DRAINED)))
        elif run.stage == DRAINED and not is_copied:
            copied = (*run.copied, state.redis.buyers[len(run.copied)])
            yield self.next("copy_buyers", state, ("reach", run, run._replace(copied=copied)))
        elif run.stage == DRAINED:
            yield self.next("copy_buyers", state, ("reach", run, run._replace(stage=COPIED)))
        elif self.model.rule("copy_is_compared", run.copied != state.redis.buyers):
            yield self.next("copy_again", state, ("reach", run, run._replace(stage=DRAINED, copied=())))
        else:
            yield self.next("compare_buyers", state, ("reach", run, run._replace(stage=COMPARED)))

    def _is_there(self, state: State, run: ArchiveRun) -> bool:
        redis = state.redis
        if not read_gate(self.model, redis) or redis.epoch != run.epoch or redis.frozen:
            return False
        return run.stage == CLAIMED or redis.is_sealed

    def _seal(self, state: State, run: ArchiveRun) -> Iterator[Move]:
        if self.model.rule("seal_waits_for_debts", debts_of(state.mysql)):
            return
        yield self.next("seal_bucket", state, ("reach", run, run._replace(stage=SEALED)), redis=seal(state.redis))

    def _reach(self, state: State, read: ArchiveRun, run: ArchiveRun) -> Move:
        is_overtaken = state.mysql.archive != read
        if self.model.rule("archive_step_is_taken_once", is_overtaken):
            return self.next("overtaken", state)
        sale = ARCHIVED if run.stage == DONE else state.mysql.sale
        return self.next("reach", state, mysql=state.mysql._replace(archive=run, sale=sale))

    def _cleared(self, mysql: MySql, run: ArchiveRun) -> MySql:
        leftover = mysql.allocated - mysql.sold
        mysql = mysql._replace(archive=run._replace(stage=CLEARED))
        if not self.model.rule("leftovers_go_to_the_warehouse", leftover):
            return mysql
        return mysql._replace(allocated=mysql.sold, warehouse=mysql.warehouse + leftover)

    def _copy_from_reservations(self, state: State, run: ArchiveRun) -> Move:
        held = units_held(self.model, state.mysql)
        copied = tuple(held[key] for key in range(self.model.world.limit_keys))
        return self.next("copy_buyers", state, ("reach", run, run._replace(stage=COMPARED, copied=copied)))

    def _lose(self, state: State, run: ArchiveRun) -> Move:
        """Redis is lost: what may still be in its queue is saved, or nothing is missing any more."""
        if run.stage not in {CLAIMED, SEALED}:
            return self.next("finish_from_mysql", state, ("reach", run, run._replace(is_redis_lost=True)))
        return self.next("finish_from_mysql", state, ("salvage", run))

    def _salvage(self, state: State, local: tuple[object, ...]) -> Iterator[Move]:
        """Claim, freeze, drain, note: as a rebuild begins, but nothing is put back into Redis."""
        mysql, run = state.mysql, cast("ArchiveRun", local[1])
        match local[0]:
            case "salvage":
                if self.can_lock(state):
                    if mysql.archive != run or mysql.lease == LEASE_LIVE:
                        yield self.next("claim", state)
                        return
                    token = mysql.tokens + 1
                    mysql = mysql._replace(claim=token, tokens=token, lease=LEASE_LIVE)
                    yield self.next("claim", state, ("freeze", run, token), mysql=mysql)
            case "freeze":
                frozen, redis = freeze(state.redis, cast("int", local[2]))
                yield self.next("freeze", state, ("drain", run, frozen), redis=redis)
            case "drain":
                if self.can_lock(state):
                    frozen = cast("Frozen", local[2])
                    if not has_claim(mysql, frozen.token):
                        yield self.next("drain", state, ("let_go", run, frozen))
                        return
                    after = drained(self.model, state, frozen)
                    yield self.next("drain", state, ("note", run, frozen), mysql=after or mysql)
            case "note":
                if self.can_lock(state):
                    mysql = self._noted(mysql, run)
                    yield self.next("note_loss", state, ("let_go", *local[1:]), mysql=mysql)
            case _:
                yield self.next("let_go", state, mysql=let_go(mysql, cast("Frozen", local[2]).token))

    def _noted(self, mysql: MySql, run: ArchiveRun) -> MySql:
        if self.model.rule("archive_step_is_taken_once", mysql.archive != run):
            return mysql
        rows = mysql.rows
        if self.model.rule("lost_debts_are_written_off", debts_of(mysql)):
            rows = tuple(row and row._replace(is_owed=False) for row in rows)
        run = run._replace(stage=DRAINED, is_redis_lost=True, epoch=mysql.epoch)
        return mysql._replace(rows=rows, archive=run)


class Close(Process):
    """The sale's window ends, by the clock of Redis."""

    def moves(self, state: State) -> Iterator[Move]:
        """Yield the end of the sale."""
        if not state.redis.is_over:
            after = state._replace(redis=state.redis._replace(is_over=True))
            yield Move("the sale is over", after, is_by_itself=True)
