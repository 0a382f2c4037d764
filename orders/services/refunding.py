"""Asking for refunds: how much, why, and where the units go; the provider hears of it later (``sending``)."""

import secrets
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from orders.errors import RefundRefused
from orders.models import Order, Payment, Refund
from orders.services.moves import lock_order, write_events
from orders.states import DEFAULT_UNITS_TO, OrderState, PaymentState, RefundedUnitsTo, RefundReason

REFUNDABLE = frozenset({PaymentState.ACCEPTED, PaymentState.REFUND_DUE})


@dataclass(frozen=True, kw_only=True)
class RefundRequest:
    """What somebody wants given back. Units come back only with all the money of what pays an order.

    ``replaces_id`` names the failed refund that this one is made instead of; each is replaced once.
    """

    payment_id: int
    amount: Decimal
    reason: RefundReason
    units_to: RefundedUnitsTo
    note: str = ""
    actor_id: int | None = None
    replaces_id: int | None = None


def request_refund(*, request: RefundRequest, now: datetime) -> str:
    """Write a refund to be sent; return its reference.

    The units of a paid order that is refunded as a whole are given up here, in the same transaction and
    by one conditional change, so whichever doors race they come back once. Raises ``RefundRefused``
    and changes nothing when more would go back than came, when the payment is being honoured, or when
    units cannot come back.
    """
    reference = f"R-{secrets.token_hex(12)}"
    with transaction.atomic(durable=True):
        payment = _locked(payment_id=request.payment_id)
        _require_refundable(payment=payment, request=request)
        Payment.objects.filter(pk=payment.pk).update(refunding=F("refunding") + request.amount, updated_at=now)
        Refund.objects.create(
            payment_id=payment.pk,
            provider=payment.provider,
            reference=reference,
            amount=request.amount,
            reason=request.reason,
            units_to=request.units_to,
            note=request.note,
            replaces_id=request.replaces_id,
            requested_by_id=request.actor_id,
            due_at=now,
            created_at=now,
            updated_at=now,
        )
        if request.units_to is not RefundedUnitsTo.NOWHERE:
            _give_units_up(payment=payment, request=request, reference=reference, now=now)
    return reference


def default_units_to(*, payment: Payment, amount: Decimal, reason: RefundReason) -> RefundedUnitsTo:
    """Return where units go for a reason when nobody says: nowhere, unless all that pays an order goes back."""
    is_whole = payment.pays_id is not None and amount == payment.amount - payment.refunding
    return DEFAULT_UNITS_TO[reason] if is_whole else RefundedUnitsTo.NOWHERE


def _locked(*, payment_id: int) -> Payment:
    """Lock the order first, then the payment, as everybody does; see Note [Locks of the orders]."""
    order_id = Payment.objects.values_list("order_id", flat=True).get(pk=payment_id)
    if order_id is not None:
        lock_order(order_id=order_id)
    payment = Payment.objects.select_for_update().get(pk=payment_id)
    if payment.order_id != order_id:
        raise RefundRefused(_("the payment was moved to another order meanwhile, please look again"))
    return payment


def _require_refundable(*, payment: Payment, request: RefundRequest) -> None:
    left = payment.amount - payment.refunding
    if payment.state not in REFUNDABLE:
        raise RefundRefused(_("the payment is {state}").format(state=payment.get_state_display()))
    if not 0 < request.amount <= left:
        raise RefundRefused(_("at most {left} can be refunded, and more than nothing").format(left=left))
    if request.replaces_id is not None and Refund.objects.filter(replaces_id=request.replaces_id).exists():
        raise RefundRefused(_("it was asked for again already"))
    if request.units_to is RefundedUnitsTo.NOWHERE:
        return
    if payment.pays_id is None:
        raise RefundRefused(_("no units belong to this money"))
    if request.amount != left:
        raise RefundRefused(_("units come back only with the whole amount, which is {left}").format(left=left))


def _give_units_up(*, payment: Payment, request: RefundRequest, reference: str, now: datetime) -> None:
    """Close a paid order's hold on its units, once: whoever sold them finds them by ``units_due_at``."""
    assert payment.pays_id is not None  # noqa: S101  looked at by the caller
    given_up = Order.objects.filter(pk=payment.pays_id, state=OrderState.PAID, closed_at__isnull=True).update(
        closed_at=now, units_due_at=now, units_to=request.units_to.value
    )
    if given_up != 1:
        raise RefundRefused(_("the order's units have been given back already"))
    write_events(
        order_ids=[payment.pays_id],
        from_state=OrderState.PAID,
        to_state=OrderState.PAID,
        now=now,
        reason=f"units given back with refund {reference}",
        actor_id=request.actor_id,
    )
