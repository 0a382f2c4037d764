"""Honouring money for a closed order: the wish, the number of the new reservation, and how it ends.

The closed order stays closed. Whoever sells takes a unit again under a new number, as for any buyer,
and the payment moves to the new order. Each step is one guarded change, so it is done once, whoever
repeats it after a death.
"""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from orders.errors import HonourRefused
from orders.models import Honour, Order, Payment, PaymentAttempt
from orders.services.moves import lock_order, move_locked
from orders.states import (
    CLOSED,
    HONOUR_TRANSITIONS,
    PAYMENT_TRANSITIONS,
    AttemptState,
    HonourRefusal,
    HonourState,
    OrderState,
    PaymentProblem,
    PaymentState,
    sources_of,
)


def request_honour(*, payment_id: int, actor_id: int | None, now: datetime) -> None:
    """Ask for money of a closed order to be honoured instead of refunded.

    Raises ``HonourRefused`` for any other money, and when a refund is under way.
    """
    with transaction.atomic(durable=True):
        payment = Payment.objects.select_for_update().get(pk=payment_id)
        if payment.problem != PaymentProblem.CLOSED_ORDER:
            raise HonourRefused(_("only money for a closed order can be honoured"))
        if payment.refunding:
            raise HonourRefused(_("a refund is under way, or was made"))
        _move_payment(payment=payment, to_state=PaymentState.HONOURING, now=now)
        Honour.objects.create(
            payment_id=payment.pk, open_key=payment.pk, requested_by_id=actor_id, created_at=now, updated_at=now
        )


def give_number(*, honour_id: int, number: str, now: datetime) -> bool:
    """Give an open wish its number, in the caller's transaction; False when somebody has given it another."""
    unnumbered = Honour.objects.filter(pk=honour_id, state=HonourState.REQUESTED, number__isnull=True)
    return unnumbered.update(number=number, updated_at=now) == 1


def complete_honour(*, honour_id: int, now: datetime) -> bool:
    """Move the payment to the order of the new reservation, and the order to PAID; tell whether that was done.

    An order that is not waiting any more (its time ran out before anybody came here, or the buyer has
    paid it) refuses the honour: the refund is due again.
    """
    honour = Honour.objects.get(pk=honour_id)
    with transaction.atomic(durable=True):
        order = lock_order(order_id=Order.objects.values_list("pk", flat=True).get(number=honour.number))
        payment = Payment.objects.select_for_update().get(pk=honour.payment_id)
        reason = _why_not(order=order, payment=payment)
        to_state = HonourState.REFUSED if reason else HonourState.DONE
        if not _end(honour=honour, to_state=to_state, reason=reason, now=now):
            return False
        if not reason:
            _pay(order=order, payment=payment, actor_id=honour.requested_by_id, now=now)
        else:
            _move_payment(payment=payment, to_state=PaymentState.REFUND_DUE, now=now)
    return not reason


def refuse_honour(*, honour_id: int, reason: HonourRefusal, now: datetime) -> None:
    """Note that no unit could be taken; the refund is due again."""
    honour = Honour.objects.get(pk=honour_id)
    with transaction.atomic(durable=True):
        payment = Payment.objects.select_for_update().get(pk=honour.payment_id)
        if _end(honour=honour, to_state=HonourState.REFUSED, reason=reason, now=now):
            _move_payment(payment=payment, to_state=PaymentState.REFUND_DUE, now=now)


def _why_not(*, order: Order, payment: Payment) -> HonourRefusal | None:
    """Say why the payment cannot pay the new order, which is locked; None where it can."""
    if order.state in CLOSED:
        return HonourRefusal.NEW_ORDER_CLOSED
    if order.state != OrderState.PENDING_PAYMENT:
        return HonourRefusal.NEW_ORDER_PAID
    return None if order.unit_price * order.quantity == payment.amount else HonourRefusal.AMOUNT_DIFFERS


def _pay(*, order: Order, payment: Payment, actor_id: int | None, now: datetime) -> None:
    was_for = payment.order_reference
    columns = {"order": order, "pays": order, "problem": ""}
    _move_payment(payment=payment, to_state=PaymentState.ACCEPTED, now=now, columns=columns)
    reason = f"money for {was_for} honoured"
    move_locked(order=order, to_state=OrderState.PAID, now=now, reason=reason, actor_id=actor_id)
    PaymentAttempt.objects.filter(order_id=order.pk, state=AttemptState.OPEN).update(ask_at=now)


def _end(*, honour: Honour, to_state: HonourState, reason: HonourRefusal | None, now: datetime) -> bool:
    rows = Honour.objects.filter(pk=honour.pk, state__in=sources_of(HONOUR_TRANSITIONS, to_state))
    return rows.update(state=to_state, reason=reason or "", open_key=None, updated_at=now) == 1


def _move_payment(
    *, payment: Payment, to_state: PaymentState, now: datetime, columns: Mapping[str, object] | None = None
) -> None:
    """Move a locked payment along its table. Raises ``HonourRefused`` when it is elsewhere by now."""
    rows = Payment.objects.filter(pk=payment.pk, state__in=sources_of(PAYMENT_TRANSITIONS, to_state))
    if rows.update(state=to_state, updated_at=now, **(columns or {})) != 1:
        raise HonourRefused(_("the payment is {state}").format(state=payment.get_state_display()))
