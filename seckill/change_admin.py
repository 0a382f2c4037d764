"""Pages of changes by hand of what is on sale: ask, decide, and see what the reconciliation after it found."""

from functools import partial
from typing import Any

from django.contrib import admin
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.translation import gettext_lazy as _

from inventory.change_admin import ManualChangeAdmin
from inventory.changes import ChangeState
from seckill.adjusting import apply_item_adjustment
from seckill.change_tables import ItemAdjustment, WindowChange
from seckill.followup import try_to_apply
from seckill.models import FlashSale, ReconciliationRun, SaleItem
from seckill.states import SaleState
from seckill.windows import apply_window_change

RUNS_SHOWN_MAX = 20


@admin.register(ItemAdjustment)
class ItemAdjustmentAdmin(ManualChangeAdmin):
    """More or fewer units of an item on sale."""

    request_fields = ["item", "delta", "counterpart", "reason"]
    list_display = [*ManualChangeAdmin.list_display, "reconciled"]
    list_select_related = ["item__sku", "item__pool__sale", "requested_by", "decided_by", "reconciliation"]
    search_fields = ["item__sku__code", "reason"]

    def formfield_for_foreignkey(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        """Offer only items on sale."""
        if db_field.name == "item":
            on_sale = SaleItem.objects.filter(pool__sale__state=SaleState.PREHEATED)
            kwargs["queryset"] = on_sale.select_related("sku", "pool__sale")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def apply(self, *, change_id: int) -> ChangeState:
        """Apply an approved adjustment."""
        apply = partial(apply_item_adjustment, adjustment_id=change_id, clock=timezone.now)
        return try_to_apply(name=f"item adjustment {change_id}", apply=apply)

    @admin.display(description=_("reconciliation after it"))
    def reconciled(self, change: ItemAdjustment) -> str:
        """Verdict of the first reconciliation that counted it in both stores."""
        return change.reconciliation.get_verdict_display() if change.reconciliation else "–"


@admin.register(WindowChange)
class WindowChangeAdmin(ManualChangeAdmin):
    """Another opening or closing of a preheated sale."""

    request_fields = ["sale", "opens_at", "closes_at", "reason"]
    list_display = [*ManualChangeAdmin.list_display, "reconciled"]
    list_select_related = ["sale", "requested_by", "decided_by"]
    search_fields = ["sale__name", "reason"]

    def formfield_for_foreignkey(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        """Offer only sales that are preheated; before that, the window is changed on the sale's own page."""
        if db_field.name == "sale":
            kwargs["queryset"] = FlashSale.objects.filter(state=SaleState.PREHEATED)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def apply(self, *, change_id: int) -> ChangeState:
        """Apply an approved change."""
        apply = partial(apply_window_change, change_id=change_id, clock=timezone.now)
        return try_to_apply(name=f"window change {change_id}", apply=apply)

    @admin.display(description=_("reconciliations after it"))
    def reconciled(self, change: WindowChange) -> str:
        """Verdict per bucket of the first reconciliation after it."""
        if change.finished_at is None or change.state != ChangeState.APPLIED:
            return "–"
        runs = ReconciliationRun.objects.filter(pool__sale_id=change.sale_id, created_at__gte=change.finished_at)
        first: dict[str, str] = {}
        for run in runs.order_by("pk")[:RUNS_SHOWN_MAX]:
            first.setdefault(f"{run.pool_id}:{run.bucket_no}", run.get_verdict_display())
        return format_html_join(", ", "{}: {}", first.items()) or "–"
