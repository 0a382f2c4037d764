"""How a program ends on a signal: by an exception, so that its ``with`` blocks are left and nothing stays behind."""

import signal
from types import FrameType
from typing import NoReturn


class Interrupted(BaseException):
    """Raised when a signal ends the program; no error, so that nothing takes it for one."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.status = 128 + signum


_signals: list[int] = []


def leave_on_signals() -> None:
    """From now on raise Interrupted for the signals that end a process, at once and wherever the program is."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _leave)


def leave_if_told() -> None:
    """Raise Interrupted if a signal has come before.

    Where a callback of the interpreter happens to run, in an import say, an exception is printed and forgotten. What
    takes long asks here now and then.
    """
    if _signals:
        raise Interrupted(_signals[0])


def _leave(signum: int, _frame: FrameType | None) -> NoReturn:
    _signals.append(signum)
    raise Interrupted(signum)
