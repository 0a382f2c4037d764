"""Where a purchase's milliseconds go: noted of sampled calls, added up over all processes, read for the live monitor.

What is noted stays in memory until a thread of the process adds it up, into the histograms of ``/metrics`` and into the
shared sums, one round trip to the cache's Redis a second.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from metrics.definitions import stage_seconds
from metrics.stages import Stage
from seckill.errors import GateUnavailable
from seckill.gate.stage_sums import SumKey, add_stage_sums, read_stage_sums

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 1.0
WINDOW = timedelta(seconds=60)
COUNT, MICROSECONDS, BELOW = "count", "us", "below:"
PARTS = (Stage.RECEIVE, Stage.TICKET, Stage.REDIS, Stage.SCRIPT, Stage.PUBLISH, Stage.ANSWER)


@dataclass(frozen=True, kw_only=True)
class StageTime:
    """One stage, in microseconds of the average call; ``own_us`` is without the stage that it contains.

    Half of the calls, nine of ten, 99 of 100 took at most ``p50_us``, ``p90_us``, ``p99_us``, rounded up to a power of
    two. ``share`` is of ``own_us`` in the whole, so that the shares of all stages add up to 1.
    """

    stage: Stage
    mean_us: float
    own_us: float
    p50_us: int
    p90_us: int
    p99_us: int
    share: float


@dataclass(frozen=True, kw_only=True)
class StageBreakdown:
    """The average of the sampled purchases that reached Redis in a window; no stages where there were none."""

    since: datetime
    until: datetime
    sampled: int
    whole_us: float
    stages: tuple[StageTime, ...]


class StageSums:
    """Times in memory and a thread that adds them to the shared ones."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._noted: list[Mapping[Stage, float]] = []
        self._thread: threading.Thread | None = None

    def note(self, seconds: Mapping[Stage, float]) -> None:
        """Note one sampled call; one that did not get as far as Redis has no stages. Never blocks, never raises."""
        if Stage.REDIS not in seconds:
            return
        with self._condition:
            self._noted.append(seconds)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="stage-times", daemon=True)
                self._thread.start()
            self._condition.notify()

    def flush(self) -> None:
        """Add to the shared sums what has come together; what cannot be added now is lost, which costs nobody."""
        with self._condition:
            noted, self._noted = self._noted, []
        if not noted:
            return
        try:
            add_stage_sums(_sums_of(noted), at=time.time())
        except GateUnavailable as error:
            logger.info("stage times are not shown: %s", error)

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._noted)
            time.sleep(FLUSH_SECONDS)
            self.flush()


def _sums_of(noted: Sequence[Mapping[Stage, float]]) -> Counter[SumKey]:
    """Add sampled calls up, and put each into the histograms of this process."""
    sums: Counter[SumKey] = Counter()
    for seconds in noted:
        for stage, taken in seconds.items():
            stage_seconds(stage).observe(taken)
            microseconds = round(taken * 1_000_000)
            sums[stage, COUNT] += 1
            sums[stage, MICROSECONDS] += microseconds
            sums[stage, f"{BELOW}{1 << microseconds.bit_length()}"] += 1
    return sums


stage_sums = StageSums()


def stage_breakdown(*, now: datetime, window: timedelta = WINDOW) -> StageBreakdown:
    """Return where the time of recent purchases went, over all web processes. Raises ``GateUnavailable``."""
    since = now - window
    sums = read_stage_sums(since=since.timestamp(), until=now.timestamp())
    sampled = sums.get((Stage.WHOLE, COUNT), 0)
    whole_us = sums.get((Stage.WHOLE, MICROSECONDS), 0) / sampled if sampled else 0.0
    means = {stage: sums.get((stage, MICROSECONDS), 0) / sampled for stage in PARTS} if sampled else {}
    return StageBreakdown(
        since=since,
        until=now,
        sampled=sampled,
        whole_us=whole_us,
        stages=tuple(_stage(stage=stage, means=means, whole_us=whole_us, sums=sums) for stage in means),
    )


def _stage(*, stage: Stage, means: Mapping[Stage, float], whole_us: float, sums: Mapping[SumKey, int]) -> StageTime:
    own_us = means[stage] - (means[Stage.SCRIPT] if stage is Stage.REDIS else 0)
    return StageTime(
        stage=stage,
        mean_us=means[stage],
        own_us=own_us,
        p50_us=_bound(stage=stage, part=0.5, sums=sums),
        p90_us=_bound(stage=stage, part=0.9, sums=sums),
        p99_us=_bound(stage=stage, part=0.99, sums=sums),
        share=own_us / whole_us if whole_us else 0.0,
    )


def _bound(*, stage: Stage, part: float, sums: Mapping[SumKey, int]) -> int:
    """Return the power of two below which such a part of the calls stayed."""
    bounds = sorted(
        (int(what.removeprefix(BELOW)), number)
        for (name, what), number in sums.items()
        if name == stage and what.startswith(BELOW)
    )
    wanted, seen = part * sum(number for _, number in bounds), 0
    for bound, number in bounds:
        seen += number
        if seen >= wanted:
            return bound
    return 0
