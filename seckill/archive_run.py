"""An archive run under work: its row is the one thing that says how far it is.

Whatever a step writes, it writes in one transaction with the row's new stage, cursor and progress, and only
where the row still stands as the step has read it. So two workers at once, or one that was killed,
do each piece once.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from seckill.archive_tables import ArchiveRun, ArchiveStage
from seckill.gate.keys import BucketRef

EXAMPLES_MAX = 10
_DIGEST_MODULUS = 1 << 64
EMPTY_DIGEST = f"{0:016x}"


class Overtaken(Exception):
    """Raised when another worker has taken this very step already."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """A run as it was read, and the clock."""

    run: ArchiveRun
    clock: Callable[[], datetime]

    @property
    def bucket(self) -> BucketRef:
        """The bucket that is archived."""
        return BucketRef(pool_id=self.run.pool_id, number=self.run.bucket_no)

    @property
    def progress(self) -> dict[str, Any]:
        """A copy of the progress of the stage under way, to be changed and written."""
        return dict(self.run.progress)


@contextmanager
def held(work: Work) -> Iterator[None]:
    """Hold the run's row for a transaction of one step. Raises ``Overtaken`` when it has moved since it was read."""
    with transaction.atomic(durable=True):
        require_held(work)
        yield


def require_held(work: Work) -> None:
    """Lock the run's row in the caller's transaction; raises ``Overtaken`` when it has moved since it was read."""
    row = ArchiveRun.objects.select_for_update().get(pk=work.run.pk)
    read = work.run
    if (row.stage, row.cursor, row.is_redis_lost) != (read.stage, read.cursor, read.is_redis_lost):
        raise Overtaken


def go_on(work: Work, *, cursor: str, progress: Mapping[str, Any]) -> None:
    """Write how far the stage under way has come; the row is held."""
    ArchiveRun.objects.filter(pk=work.run.pk).update(cursor=cursor, progress=dict(progress), waits_for="")


def reach(
    work: Work,
    stage: ArchiveStage,
    *,
    findings: Mapping[str, Any] | None = None,
    progress: Mapping[str, Any] | None = None,
    **columns: object,
) -> None:
    """Write that a stage is reached, with what was found for the manifest; the row is held."""
    now = work.clock()
    reached = {**work.run.manifest.get("reached", {}), stage.value: now.isoformat()}
    ArchiveRun.objects.filter(pk=work.run.pk).update(
        stage=stage,
        cursor="",
        progress=dict(progress or {}),
        waits_for="",
        manifest={**work.run.manifest, **(findings or {}), "reached": reached},
        **columns,
    )


def added(digest: str, rows: Iterable[tuple[object, ...]]) -> str:
    """Add rows to a digest: the sum of all rows' hashes, so that they may come in any order."""
    total = int(digest, 16)
    for row in rows:
        text = "\0".join(map(str, row))
        total += int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
    return f"{total % _DIGEST_MODULUS:016x}"


def with_example(examples: list[Any], example: Any) -> list[Any]:
    """Examples and one more, up to ``EXAMPLES_MAX``."""
    return [*examples, example] if len(examples) < EXAMPLES_MAX else examples
