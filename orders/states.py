"""The life of an order and of its money: all states, and the tables of allowed transitions."""

from collections.abc import Mapping
from typing import TypeVar

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


class AttemptState(models.TextChoices):
    """Whether a payment that was begun at a provider may still bring money."""

    OPEN = "OPEN", _("open")
    PAID = "PAID", _("paid")
    CLOSED = "CLOSED", _("closed")
    LOST = "LOST", _("the provider never told")


# Money is taken whatever was said before: a provider that closed a payment, or was silent, may still bring it.
ATTEMPT_TRANSITIONS: Mapping[AttemptState, frozenset[AttemptState]] = {
    AttemptState.OPEN: frozenset({AttemptState.PAID, AttemptState.CLOSED, AttemptState.LOST}),
    AttemptState.CLOSED: frozenset({AttemptState.PAID}),
    AttemptState.LOST: frozenset({AttemptState.PAID}),
    AttemptState.PAID: frozenset(),
}


class PaymentState(models.TextChoices):
    """What becomes of money that has arrived."""

    ACCEPTED = "ACCEPTED", _("pays its order")
    REFUND_DUE = "REFUND_DUE", _("refund due")
    HONOURING = "HONOURING", _("being honoured")
    REFUNDED = "REFUNDED", _("refunded in full")


PAYMENT_TRANSITIONS: Mapping[PaymentState, frozenset[PaymentState]] = {
    PaymentState.ACCEPTED: frozenset({PaymentState.REFUNDED}),
    PaymentState.REFUND_DUE: frozenset({PaymentState.HONOURING, PaymentState.REFUNDED}),
    PaymentState.HONOURING: frozenset({PaymentState.ACCEPTED, PaymentState.REFUND_DUE}),
    PaymentState.REFUNDED: frozenset(),
}


class PaymentProblem(models.TextChoices):
    """Why money that has arrived pays no order."""

    WRONG_AMOUNT = "WRONG_AMOUNT", _("wrong amount")
    UNKNOWN_ORDER = "UNKNOWN_ORDER", _("unknown order")
    CLOSED_ORDER = "CLOSED_ORDER", _("the order was closed")
    SECOND_PAYMENT = "SECOND_PAYMENT", _("the order was paid already")


class RefundState(models.TextChoices):
    """How far a refund is."""

    REQUESTED = "REQUESTED", _("requested")
    SENT = "SENT", _("sent to the provider")
    DONE = "DONE", _("done")
    FAILED = "FAILED", _("failed")


# A refund whose acceptance got lost on the way is first heard of again when it is done, or has failed.
REFUND_TRANSITIONS: Mapping[RefundState, frozenset[RefundState]] = {
    RefundState.REQUESTED: frozenset({RefundState.SENT, RefundState.DONE, RefundState.FAILED}),
    RefundState.SENT: frozenset({RefundState.DONE, RefundState.FAILED}),
    RefundState.DONE: frozenset(),
    RefundState.FAILED: frozenset(),
}


class HonourState(models.TextChoices):
    """How far the wish is to honour money for a closed order by a new reservation."""

    REQUESTED = "REQUESTED", _("requested")
    DONE = "DONE", _("done")
    REFUSED = "REFUSED", _("refused")


HONOUR_TRANSITIONS: Mapping[HonourState, frozenset[HonourState]] = {
    HonourState.REQUESTED: frozenset({HonourState.DONE, HonourState.REFUSED}),
    HonourState.DONE: frozenset(),
    HonourState.REFUSED: frozenset(),
}


class HonourRefusal(models.TextChoices):
    """Why money for a closed order could not be honoured; the refund is due again."""

    NO_RESERVATION = "no_reservation", _("the closed order was no reservation of a sale")
    SOLD_OUT = "sold_out", _("no unit is left")
    NOT_ENOUGH_LEFT = "not_enough_left", _("fewer units are left than the order had")
    LIMIT_REACHED = "limit_reached", _("the buyer holds as many by now as one may have")
    NOT_STARTED = "not_started", _("the sale is not open yet: ask again when it is")
    ENDED = "ended", _("the sale is over")
    PAUSED = "paused", _("the item is paused: ask again when it is on sale")
    NOT_ON_SALE = "not_on_sale", _("the sale is not open")
    NOT_SETTLED = "not_settled", _("MySQL refused the unit that Redis had given")
    NEW_ORDER_CLOSED = "new_order_closed", _("the new order was closed before the money reached it")
    NEW_ORDER_PAID = "new_order_paid", _("the buyer has paid the new order himself")
    AMOUNT_DIFFERS = "amount_differs", _("the money is not what the new order costs")
    OTHER = "other", _("the gate said no")


class RefundReason(models.TextChoices):
    """Why money goes back."""

    UNWELCOME = "UNWELCOME", _("it pays no order")
    WITHDRAWN = "WITHDRAWN", _("the buyer does not want it, it was not sent")
    SENT_BACK = "SENT_BACK", _("the buyer sent it back")
    DEFECTIVE = "DEFECTIVE", _("it was defective or lost")
    GOODWILL = "GOODWILL", _("goodwill: the buyer keeps it")


class RefundedUnitsTo(models.TextChoices):
    """Where the units of a refunded order go; they come back only with the whole amount."""

    ON_SALE = "ON_SALE", _("on sale again")
    WAREHOUSE = "WAREHOUSE", _("to the warehouse")
    WRITTEN_OFF = "WRITTEN_OFF", _("written off")
    NOWHERE = "NOWHERE", _("no units come back")


DEFAULT_UNITS_TO: Mapping[RefundReason, RefundedUnitsTo] = {
    RefundReason.UNWELCOME: RefundedUnitsTo.NOWHERE,
    RefundReason.WITHDRAWN: RefundedUnitsTo.ON_SALE,
    RefundReason.SENT_BACK: RefundedUnitsTo.WAREHOUSE,
    RefundReason.DEFECTIVE: RefundedUnitsTo.WRITTEN_OFF,
    RefundReason.GOODWILL: RefundedUnitsTo.NOWHERE,
}

S = TypeVar("S", bound=models.TextChoices)


def is_allowed(from_state: OrderState, to_state: OrderState) -> bool:
    """Tell whether an order may go from one state to another."""
    return to_state in TRANSITIONS[from_state]


def sources_of(table: Mapping[S, frozenset[S]], to_state: S) -> list[S]:
    """Return the states from which a table leads to another: what a guarded UPDATE names."""
    return [state for state in table if to_state in table[state]]
