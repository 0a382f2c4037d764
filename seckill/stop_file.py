"""The switch of last resort: while a file is there, nothing new is accepted in any sale.

For the hour in which nobody can log in, or MySQL is away: whoever can reach a web host can make a file. Each process
looks twice a second at most, and without a question to anybody else.
"""

import time
from pathlib import Path

from django.conf import settings

LOOK_SECONDS = 0.5


class StopFile:
    """Whether the file is there, as of half a second ago at most; threads may share it."""

    def __init__(self) -> None:
        self._is_there = False
        self._looked_at = -LOOK_SECONDS

    def is_there(self) -> bool:
        """Tell whether all sales are stopped. Without a path in the settings they never are."""
        if not settings.STOP_FILE:
            return False
        now = time.monotonic()
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at, self._is_there = now, Path(settings.STOP_FILE).exists()
        return self._is_there

    def forget(self) -> None:
        """Look again at once, as a test wants."""
        self._looked_at = -LOOK_SECONDS


stop_file = StopFile()
