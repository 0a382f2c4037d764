"""Admin of the flash sales: sales, pools and items, the gate's numbers beside MySQL's, and three actions."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

import seckill.archive_admin  # noqa: F401  pages in a file of their own
from rest.desk import DeskAdmin, DeskInline, ReadOnlyDeskAdmin
from rest.reasons import reason_in, with_reason
from seckill import alert_admin, change_admin, incident_admin, letter_admin  # noqa: F401  they register their pages
from seckill.changeable import EDITABLE
from seckill.checked_forms import CheckedItemForm, CheckedPoolForm, CheckedSaleForm, item_fields
from seckill.errors import SeckillError
from seckill.models import FlashSale, RebuildRun, ReconciliationRun, Repair, Reservation, SaleItem, SalePool
from seckill.pausing import pause_item, resume_item
from seckill.preheat import preheat_sale
from seckill.sale_word import phase_of_sale
from seckill.sampling import look, parts_of
from seckill.states import SaleState
from seckill.withdrawing import withdraw_sale


class PoolInline(DeskInline):
    """Pools on the sale's page."""

    model = SalePool
    form = CheckedPoolForm
    show_change_link = True


class ItemInline(DeskInline):
    """Items on the pool's page."""

    model = SaleItem
    form = CheckedItemForm
    autocomplete_fields = ["sku"]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Ask for a price a second time only where one can be typed."""
        return item_fields(is_editable=obj is None or SaleState(obj.sale.state) in EDITABLE)[1:]


class FixedAfterPreheatAdmin(DeskAdmin):
    """Base of pages that are read-only from preheat on.

    What a form shows may be minutes old. So the sale's row is locked and looked at again before
    anything is saved, with all inlines behind it, and only changed columns are written.
    """

    def sale_of(self, obj: Any) -> FlashSale:
        """Return the sale an object belongs to."""
        raise NotImplementedError

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow changes only while the sale is a draft or scheduled."""
        return super().has_change_permission(request, obj) and (obj is None or self._is_editable(obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow deletion only while the sale is a draft or scheduled."""
        return super().has_delete_permission(request, obj) and (obj is None or self._is_editable(obj))

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer only sales and pools that may still be changed."""
        if db_field.name == "sale":
            kwargs["queryset"] = FlashSale.objects.filter(state__in=EDITABLE)
        elif db_field.name == "pool":
            kwargs["queryset"] = SalePool.objects.filter(sale__state__in=EDITABLE)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:  # noqa: FBT001
        """Lock the sale, look again, and write what the form changed."""
        if obj.pk is None and isinstance(obj, FlashSale):
            obj.save()
            return
        self._lock_editable(obj)
        if not change:
            obj.save()
        elif form.changed_data:
            obj.save(update_fields=form.changed_data)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Lock the sale and look again before deleting."""
        with transaction.atomic():
            self._lock_editable(obj)
            obj.delete()

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Delete one by one, each after a look at its sale; all or nothing."""
        with transaction.atomic():
            self.tell_deletion(request, queryset)
            for obj in queryset:
                self.delete_model(request, obj)

    def _is_editable(self, obj: Any) -> bool:
        return SaleState(self.sale_of(obj).state) in EDITABLE

    def _lock_editable(self, obj: Any) -> None:
        """Lock the sales an object belongs to, by its row and by its form; refuse when one is preheated by now."""
        sale_ids = {self.sale_of(obj).pk}
        if obj.pk is not None:
            sale_ids.add(self.sale_of(type(obj).objects.get(pk=obj.pk)).pk)
        states = FlashSale.objects.select_for_update().filter(pk__in=sale_ids).order_by("pk")
        if not set(states.values_list("state", flat=True)) <= EDITABLE:
            raise PermissionDenied("The sale was preheated meanwhile; nothing was changed.")


@admin.register(FlashSale)
class FlashSaleAdmin(FixedAfterPreheatAdmin):
    """Sales with their window and phase."""

    form = CheckedSaleForm
    list_display = ["name", "phase", "opens_at", "closes_at", "pay_window_minutes", "desk", "watch"]
    ordering = ["-opens_at"]
    list_filter = ["state"]
    search_fields = ["name"]
    inlines = [PoolInline]

    def sale_of(self, obj: FlashSale) -> FlashSale:
        """Return the sale itself."""
        return obj

    @admin.display(description=_("Live monitor"))
    def watch(self, sale: FlashSale) -> SafeString:
        """Lead to the sale's monitor."""
        return format_html('<a href="{}">{}</a>', reverse("desk_monitor_sale", args=[sale.pk]), _("Show"))

    @admin.display(description=_("sale desk"))
    def desk(self, sale: FlashSale) -> SafeString:
        """A link to where the sale is preheated, paused and ended."""
        return format_html('<a href="{}">{}</a>', reverse("desk_sale", args=[sale.pk]), _("open"))

    @admin.display(description=_("phase"))
    def phase(self, sale: FlashSale) -> str:
        """One word for where the sale is right now."""
        return str(phase_of_sale(sale=sale, now=timezone.now()).label)


@admin.register(SalePool)
class SalePoolAdmin(FixedAfterPreheatAdmin):
    """Pools with their items."""

    form = CheckedPoolForm
    list_display = ["__str__", "sale", "limit_per_buyer", "max_queue"]
    ordering = ["-id"]
    list_select_related = ["sale"]
    search_fields = ["name", "sale__name"]
    inlines = [ItemInline]

    def sale_of(self, obj: SalePool) -> FlashSale:
        """Return the pool's sale."""
        return obj.sale


@admin.register(SaleItem)
class SaleItemAdmin(FixedAfterPreheatAdmin):
    """Items on sale: MySQL's numbers and the gate's, side by side."""

    form = CheckedItemForm
    list_display = ["__str__", "price", "units", "phase", "is_paused", "in_mysql", "in_redis", "books"]
    ordering = ["-id"]
    list_select_related = ["sku__product", "pool__sale"]
    list_filter = ["pool__sale"]
    search_fields = ["sku__code", "pool__sale__name"]
    autocomplete_fields = ["sku", "pool"]
    actions = ["preheat", "withdraw", "pause", "resume"]

    def sale_of(self, obj: SaleItem) -> FlashSale:
        """Return the item's sale."""
        return obj.pool.sale

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Ask for a price a second time only where one can be typed."""
        return item_fields(is_editable=self.has_change_permission(request, obj))

    @admin.display(description=_("phase"))
    def phase(self, item: SaleItem) -> str:
        """One word for where the item's sale is right now."""
        return str(phase_of_sale(sale=item.pool.sale, now=timezone.now()).label)

    def prepare_rows(self, rows: list[Any]) -> None:
        """Read the units of all items of the page from both stores at once."""
        parts = parts_of(item_id__in=[item.pk for item in rows])
        seen, _felt = look(parts=parts)
        for item in rows:
            item.parts = [part for part in parts if part.item_id == item.pk]
            item.seen = seen.get(item.pk)

    @admin.display(description=_("MySQL: sold / allocated"))
    def in_mysql(self, item: Any) -> str:
        """Units over all buckets."""
        return f"{sum(part.sold for part in item.parts)} / {sum(part.allocated for part in item.parts)}"

    @admin.display(description=_("Redis: left + in flight"))
    def in_redis(self, item: Any) -> str:
        """Units over all buckets, or a dash where Redis has none or cannot be asked."""
        seen = item.seen
        return "–" if seen is None or seen.left is None else f"{seen.left} + {seen.queued}"

    @admin.display(description=_("Stock audit"))
    def books(self, item: SaleItem) -> SafeString:
        """Lead to the item's books."""
        return format_html('<a href="{}">{}</a>', reverse("desk_audit_item", args=[item.pk]), _("Show"))

    @admin.action(description=_("Preheat the sale of the selected items"), permissions=["change"])
    @with_reason
    def preheat(self, request: HttpRequest, items: QuerySet[SaleItem]) -> None:
        """Bring the sales of the selected items into Redis."""
        for sale in _sales_of(items):
            self._try(request, partial(preheat_sale, sale_id=sale.pk, clock=timezone.now), sale, "preheat")

    @admin.action(description=_("Withdraw the sale of the selected items"), permissions=["change"])
    @with_reason
    def withdraw(self, request: HttpRequest, items: QuerySet[SaleItem]) -> None:
        """Make the sales of the selected items drafts again, if nobody has reserved anything in them."""
        for sale in _sales_of(items):
            act = partial(withdraw_sale, sale_id=sale.pk, clock=timezone.now, actor_id=request.user.pk)
            self._try(request, act, sale, "withdraw")

    @admin.action(description=_("Pause the selected items"), permissions=["change"])
    @with_reason
    def pause(self, request: HttpRequest, items: QuerySet[SaleItem]) -> None:
        """Refuse new reservations of the selected items."""
        for item in items:
            self._try(request, partial(pause_item, item_id=item.pk), item, "pause")

    @admin.action(description=_("Resume the selected items"), permissions=["change"])
    @with_reason
    def resume(self, request: HttpRequest, items: QuerySet[SaleItem]) -> None:
        """Let the selected items be bought again."""
        for item in items:
            self._try(request, partial(resume_item, item_id=item.pk), item, "resume")

    def _try(self, request: HttpRequest, action: Callable[[], None], row: Model, what: str) -> None:
        name = _("sale %(number)d") % {"number": row.pk} if isinstance(row, FlashSale) else str(row)
        try:
            with self.recorded(request, row, f"seckill.{what}", reason_in(request)):
                action()
        except SeckillError as error:
            self.message_user(request, f"{name}: {str(error) or type(error).__name__}", messages.ERROR)
        else:
            self.message_user(request, _("%(name)s: done") % {"name": name}, messages.SUCCESS)


def _sales_of(items: QuerySet[SaleItem]) -> QuerySet[FlashSale]:
    return FlashSale.objects.filter(pk__in=set(items.values_list("pool__sale_id", flat=True))).order_by("pk")


@admin.register(Reservation)
class ReservationAdmin(ReadOnlyDeskAdmin):
    """Reservations, newest first."""

    list_display = ["order_no", "item_id", "buyer_id", "quantity", "state", "reason", "created_at"]
    list_filter = ["state", "reason"]
    search_fields = ["order_no"]
    ordering = ["-id"]
    show_full_result_count = False


@admin.register(RebuildRun)
class RebuildRunAdmin(ReadOnlyDeskAdmin):
    """Rebuilds, the latest first, with those that failed or died."""

    list_display = ["created_at", "pool", "bucket_no", "outcome", "is_automatic", "epoch", "finished_at", "error"]
    list_filter = ["outcome", "is_automatic"]
    list_select_related = ["pool"]
    ordering = ["-id"]


@admin.register(ReconciliationRun)
class ReconciliationRunAdmin(ReadOnlyDeskAdmin):
    """Comparisons of MySQL and Redis, the latest first."""

    list_display = ["created_at", "pool", "bucket_no", "verdict", "drift"]
    list_filter = ["verdict"]
    list_select_related = ["pool"]
    ordering = ["-id"]
    show_full_result_count = False


@admin.register(Repair)
class RepairAdmin(ReadOnlyDeskAdmin):
    """Corrections of the units left in Redis, the latest first."""

    list_display = ["created_at", "pool", "bucket_no", "item", "delta", "outcome", "epoch", "repair_no"]
    list_filter = ["outcome"]
    list_select_related = ["pool", "item__sku", "item__pool__sale"]
    ordering = ["-id"]
