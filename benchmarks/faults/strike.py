"""One fault as it happens: the blow, the time away, and the return that a supervisor sees to."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.faults.matrix import Fault, Kind, Target
from benchmarks.faults.power import AppendOnlyFile
from benchmarks.servers import Server, ServersError

STALL_SECONDS = 5.0
# As systemd's RestartSec or a container's first back-off: a supervisor does not start a dead process at once.
SUPERVISOR_SECONDS = 1.0
# A worker so far behind has accepted purchases in Redis alone, which a power cut then takes away.
BEHIND_SECONDS = 1.0
# Tries to stop a worker in the very moment in which it holds the bucket's lock.
TRIES_MAX = 500

Servers = dict[Target, Server]


class Strike:
    """Hits one part of the shop once, and brings it back; ``go_on`` must be called some twenty times a second.

    Only the thread that started the servers may do so: they end with it.
    """

    def __init__(
        self, *, fault: Fault, servers: Servers, stock_redis_data: Path, is_lock_held: Callable[[], bool]
    ) -> None:
        self._fault = fault
        self._servers = servers
        self._file = AppendOnlyFile(stock_redis_data)
        self._is_lock_held = is_lock_held
        self._next: Callable[[], None] | None = None
        self._next_at = 0.0
        self.has_begun = False
        self.struck_at: float | None = None
        self.back_at: float | None = None

    @property
    def is_away(self) -> bool:
        """Whether the part that was hit is not back yet."""
        return self.struck_at is not None and self.back_at is None

    def begin(self) -> None:
        """Strike, or begin to."""
        self.has_begun = True
        match self._fault.kind:
            case Kind.KILL:
                self.struck_at = time.time()
                self._kill()
            case Kind.STALL:
                self.struck_at = time.time()
                self._server.pause()
                self._after(STALL_SECONDS, self._resume)
            case Kind.STALL_WITH_LOCK:
                self._pause_with_lock()
                self._after(STALL_SECONDS, self._resume)
            case Kind.RESTART:
                self.struck_at = time.time()
                self._server.stop()
                self._start()
            case Kind.POWER_CUT:
                self._servers[Target.WORKER].pause()
                self._after(BEHIND_SECONDS, self._cut_power)

    def go_on(self) -> None:
        """Do what is due by now."""
        self._file.look()
        if self._next is not None and time.monotonic() >= self._next_at:
            act, self._next = self._next, None
            act()

    def require_others_running(self) -> None:
        """Raise ServersError when a part has ended that was not hit, or that had come back."""
        for target, server in self._servers.items():
            if target is not self._fault.target or not self.is_away:
                server.require_running()

    @property
    def _server(self) -> Server:
        return self._servers[self._fault.target]

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        self._next, self._next_at = act, time.monotonic() + seconds

    def _kill(self) -> None:
        self._server.kill()
        self._after(SUPERVISOR_SECONDS, self._start)

    def _start(self) -> None:
        self._server.start()
        self.back_at = time.time()

    def _resume(self) -> None:
        self._server.resume()
        self.back_at = time.time()

    def _cut_power(self) -> None:
        """Kill Redis, take from its file what a machine that loses power would not have on its disk, and go on."""
        self.struck_at = time.time()
        self._kill()
        self._file.cut()
        self._servers[Target.WORKER].resume()

    def _pause_with_lock(self) -> None:
        for _ in range(TRIES_MAX):
            self.struck_at = time.time()
            self._server.pause()
            if self._is_lock_held():
                return
            self._server.resume()
            time.sleep(0.001 * (1 + os.urandom(1)[0] % 8))  # Not in step with the worker.
        raise ServersError(f"in {TRIES_MAX} tries the worker never held the lock of the bucket")
