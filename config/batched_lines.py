"""Lines that are written a few times a second, all in one piece: for accepted purchases, of which there are thousands.

A line of ``logging``'s own costs as much as a third of the purchase it tells of: the record, the lock, and above all a
system call that hands the interpreter to another thread. Here it costs a list's ``append``. A process that is killed
takes the lines of its last quarter of a second with it; what it sold stands in Redis all the same.
"""

import atexit
import sys
import threading
import time

FLUSH_SECONDS = 0.25


class BatchedLines:
    """Lines in memory and a thread that writes them to standard error."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._lines: list[str] = []
        self._thread: threading.Thread | None = None

    def add(self, line: str) -> None:
        """Have a line written soon. Never blocks on the stream."""
        with self._condition:
            self._lines.append(line)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="lines", daemon=True)
                self._thread.start()
            if len(self._lines) == 1:
                self._condition.notify()

    def flush(self) -> None:
        """Write what has come together."""
        with self._condition:
            lines, self._lines = self._lines, []
        if lines:
            sys.stderr.write("\n".join([*lines, ""]))
            sys.stderr.flush()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._lines)
            time.sleep(FLUSH_SECONDS)
            self.flush()


batched_lines = BatchedLines()
atexit.register(batched_lines.flush)
