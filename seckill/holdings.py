"""What a buyer holds, over all his tickets: for whoever lost his tab, changed his phone, or asks for too much."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import DatabaseError

from orders.selectors import order_by_number
from orders.states import OrderState
from seckill.conf import LIMITS
from seckill.errors import LiveOrder
from seckill.models import Reservation, Ticket
from seckill.polling import PurchaseState, PurchaseStatus, purchase_status, status_of_row
from seckill.transient import is_transient

logger = logging.getLogger(__name__)

# A gate that does not answer costs a second; after so many the other pools are not even asked.
AWAY_POOLS_MAX = 2


@dataclass(frozen=True, kw_only=True)
class Holding:
    """What became of one of the buyer's tickets."""

    item_id: int
    status: PurchaseStatus

    @property
    def is_open(self) -> bool:
        """Whether the buyer still has something to do or to wait for."""
        if self.status.state is PurchaseState.CONFIRMED:
            return self.status.order is not None and self.status.order.state is OrderState.PENDING_PAYMENT
        return self.status.state in {PurchaseState.QUEUED, PurchaseState.UNKNOWN}


def open_purchases(*, buyer_id: int) -> list[Holding]:
    """List what the buyer has reserved and not paid, newest first, on whatever device he reserved it.

    ``unknown`` stands for tickets of which nobody can tell now whether they were used.
    """
    tickets = Ticket.objects.filter(buyer_id=buyer_id).order_by("-pk")[: LIMITS.tickets_looked_at_max]
    return [holding for holding in _holdings(tickets=list(tickets)) if holding.is_open]


def live_orders(*, pool_id: int, buyer_id: int) -> tuple[LiveOrder, ...]:
    """Name the buyer's own reservations in a pool, for one who is told that he has reached the limit.

    Nobody else's, whoever shares his limit; none where MySQL is away: the limit is reached all the same.
    """
    tickets = Ticket.objects.filter(pool_id=pool_id, buyer_id=buyer_id).order_by("-pk")
    try:
        holdings = _holdings(tickets=list(tickets[: LIMITS.tickets_looked_at_max]))
    except DatabaseError as error:
        if not is_transient(error):
            raise
        logger.warning("a buyer at his limit is not told of his orders: %s", error)
        return ()
    return tuple(_live_order(holding.status) for holding in holdings if holding.status.is_alive)


def _holdings(*, tickets: Sequence[Ticket]) -> list[Holding]:
    """Ask MySQL for all tickets at once, and the gate only for those that MySQL does not know."""
    numbers = [ticket.order_no for ticket in tickets]
    rows = {row.order_no: row for row in Reservation.objects.filter(order_no__in=numbers)}
    away: set[int] = set()
    found = []
    for ticket in tickets:
        row = rows.get(ticket.order_no)
        if row is not None:
            status = status_of_row(row)
        elif ticket.pool_id in away or len(away) >= AWAY_POOLS_MAX:
            status = PurchaseStatus(order_no=ticket.order_no, state=PurchaseState.UNKNOWN)
        else:
            status = purchase_status(order_no=ticket.order_no, buyer_id=ticket.buyer_id)
        if status.state is PurchaseState.UNKNOWN:
            away.add(ticket.pool_id)
        found.append(Holding(item_id=ticket.item_id, status=status))
    return found


def _live_order(status: PurchaseStatus) -> LiveOrder:
    order = status.order or order_by_number(number=status.order_no)
    if order is None:
        return LiveOrder(number=status.order_no, state=status.state.value, pay_by_at=None)
    return LiveOrder(number=order.number, state=order.state.value, pay_by_at=order.pay_by_at)
