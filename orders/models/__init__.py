"""Tables of the orders: orders and their events, the money that comes and goes, and the sandbox's own."""

from orders.models.money import Honour, Payment, PaymentAttempt, Refund
from orders.models.order import Order, OrderEvent
from orders.models.sandbox import SandboxCharge, SandboxNotice, SandboxPayment, SandboxRefund

__all__ = [
    "Honour",
    "Order",
    "OrderEvent",
    "Payment",
    "PaymentAttempt",
    "Refund",
    "SandboxCharge",
    "SandboxNotice",
    "SandboxPayment",
    "SandboxRefund",
]
