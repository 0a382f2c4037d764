"""Items that this process has just heard to be shut, sold out or over, so that the next buyer need not ask Redis.

What is kept is half a second old at most, whatever happens: a unit that comes back can be bought everywhere within a
second. It is only learnt from what the script said about the item, never about a buyer, and it is never in front of a
repeat: who may have been accepted already is answered by the script.
"""

import time

from seckill.gate.codes import ReserveCode
from seckill.gate.keys import BucketRef

KEPT_SECONDS = 0.5
# More items than any shop has on sale at a time; a full table is emptied, which costs each item one question.
KEPT_MAX = 10_000

Item = tuple[BucketRef, int]


class ShutItems:
    """A table of items with what was said of them and until when it counts; threads may share it."""

    def __init__(self) -> None:
        self._said: dict[Item, tuple[ReserveCode, float]] = {}

    def note(self, item: Item, code: ReserveCode) -> None:
        """Keep what the script has just said of an item."""
        if len(self._said) >= KEPT_MAX:
            self._said.clear()
        self._said[item] = code, time.monotonic() + KEPT_SECONDS

    def look_up(self, item: Item) -> ReserveCode | None:
        """Return what was said of the item within the last half second."""
        code, until = self._said.get(item, (None, 0.0))
        return code if time.monotonic() < until else None

    def forget(self) -> None:
        """Begin anew, as a test wants."""
        self._said.clear()


shut_items = ShutItems()
