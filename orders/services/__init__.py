"""Writes of the orders; what other apps may use is named here."""

from orders.services.cancelling import cancel_order
from orders.services.expiry import expire_orders
from orders.services.honours import complete_honour, give_number, refuse_honour, request_honour
from orders.services.moves import move_order, put_off_units, units_taken_back
from orders.services.placing import NewOrder, place_orders

__all__ = [
    "NewOrder",
    "cancel_order",
    "complete_honour",
    "expire_orders",
    "give_number",
    "move_order",
    "place_orders",
    "put_off_units",
    "refuse_honour",
    "request_honour",
    "units_taken_back",
]
