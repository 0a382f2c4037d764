"""A stopwatch for one purchase of many: where its milliseconds go.

Whoever samples starts a watch; on its way the call marks where a stage ends. Without a watch a mark costs a look at a
context variable, some tens of nanoseconds.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from time import perf_counter


class Stage(StrEnum):
    """The stages in their order; ``REDIS`` is the whole round trip and contains ``SCRIPT``."""

    RECEIVE = "receive"
    TICKET = "ticket"
    REDIS = "redis"
    SCRIPT = "script"
    PUBLISH = "publish"
    ANSWER = "answer"
    WHOLE = "whole"


class Watch:
    """Seconds per stage of one call."""

    __slots__ = ("_began", "_last", "seconds")

    def __init__(self) -> None:
        self._began = self._last = perf_counter()
        self.seconds: dict[Stage, float] = {}

    def mark(self, stage: Stage) -> None:
        """Give the time since the last mark to a stage."""
        now = perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._last
        self._last = now

    def end(self) -> None:
        """Give the rest to the answer, and all of it to the whole."""
        self.mark(Stage.ANSWER)
        self.seconds[Stage.WHOLE] = self._last - self._began


_watch: ContextVar[Watch | None] = ContextVar("stage_watch", default=None)


@contextmanager
def watched() -> Iterator[Watch]:
    """Time what is called in the block."""
    watch = Watch()
    token = _watch.set(watch)
    try:
        yield watch
    finally:
        _watch.reset(token)
        watch.end()


def is_watched() -> bool:
    """Tell whether this call is one of the sampled ones."""
    return _watch.get() is not None


def mark(stage: Stage) -> None:
    """Say that a stage ends here."""
    watch = _watch.get()
    if watch is not None:
        watch.mark(stage)


def add(stage: Stage, seconds: float) -> None:
    """Note a time that somebody else has measured, and that another stage contains."""
    watch = _watch.get()
    if watch is not None:
        watch.seconds[stage] = seconds
