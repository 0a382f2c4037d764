"""What can go wrong in a flash sale, as types whose attributes carry the facts; no HTTP here.

``config.errors`` maps each to its answer, and a test fails when one is missing there.
"""

from dataclasses import dataclass
from datetime import datetime


class SeckillError(Exception):
    """Base of all errors of the flash sales."""


class PurchaseRefused(SeckillError):
    """Base of the answers to a purchase that reserve nothing."""


@dataclass
class SoldOut(PurchaseRefused):
    """Raised when no unit is left; ``order_no`` is the ticket's, where there is one."""

    order_no: str = ""


@dataclass
class NotEnoughLeft(PurchaseRefused):
    """Raised when fewer units are left than were asked for."""

    units_left: int


@dataclass(frozen=True, kw_only=True)
class LiveOrder:
    """A reservation the buyer holds; ``state`` is the order's, or ``queued`` while there is none yet."""

    number: str
    state: str
    pay_by_at: datetime | None


@dataclass
class LimitReached(PurchaseRefused):
    """Raised when the buyer would hold more than the pool's limit; ``orders`` are his own."""

    units_held: int
    orders: tuple[LiveOrder, ...] = ()


@dataclass
class NotStarted(PurchaseRefused):
    """Raised before the sale opens."""

    opens_in_ms: int


@dataclass
class Ended(PurchaseRefused):
    """Raised from the very millisecond at which the sale closes; ``order_no`` is the ticket's, where there is one."""

    order_no: str = ""


class Paused(PurchaseRefused):
    """Raised while an operator has paused the item."""


class NotPreheated(PurchaseRefused):
    """Raised when the sale was not brought into Redis yet."""


class Busy(PurchaseRefused):
    """Raised when too many reservations wait for MySQL, or while units are brought from another bucket."""


class BadQuantity(PurchaseRefused):
    """Raised when the quantity is not a whole number of at least one."""


class Conflict(PurchaseRefused):
    """Raised when a ticket that was used comes again with another quantity."""


class TicketInvalid(PurchaseRefused):
    """Raised when a ticket was not signed here, or was changed."""


@dataclass
class TicketExpired(PurchaseRefused):
    """Raised when an unused ticket has outlived its sale; ``order_no`` is its own."""

    order_no: str = ""


class PriceChanged(PurchaseRefused):
    """Raised when a ticket names another price than the sale has; the buyer asks for his ticket again."""


class GateUnavailable(PurchaseRefused):
    """Raised when Redis is away, frozen, restarted, damaged or did not answer in time.

    The outcome may be unknown: the same ticket may be sent again, nothing else.
    """


class BucketUnsound(GateUnavailable):
    """Raised when Redis answers, and the bucket is damaged, frozen, of another epoch or another run of the server."""


@dataclass
class TicketDenied(SeckillError):
    """Raised when a buyer may not have a ticket (yet)."""

    reason: str
    until: datetime | None = None


class ChallengeRequired(SeckillError):
    """Raised when the sale gives tickets only to those who have solved a challenge."""


class ChallengeFailed(SeckillError):
    """Raised for a proof that is wrong, too old, somebody else's or was used before."""


class ChallengeTooEarly(SeckillError):
    """Raised for a waiting pass whose time has not come."""


class UnknownItem(SeckillError):
    """Raised when no such item is on sale."""


class UnknownSale(SeckillError):
    """Raised when there is no such sale, or it is a draft."""


class UnknownPool(SeckillError):
    """Raised when there is no such pool."""


class UnknownOrder(SeckillError):
    """Raised when an order number is not the asker's, or nobody's."""


@dataclass
class SaleNotReady(SeckillError):
    """Raised when an operator's wish does not fit the state or the numbers of a sale."""

    explanation: str

    def __str__(self) -> str:
        return self.explanation


@dataclass
class AlreadyPreheated(SaleNotReady):
    """Raised when a sale that is to be preheated has been, by somebody else or long ago."""


class SettlementError(SeckillError):
    """Base of what stops the settlement of one bucket."""


@dataclass
class QueueForked(SettlementError):
    """Raised when Redis tells another history than MySQL has: it was rolled back or rebuilt elsewhere."""

    explanation: str

    def __str__(self) -> str:
        return self.explanation


@dataclass
class CommitsLost(SettlementError):
    """Raised when MySQL does not have what Redis was told it has: it was restored, or failed over, and forgot."""

    explanation: str

    def __str__(self) -> str:
        return self.explanation


@dataclass
class RebuildRefused(SeckillError):
    """Raised when a rebuild may not begin, or may not put its result into place."""

    explanation: str

    def __str__(self) -> str:
        return self.explanation


@dataclass
class ArchiveWaits(SeckillError):
    """Raised when an archive cannot begin or go on now, and what it waits for passes by itself."""

    explanation: str

    def __str__(self) -> str:
        return self.explanation


class ArchiveBlocked(ArchiveWaits):
    """Raised when an archive cannot begin or go on until a person has decided something."""


@dataclass
class DecisionRefused(SeckillError):
    """Raised when a parked reservation cannot be replayed or refused, as it stands."""

    explanation: str

    def __str__(self) -> str:
        return self.explanation
