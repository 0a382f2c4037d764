"""The gate's side of changes by hand: numbered deltas of units, the window, and taking an untouched bucket out.

All raise ``GateUnavailable`` and ``NotPreheated`` as the rest of the gate does; each is safe to repeat.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from seckill.errors import BucketUnsound, NotPreheated
from seckill.gate.codes import ReserveCode
from seckill.gate.connection import Script
from seckill.gate.keys import BucketRef

_adjust = Script("adjust")
_set_window = Script("set_window")
_withdraw = Script("withdraw")
_widen = Script("widen")


@dataclass(frozen=True, kw_only=True)
class Adjusted:
    """What a numbered delta changed, now or when it was first tried (0: too few were left), and what is left."""

    units_changed: int
    units_left: int


def adjust(*, bucket: BucketRef, epoch: int, number: int, item_id: int, delta: int) -> Adjusted:
    """Change the units left of an item by all of a delta or by nothing, once per number."""
    return _adjusted(_adjust(bucket.keys, epoch, number, item_id, delta, "all"))


def take(*, bucket: BucketRef, epoch: int, number: int, item_id: int, units: int) -> int:
    """Take up to so many units of an item away, once per number; return how many were there to be taken."""
    return -_adjusted(_adjust(bucket.keys, epoch, number, item_id, -units, "some")).units_changed


def set_window(*, bucket: BucketRef, number: int, opens_ms: int, closes_ms: int) -> None:
    """Make the gate open and close at these instants, unless a later change came first."""
    _require(_set_window(bucket.keys, number, opens_ms, closes_ms))


def widen(*, bucket: BucketRef, buckets: int) -> None:
    """Tell a gate that its pool has at least so many buckets."""
    _require(_widen(bucket.keys, buckets))


def withdraw(*, bucket: BucketRef, epoch: int) -> bool:
    """Take a bucket out of Redis; False, and it stays, when anything was ever reserved in it."""
    try:
        return bool(_require(_withdraw(bucket.keys, epoch)))
    except NotPreheated:
        return True


def _adjusted(reply: Sequence[int]) -> Adjusted:
    code, *numbers = reply
    _require(code)
    units_changed, units_left = numbers
    return Adjusted(units_changed=units_changed, units_left=units_left)


def _require(code: int) -> int:
    if code == ReserveCode.NOT_PREHEATED:
        raise NotPreheated
    if code == ReserveCode.UNAVAILABLE:
        raise BucketUnsound("the bucket is frozen, damaged, of another epoch, or the server was restarted")
    return code
