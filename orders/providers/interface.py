"""What the shop asks of a payment provider, and the facts it gets back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class PaymentWish:
    """What is to be paid, under a reference of the shop's; ``return_url`` is where the buyer goes afterwards."""

    reference: str
    amount: Decimal
    description: str
    return_url: str


@dataclass(frozen=True, kw_only=True)
class Paid:
    """Money has arrived: the provider's own reference of it, and the shop's reference it was paid for."""

    provider_reference: str
    order_reference: str
    amount: Decimal


@dataclass(frozen=True, kw_only=True)
class PaymentMoved:
    """Something else happened to a payment. Only a hint: it may be late, so the provider is asked."""

    order_reference: str


class RefundStanding(StrEnum):
    """Where a refund stands at the provider."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class RefundEnded:
    """A refund was made, or has failed."""

    reference: str
    standing: RefundStanding


Fact = Paid | PaymentMoved | RefundEnded


class StandingState(StrEnum):
    """Where a begun payment stands. Closed means for good: no money comes any more."""

    OPEN = "open"
    PAID = "paid"
    CLOSED = "closed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a begun payment stands, with all the money that was paid for it."""

    state: StandingState
    money: tuple[Paid, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RefundWish:
    """Money to give back. A repeat with the same reference is the same refund."""

    reference: str
    provider_reference: str
    amount: Decimal


@dataclass(frozen=True, kw_only=True)
class RefundAnswer:
    """Where a refund stands, the provider's own reference of it, and why it failed."""

    standing: RefundStanding
    provider_reference: str | None = None
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class RawNotice:
    """A notification as it came: body byte for byte, headers, and when."""

    body: bytes
    headers: Mapping[str, str]
    received_at: datetime


class Provider(Protocol):
    """One payment provider.

    Every call may be repeated with the same reference and then changes nothing more. Where the
    provider does not answer, each raises ``ProviderUnavailable``; none waits longer than some seconds.
    """

    # What a notification is answered with, once it is stored.
    acknowledgement: str

    def start(self, *, wish: PaymentWish) -> str:
        """Begin a payment; return the address of the provider's pay page."""

    def verify(self, *, notice: RawNotice) -> Fact:
        """Check who sent a notification and return what it says. Raises ``NoticeInvalid``."""

    def query(self, *, reference: str) -> Standing:
        """Return where a begun payment stands; one that was never begun is closed."""

    def close(self, *, reference: str) -> Standing:
        """Let no money come any more for a payment that is open; return where it stands then."""

    def refund(self, *, wish: RefundWish) -> RefundAnswer:
        """Have money given back."""

    def query_refund(self, *, reference: str) -> RefundAnswer:
        """Return where a refund stands; unknown when there is none of that reference."""
