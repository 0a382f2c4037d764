"""Payment providers: one interface, and whatever implements it by name."""

from orders.providers.interface import (
    Paid,
    PaymentMoved,
    PaymentWish,
    Provider,
    RawNotice,
    RefundAnswer,
    RefundEnded,
    RefundStanding,
    RefundWish,
    Standing,
    StandingState,
)
from orders.providers.registry import default_provider, provider_named

__all__ = [
    "Paid",
    "PaymentMoved",
    "PaymentWish",
    "Provider",
    "RawNotice",
    "RefundAnswer",
    "RefundEnded",
    "RefundStanding",
    "RefundWish",
    "Standing",
    "StandingState",
    "default_provider",
    "provider_named",
]
