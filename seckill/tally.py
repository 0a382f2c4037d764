"""The tally: how often each answer was given for each item, counted in the process and added up four times a second.

A refused purchase writes nothing anywhere: it adds one to a number in memory. A thread of each process adds what has
come together to the shared tallies, four round trips to the cache's Redis a second, and none when nobody has asked.
A process that is killed takes at most its last quarter of a second with it.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from seckill.errors import GateUnavailable
from seckill.gate.codes import ReserveCode
from seckill.gate.entries import QueueEntry
from seckill.gate.tallies import TallyKey, add_tallies

logger = logging.getLogger(__name__)

# Much less than a second, or the rates of two seconds would show the beat of the processes instead of the buyers'.
FLUSH_SECONDS = 0.25

ACCEPTED = ReserveCode.RESERVED.name.lower()
SOLD_OUT = ReserveCode.SOLD_OUT.name.lower()
SETTLED = "settled"
WAITED_MS = "waited_ms"
ANSWERS = frozenset(code.name.lower() for code in ReserveCode)


class Tally:
    """Counts in memory and a thread that adds them to the shared ones."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._counts: Counter[TallyKey] = Counter()
        self._thread: threading.Thread | None = None
        self._is_failing = False

    def count(self, *, pool_id: int, item_id: int, code: ReserveCode) -> None:
        """Count one answer of the reserving script: a lock and an addition. Never blocks on Redis, never raises."""
        key = (pool_id, item_id, _NAMES[code])
        with self._condition:
            count = self._counts.get(key, 0)
            self._counts[key] = count + 1
            if not count:
                self._wake()

    def count_settled(self, *, pool_id: int, entries: Iterable[QueueEntry], now: datetime) -> None:
        """Count entries that MySQL has now, and for how long they had waited (clocks of Redis and worker apart)."""
        counts: Counter[TallyKey] = Counter()
        now_ms = int(now.timestamp() * 1000)
        for entry in entries:
            counts[pool_id, entry.item_id, SETTLED] += 1
            counts[pool_id, entry.item_id, WAITED_MS] += max(0, now_ms - int(entry.stream_id.partition("-")[0]))
        self._add(counts)

    def flush(self) -> None:
        """Add to the shared tallies what has come together; what cannot be added now is kept for the next time."""
        with self._condition:
            counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            add_tallies(counts)
        except GateUnavailable as error:
            self._add(counts)
            if not self._is_failing:
                logger.warning("answers cannot be tallied: %s", error)
            self._is_failing = True
        else:
            self._is_failing = False

    def _add(self, counts: Counter[TallyKey]) -> None:
        with self._condition:
            self._counts.update(counts)
            self._wake()

    def _wake(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="tally", daemon=True)
            self._thread.start()
        self._condition.notify()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._counts)
            time.sleep(FLUSH_SECONDS)
            self.flush()


_NAMES = {code: code.name.lower() for code in ReserveCode}

tally = Tally()
