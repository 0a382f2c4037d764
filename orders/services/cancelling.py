"""Cancelling: a begun payment is closed at its provider first, so that no money arrives unseen."""

from datetime import datetime

from orders.errors import TransitionRefused
from orders.models import Order
from orders.services.asking import close_payments_of
from orders.services.moves import move_order
from orders.states import OrderState


def cancel_order(*, number: str, buyer_id: int, now: datetime) -> None:
    """Cancel a buyer's own unpaid order; its units go on sale again.

    Raises ``TransitionRefused`` when it is not his, or no longer unpaid, perhaps because the provider
    says now that it was paid; ``ProviderUnavailable`` when the provider does not say. Nothing is
    cancelled then, and the buyer may repeat.
    """
    order = Order.objects.filter(number=number, buyer_id=buyer_id).first()
    if order is None:
        raise TransitionRefused(number=number, to_state=OrderState.CANCELLED)
    if order.payment_begun_at is not None:
        close_payments_of(order_id=order.pk, now=now)
    move_order(
        number=number,
        from_state=OrderState.PENDING_PAYMENT,
        to_state=OrderState.CANCELLED,
        now=now,
        reason="cancelled by the buyer",
        actor_id=buyer_id,
    )
