"""The life of an order: its states and the one table of allowed transitions."""

from collections.abc import Mapping

from django.db import models
from django.utils.translation import gettext_lazy as _


class OrderState(models.TextChoices):
    """Where an order stands."""

    PENDING_PAYMENT = "PENDING_PAYMENT", _("waiting for payment")
    PAID = "PAID", _("paid")
    CANCELLED = "CANCELLED", _("cancelled")
    EXPIRED = "EXPIRED", _("expired")


TRANSITIONS: Mapping[OrderState, frozenset[OrderState]] = {
    OrderState.PENDING_PAYMENT: frozenset({OrderState.PAID, OrderState.CANCELLED, OrderState.EXPIRED}),
    OrderState.PAID: frozenset(),
    OrderState.CANCELLED: frozenset(),
    OrderState.EXPIRED: frozenset(),
}

CLOSED = frozenset({OrderState.CANCELLED, OrderState.EXPIRED})


class UnitsTo(models.TextChoices):
    """Where the units of a closed order go; decided when it closes."""

    ON_SALE = "ON_SALE", _("on sale again")
    WAREHOUSE = "WAREHOUSE", _("to the warehouse")
    WRITTEN_OFF = "WRITTEN_OFF", _("written off")


def is_allowed(from_state: OrderState, to_state: OrderState) -> bool:
    """Tell whether an order may go from one state to another."""
    return to_state in TRANSITIONS[from_state]
