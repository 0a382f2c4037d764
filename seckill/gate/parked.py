"""The gate's side of dead letters: a parked reservation goes back into the queue, or its receipt says "refused"."""

from enum import IntEnum

from seckill.errors import BucketUnsound, NotPreheated
from seckill.gate.connection import Script
from seckill.gate.entries import QueueEntry
from seckill.gate.keys import BucketRef

_requeue = Script("requeue")
_conclude = Script("conclude")


class RequeueCode(IntEnum):
    """What ``requeue.lua`` may answer."""

    QUEUED = 1
    QUEUED_BEFORE = 2
    TOO_FEW_LEFT = 0
    NOT_PREHEATED = -1
    LIMIT_REACHED = -2
    CLOSED = -4
    UNAVAILABLE = -7
    USED_AGAIN = -9


def requeue(*, bucket: BucketRef, letter_id: int, parked_epoch: int, entry: QueueEntry) -> RequeueCode:
    """Put a parked reservation back into the queue, once per letter, with units from the stock.

    Raises ``GateUnavailable`` or ``NotPreheated``; after the former it may have been done.
    """
    told = (entry.order_no, entry.item_id, entry.buyer_id, entry.limit_key, entry.quantity, str(entry.price))
    reply = _requeue(bucket.keys, parked_epoch, letter_id, *told, entry.stream_id)
    _require(reply)
    return RequeueCode(reply)


def conclude(
    *, bucket: BucketRef, parked_epoch: int, order_no: str, limit_key: str, reason: str, stream_id: str
) -> bool:
    """Make the receipt of a parked reservation say that it is refused; tell whether there was one to change.

    Raises ``GateUnavailable`` or ``NotPreheated``.
    """
    reply = _conclude(bucket.keys, parked_epoch, order_no, limit_key, reason, stream_id)
    _require(reply)
    return bool(reply)


def _require(reply: int) -> None:
    if reply == RequeueCode.NOT_PREHEATED:
        raise NotPreheated
    if reply == RequeueCode.UNAVAILABLE:
        raise BucketUnsound("the bucket is frozen, damaged, or the server was restarted since it was checked")
