"""A process's short memory of what everybody asks for, so that a crowd costs one look a second."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from weakref import WeakSet

Value = TypeVar("Value")

_memories: "WeakSet[Memory[object]]" = WeakSet()


@dataclass
class _Entry(Generic[Value]):
    """One remembered value; whoever makes it holds the lock, the others wait for it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    made_at: float = float("-inf")
    value: Value | None = None


class Memory(Generic[Value]):
    """Remembers what ``make`` returned for ``seconds`` since it was called; of many askers at once, one calls it."""

    def __init__(self, *, seconds: float, entries_max: int) -> None:
        self._seconds = seconds
        self._entries_max = entries_max
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry[Value]] = OrderedDict()
        _memories.add(self)  # type: ignore[arg-type]

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the remembered value, or make it. What ``make`` raises is raised and not remembered."""
        entry = self._entry(key)
        with entry.lock:
            asked_at = time.monotonic()
            if entry.value is None or asked_at - entry.made_at >= self._seconds:
                entry.value, entry.made_at = None, asked_at
                entry.value = make()
            return entry.value

    def forget(self) -> None:
        """Remember nothing any more."""
        with self._lock:
            self._entries.clear()

    def _entry(self, key: Hashable) -> _Entry[Value]:
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            # Who asks for ever new keys pushes out his own, not what the crowd asks for.
            self._entries.move_to_end(key)
            if len(self._entries) > self._entries_max:
                self._entries.popitem(last=False)
            return entry


def forget_everything() -> None:
    """Empty all memories of the process, as a test wants before it looks."""
    for memory in _memories:
        memory.forget()
