"""Questions to servers that may never answer, each asked by a thread of its own, and left to it after a second.

Whoever waits for an answer waits a bounded time for all of them together. A thread that hangs ends by the time-outs of
its connection; until then nobody asks that server again.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.utils import DEFAULT_DB_ALIAS, load_backend

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS = 1


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What came of an errand: a value, or why there is none, and how long it took."""

    value: Any = None
    error: str = ""
    seconds: float = 0.0

    @property
    def is_up(self) -> bool:
        """Whether the server answered in time."""
        return not self.error


class Errand:
    """One question; of many askers at once, one thread asks it."""

    def __init__(self, *, name: str, ask: Callable[[], Any]) -> None:
        self.name = name
        self._ask = ask
        self._lock = threading.Lock()
        self._run: _Run | None = None

    def begin(self) -> "_Run":
        """Send a thread out, unless one is still on its way."""
        with self._lock:
            if self._run is None or self._run.finding is not None:
                self._run = _Run(name=self.name, ask=self._ask)
            return self._run


class _Run:
    def __init__(self, *, name: str, ask: Callable[[], Any]) -> None:
        self.finding: Finding | None = None
        self._ask = ask
        self._began = time.monotonic()
        self._done = threading.Event()
        threading.Thread(target=self._go, name=f"errand-{name}", daemon=True).start()

    def wait(self, *, until: float) -> Finding:
        """Return what was found by a time of the monotonic clock."""
        self._done.wait(max(0.0, until - time.monotonic()))
        return self.finding or Finding(error="no answer in time", seconds=time.monotonic() - self._began)

    def _go(self) -> None:
        try:
            value = self._ask()
            self.finding = Finding(value=value, seconds=time.monotonic() - self._began)
        except Exception as error:  # noqa: BLE001  isolation point: whatever is wrong with a server is the finding
            words = f"{type(error).__name__}: {error}"
            self.finding = Finding(error=words, seconds=time.monotonic() - self._began)
        finally:
            self._done.set()


def run_errands(errands: Sequence[Errand], *, seconds: float) -> Mapping[str, Finding]:
    """Ask all at once; return what was found by then, by the errands' names."""
    until = time.monotonic() + seconds
    runs = [(errand.name, errand.begin()) for errand in errands]
    return {name: run.wait(until=until) for name, run in runs}


@contextmanager
def hasty_database(*, seconds: int = TIMEOUT_SECONDS) -> Iterator[None]:
    """Give this thread a database connection of its own that waits at most so long for an answer, and less to connect.

    The usual one waits for a server that stands still as long as the kernel does.
    """
    usual = connections[DEFAULT_DB_ALIAS]
    options = dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), seconds)
    hasty = {**usual.settings_dict, "OPTIONS": {**usual.settings_dict["OPTIONS"], **options}, "CONN_MAX_AGE": 0}
    connection = load_backend(hasty["ENGINE"]).DatabaseWrapper(hasty, DEFAULT_DB_ALIAS)
    connections[DEFAULT_DB_ALIAS] = connection
    try:
        yield
    finally:
        connection.close()
        connections[DEFAULT_DB_ALIAS] = usual
