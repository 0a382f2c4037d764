"""What ``reserve.lua`` may answer."""

from enum import IntEnum


class ReserveCode(IntEnum):
    """Reply codes of a purchase; only the two positive ones lead to a poll."""

    RESERVED = 1
    ALREADY_YOURS = 2
    SOLD_OUT = 0
    NOT_PREHEATED = -1
    LIMIT_REACHED = -2
    NOT_STARTED = -3
    ENDED = -4
    PAUSED = -5
    BUSY = -6
    UNAVAILABLE = -7
    BAD_QUANTITY = -8
    CONFLICT = -9
    TICKET_EXPIRED = -10
    PRICE_CHANGED = -11
