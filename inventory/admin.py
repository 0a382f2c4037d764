"""Admin of the inventory: the catalogue is edited, stock numbers and the ledger are only read."""

from django.contrib import admin
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from inventory.adjusting import apply_stock_adjustment
from inventory.change_admin import ManualChangeAdmin
from inventory.changes import ChangeState
from inventory.models import Product, Sku, Stock, StockAdjustment, StockMovement
from rest.desk import DeskAdmin, DeskInline, ReadOnlyDeskAdmin


class SkuInline(DeskInline):
    """The variants on the product's page."""

    model = Sku


@admin.register(Product)
class ProductAdmin(DeskAdmin):
    """Products with their variants."""

    list_display = ["name", "is_active", "created_at"]
    search_fields = ["name", "skus__code"]
    ordering = ["-id"]
    list_filter = ["is_active"]
    inlines = [SkuInline]


@admin.register(Sku)
class SkuAdmin(DeskAdmin):
    """Variants with what the warehouse has of them."""

    list_display = ["code", "name", "product", "list_price", "on_hand", "books"]
    search_fields = ["code", "name", "product__name"]
    ordering = ["code"]
    list_select_related = ["product", "stock"]
    autocomplete_fields = ["product"]

    @admin.display(description=_("on hand"))
    def on_hand(self, sku: Sku) -> int:
        """Units in the warehouse; 0 before the first receipt."""
        return sku.stock.on_hand if hasattr(sku, "stock") else 0

    @admin.display(description=_("Stock audit"))
    def books(self, sku: Sku) -> SafeString:
        """Lead to the SKU's books."""
        return format_html('<a href="{}">{}</a>', reverse("desk_audit_sku", args=[sku.pk]), _("Show"))


@admin.register(Stock)
class StockAdmin(ReadOnlyDeskAdmin):
    """Warehouse numbers."""

    list_display = ["sku", "on_hand", "version"]
    list_select_related = ["sku"]
    search_fields = ["^sku__code"]


@admin.register(StockMovement)
class StockMovementAdmin(ReadOnlyDeskAdmin):
    """The ledger, newest first."""

    list_display = ["created_at", "sku", "account", "kind", "units", "reference", "actor"]
    list_filter = ["kind"]
    search_fields = ["=account", "^reference", "=sku__code"]
    list_select_related = ["sku", "actor"]
    ordering = ["-id"]
    show_full_result_count = False


@admin.register(StockAdjustment)
class StockAdjustmentAdmin(ManualChangeAdmin):
    """Changes of warehouse numbers: the only way to change them by hand."""

    request_fields = ["sku", "delta", "reason"]
    autocomplete_fields = ["sku"]
    search_fields = ["sku__code", "reason"]
    list_select_related = ["sku", "requested_by", "decided_by"]

    def apply(self, *, change_id: int) -> ChangeState:
        """Apply an approved adjustment."""
        return apply_stock_adjustment(adjustment_id=change_id, now=timezone.now())
