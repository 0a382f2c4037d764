"""What can go wrong with an order and its money."""

from dataclasses import dataclass

from orders.states import OrderState


class OrderError(Exception):
    """Base of all errors of the orders."""


@dataclass
class TransitionRefused(OrderError):
    """Raised when an order is asked to go where it may not, or was moved by somebody else first."""

    number: str
    to_state: OrderState

    def __str__(self) -> str:
        return f"order {self.number} cannot become {self.to_state}"


class OrderNotFound(OrderError):
    """Raised when an order number is not the asker's, or nobody's."""


class PayWindowOver(OrderError):
    """Raised when a payment is begun for an order whose time to pay is over."""


class UnknownProvider(OrderError):
    """Raised when a payment provider is named that the shop does not have."""


class NoticeInvalid(OrderError):
    """Raised when a notification was not signed by its provider, is too old, or cannot be read."""


class ProviderUnavailable(OrderError):
    """Raised when a payment provider does not answer, or does not say what became of a payment.

    Nothing is known then: the same call may be repeated.
    """


@dataclass
class RefundRefused(OrderError):
    """Raised when money cannot be given back as asked."""

    explanation: str

    def __str__(self) -> str:
        return self.explanation


@dataclass
class HonourRefused(OrderError):
    """Raised when a payment cannot be honoured."""

    explanation: str

    def __str__(self) -> str:
        return self.explanation
