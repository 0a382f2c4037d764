"""Money taken by reading, deciding and writing: the unsafe version, whose callers all meet before they write."""

import threading
from collections.abc import Callable

from orders.models import Order, OrderEvent
from orders.states import OrderState
from tests.support.rows import NOW


def unsafe_take(*, takers: int) -> Callable[[int], bool]:
    """Make a version of ``take_money`` for so many callers at once; it returns whether it paid the order."""
    all_have_read = threading.Barrier(takers)

    def take(order_id: int) -> bool:
        order = Order.objects.get(pk=order_id)
        all_have_read.wait()
        if order.state != OrderState.PENDING_PAYMENT:
            return False
        order.state, order.payment_begun_at = OrderState.PAID, None
        order.save()
        OrderEvent.objects.create(
            order=order, from_state=OrderState.PENDING_PAYMENT, to_state=OrderState.PAID, created_at=NOW
        )
        return True

    return take
