"""What can go wrong with stock, as types whose attributes carry the numbers."""

from dataclasses import dataclass


class InventoryError(Exception):
    """Base of all errors of the inventory."""


class UnknownProduct(InventoryError):
    """Raised when there is no such product, or it is not shown."""


@dataclass
class NotEnoughOnHand(InventoryError):
    """Raised when more units are taken from the warehouse than it has."""

    sku_id: int
    asked: int
    on_hand: int

    def __str__(self) -> str:
        return f"SKU {self.sku_id}: {self.asked} units asked for, {self.on_hand} in the warehouse"


@dataclass
class NoStockRow(InventoryError):
    """Raised when units shall go into the warehouse and the SKU's stock row, which was there, is gone."""

    sku_id: int

    def __str__(self) -> str:
        return f"SKU {self.sku_id} has no stock row to put units into"


class UnknownChange(InventoryError):
    """Raised when there is no such request for a change."""


@dataclass
class ChangeNotAllowed(InventoryError):
    """Raised when somebody may not request, approve or reject a change."""

    explanation: str

    def __str__(self) -> str:
        return self.explanation


@dataclass
class AlreadyDecided(InventoryError):
    """Raised when a change has left the state that an action needs; ``state`` is where it stands."""

    state: str

    def __str__(self) -> str:
        return f"the change is {self.state.lower()} already"
