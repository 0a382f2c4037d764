"""Admin of the orders: read-only, an order changes only through its services."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from inventory.admin import ReadOnlyAdmin
from orders import money_admin  # noqa: F401  registers the pages of money
from orders.models import Order, OrderEvent


class OrderEventInline(admin.TabularInline[OrderEvent, Order]):
    """The order's history on its page."""

    model = OrderEvent
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Events are written by services alone."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Events are never changed."""
        return False


@admin.register(Order)
class OrderAdmin(ReadOnlyAdmin):
    """Orders with their history, newest first."""

    list_display = ["number", "buyer", "sku", "quantity", "unit_price", "state", "created_at", "pay_by_at"]
    list_filter = ["state"]
    search_fields = ["number"]
    list_select_related = ["buyer", "sku"]
    ordering = ["-id"]
    inlines = [OrderEventInline]
    show_full_result_count = False
