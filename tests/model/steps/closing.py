"""Closing an order touches only the order; two doors, and only one of them may close it. As orders/services.py."""

from collections.abc import Iterator

from tests.model.state import CANCELLED, EXPIRED, NO_ORDER, PENDING, State, swap_at
from tests.model.steps.process import Move, Process


class Closing(Process):
    """Buyers who cancel, and unpaid orders that run out of time."""

    STEPS = {"cancel_order": "orders.services.cancel_order", "expire_orders": "orders.services.expire_orders"}

    def moves(self, state: State) -> Iterator[Move]:
        """Yield each closing that may come."""
        if not state.faults.closings:
            return
        for order, now in enumerate(state.mysql.orders):
            if now == NO_ORDER or self.model.rule("an_order_closes_once", now != PENDING):
                continue
            for step, closed in (("cancel_order", CANCELLED), ("expire_orders", EXPIRED)):
                for units_to in self.model.world.units_to:
                    yield self._close(state, order, step, closed, units_to)

    def _close(self, state: State, order: int, step: str, closed: str, units_to: str) -> Move:
        mysql = state.mysql._replace(
            orders=swap_at(state.mysql.orders, order, closed),
            units_to=swap_at(state.mysql.units_to, order, units_to),
        )
        faults = state.faults._replace(closings=state.faults.closings - 1)
        return Move(f"{step} {order} {units_to}", state._replace(mysql=mysql, faults=faults), is_by_itself=False)
