"""What can go wrong with an order."""

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
