"""A Redis that is lost, damaged or restarted while a bucket is archived: MySQL has what is needed.

Before the queue was empty, what survives of it is brought into MySQL as a rebuild does it, under a
claim and a new epoch; but nothing is put back into Redis. Afterwards nothing is missing at all.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import Max

from seckill.archive_run import Work, held, reach, require_held
from seckill.archive_tables import ArchiveStage
from seckill.errors import ArchiveBlocked, ArchiveWaits, CommitsLost, RebuildRefused
from seckill.gate import staging
from seckill.outcomes import in_order, lock_bucket
from seckill.rebuild import Commits, bury, claim, drain_survivors, let_go
from seckill.returns import write_off_debts

BEFORE_DRAINED = frozenset({ArchiveStage.CLAIMED, ArchiveStage.SEALED})


def finish_from_mysql(work: Work, *, detail: str) -> None:
    """Note the loss and go on without Redis. Raises ``ArchiveWaits``, ``GateUnavailable``."""
    if ArchiveStage(work.run.stage) in BEFORE_DRAINED:
        _salvage(work, detail=detail)
        return
    stage = ArchiveStage(work.run.stage)
    with held(work):
        reach(
            work, stage, findings={"redis_lost": _told(work, detail=detail)}, is_redis_lost=True, progress=_kept(work)
        )


def _kept(work: Work) -> dict[str, object]:
    """Of a copy begun from Redis what is counted already stays; a comparison begins again."""
    names = ("total", "done", "digest", "unreadable")
    return {name: work.run.progress[name] for name in names if name in work.run.progress}


def _salvage(work: Work, *, detail: str) -> None:
    """Bring what survives of the queue into MySQL, and write off what Redis was owed: it counts as left over."""
    bury(bucket=work.bucket, now=work.clock())
    with transaction.atomic(durable=True):
        row = lock_bucket(work.bucket)
        require_held(work)
        try:
            token = claim(row=row, now=work.clock())
        except RebuildRefused as error:
            raise ArchiveWaits(str(error)) from error
    try:
        frozen = staging.freeze(bucket=work.bucket, token=token)
        drain_survivors(bucket=work.bucket, frozen=frozen, commits=_commits(work), clock=work.clock)
        _note_loss(work, detail=detail, now=work.clock())
    except CommitsLost as error:
        raise ArchiveBlocked(
            f"{error}; if these reservations are to be given up: manage.py archive --accept-lost-commits"
        ) from error
    except RebuildRefused as error:
        raise ArchiveWaits(str(error)) from error
    finally:
        let_go(bucket=work.bucket, token=token)


def _commits(work: Work) -> Commits:
    return Commits.MAY_BE_LOST if work.run.accepts_lost_commits else Commits.MUST_BE_THERE


def _note_loss(work: Work, *, detail: str, now: datetime) -> None:
    with transaction.atomic(durable=True):
        row = lock_bucket(work.bucket)
        require_held(work)
        write_off_debts(bucket=work.bucket, now=now)
        told = _told(work, detail=detail) | {"reservations_lost_at_most": _lost_at_most(work)}
        reach(work, ArchiveStage.DRAINED, findings={"redis_lost": told}, is_redis_lost=True, epoch=row.epoch)


def _told(work: Work, *, detail: str) -> dict[str, object]:
    return {"at_stage": work.run.stage, "detail": detail, "reservations_lost_at_most": 0}


def _lost_at_most(work: Work) -> int:
    """Reservations that stood in the queue when the archive began and have no row now, at most.

    Counted by their numbers: those above the last one that was settled, less those saved under a new
    epoch. After a rebuild numbers begin with a gap, so there are never more than the queue was long.
    """
    seen = work.run.manifest["at_begin"]
    rows = in_order(work.bucket).order_by()
    settled: int = rows.filter(epoch__lte=work.run.epoch).aggregate(seq=Max("seq"))["seq"] or 0
    unsettled = int(seen["seq"]) - settled - rows.filter(epoch__gt=work.run.epoch).count()
    return max(0, min(int(seen["queue_length"]), unsettled))
