"""Read, decide in Python, write back: the unsafe versions of services, whose readers all meet before they write."""

import threading
from collections.abc import Callable

from inventory.models import Stock
from orders.models import Order
from orders.states import CLOSED, OrderState, is_allowed


def unsafe_receive(*, writers: int) -> Callable[[int, int], None]:
    """Make a version of ``receive`` for so many callers at once."""
    all_have_read = threading.Barrier(writers)

    def receive(sku_id: int, units: int) -> None:
        stock = Stock.objects.get(sku_id=sku_id)
        all_have_read.wait()
        stock.on_hand += units
        stock.save()

    return receive


def unsafe_allocate(*, writers: int) -> Callable[[int, int], bool]:
    """Make a version of ``allocate`` for so many callers at once; it returns whether the units were given."""
    all_have_read = threading.Barrier(writers)

    def allocate(sku_id: int, units: int) -> bool:
        stock = Stock.objects.get(sku_id=sku_id)
        all_have_read.wait()
        if stock.on_hand < units:
            return False
        stock.on_hand -= units
        stock.save()
        return True

    return allocate


def unsafe_move(*, writers: int) -> Callable[[str, OrderState], bool]:
    """Make a version of ``move_order`` for so many callers at once; it returns whether the order was moved."""
    all_have_read = threading.Barrier(writers)

    def move(number: str, to_state: OrderState) -> bool:
        order = Order.objects.get(number=number)
        all_have_read.wait()
        if not is_allowed(OrderState(order.state), to_state):
            return False
        order.state = to_state
        order.closed_at = order.pay_by_at if to_state in CLOSED else None
        order.save()
        return True

    return move
