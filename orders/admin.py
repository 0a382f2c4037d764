"""Admin of the orders: read-only, an order changes only through its services."""

from django.contrib import admin

from orders import money_admin  # noqa: F401  registers the pages of money
from orders.models import Order, OrderEvent
from rest.desk import ReadOnlyDeskAdmin, ReadOnlyDeskInline


class OrderEventInline(ReadOnlyDeskInline):
    """The order's history on its page."""

    model = OrderEvent


@admin.register(Order)
class OrderAdmin(ReadOnlyDeskAdmin):
    """Orders with their history, newest first."""

    list_display = ["number", "buyer", "sku", "quantity", "unit_price", "state", "created_at", "pay_by_at"]
    list_filter = ["state"]
    search_fields = ["number"]
    list_select_related = ["buyer", "sku"]
    ordering = ["-id"]
    inlines = [OrderEventInline]
    show_full_result_count = False
