"""Beat's scheduler: of several beats one sends, and when that one dies another does so ten seconds later.

Whose turn it is, a lease in the cache's Redis says: it ends by itself, so no dead beat keeps it. A task that is sent
twice all the same changes nothing, one that is not sent may. So a beat that can ask nobody goes on as it was, and one
that has just started sends when nobody could be asked for as long as a lease lasts.
"""

import logging
import time
from typing import Any

from django_celery_beat.schedulers import DatabaseScheduler
from django_redis import get_redis_connection
from redis.exceptions import LockError, RedisError
from redis.lock import Lock

logger = logging.getLogger(__name__)

LEASE_NAME = "seckill:beat"
LEASE_SECONDS = 10.0
# Renewed so often, and asked for so often by those who wait.
ASK_SECONDS = 2.0


class Lease:
    """A right that one process has at a time, for some seconds more each time it asks."""

    def __init__(self, *, name: str = LEASE_NAME, seconds: float = LEASE_SECONDS) -> None:
        self._name, self._seconds = name, seconds
        self._lock: Lock | None = None
        self._asked_at: float | None = None
        self._heard_at = time.monotonic()
        self.is_held = False

    def ask(self) -> bool:
        """Tell whether it is ours, asking Redis at most every other second."""
        now = time.monotonic()
        if self._asked_at is not None and now - self._asked_at < ASK_SECONDS:
            return self.is_held
        self._asked_at = now
        try:
            self.is_held = self._is_renewed() or self._is_acquired()
            self._heard_at = now
        except RedisError as error:
            logger.warning("whether another beat sends cannot be asked: %s", error)
            self.is_held = self.is_held or now - self._heard_at >= self._seconds
        return self.is_held

    def _is_renewed(self) -> bool:
        if self._lock is None:
            return False
        try:
            return bool(self._lock.reacquire())
        except LockError:
            # It had ended, as after a long pause of this process, and may be another's by now.
            self._lock = None
            return False

    def _is_acquired(self) -> bool:
        lock: Lock = get_redis_connection("default").lock(self._name, timeout=self._seconds, thread_local=False)
        if not lock.acquire(blocking=False):
            return False
        self._lock = lock
        return True


class LeasedScheduler(DatabaseScheduler):  # type: ignore[misc]
    """The schedule in the database, sent by whichever beat has the lease."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._lease = Lease()
        super().__init__(*args, **options)

    def tick(self, *args: Any, **options: Any) -> float:
        """Send what is due, if it is our turn; return the seconds until the next look."""
        had_it = self._lease.is_held
        if not self._lease.ask():
            if had_it:
                logger.warning("another beat sends now; this one waits")
            return ASK_SECONDS
        if not had_it:
            logger.info("this beat sends")
            self._begin()
        interval: float = super().tick(*args, **options)
        return interval

    def _begin(self) -> None:
        """Read when each task was sent last, by whoever did it; what this process knows may be old."""
        self._initial_read = True
        self._heap = None
