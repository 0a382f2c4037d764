"""What a power cut does to Redis's append-only file: it ends where the last fsync was, up to a second ago."""

import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from benchmarks.servers import ServersError

# With appendfsync everysec this is what a machine that loses power may lose; a killed process alone loses none of it,
# as the kernel keeps what was written.
LOST_SECONDS = 1.0


class AppendOnlyFile:
    """The file that grows; `look` often, so that its length a second ago is known."""

    def __init__(self, data: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._directory = data / "appendonlydir"
        self._sizes: deque[tuple[float, int]] = deque()

    def look(self) -> None:
        """Note how long the file is now."""
        if not self._directory.exists():
            return
        now = self._clock()
        self._sizes.append((now, self._path().stat().st_size))
        while len(self._sizes) > 1 and self._sizes[1][0] <= now - LOST_SECONDS:
            self._sizes.popleft()

    def cut(self) -> None:
        """Cut off what was written in the last second; Redis must not run."""
        _, size = self._sizes[0]
        os.truncate(self._path(), size)

    def _path(self) -> Path:
        paths = sorted(self._directory.glob("*.incr.aof"))
        if not paths:
            raise ServersError(f"Redis keeps no append-only file in {self._directory}")
        return paths[-1]
