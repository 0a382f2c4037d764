"""The sale desk's pages: make a sale, see what may be done with it, preheat it as previewed, import its items."""

from collections import Counter
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from inventory.models import Sku
from rest.actors import who_of
from rest.csv import csv_response
from seckill.changeable import EDITABLE, changeable_table
from seckill.errors import GateUnavailable, SaleNotReady
from seckill.item_actions import ITEM_PHASES
from seckill.item_file import BYTES_MAX, COLUMNS, ERRORS_SHOWN_MAX, LINES_MAX, read_items, write_items
from seckill.models import FlashSale, SaleItem
from seckill.plan_checks import Weight, check_plan, is_sound
from seckill.preheat_preview import preheat_as_seen, preheat_preview
from seckill.sale_actions import for_people_who, offered, page, told
from seckill.sale_forms import FileForm, SaleSheet, WhyForm
from seckill.sale_making import create_sale
from seckill.sale_plan import plan_of
from seckill.sale_word import phase_of_sale, word_of_sale
from seckill.sampling import parts_of
from seckill.states import SalePhase, SaleState
from seckill.window_page import CLOSING_MOVES

ITEMS_SHOWN_MAX = 200
SKUS_OFFERED_MAX = 300


@for_people_who("seckill.add_flashsale", "seckill.add_salepool", "seckill.add_saleitem")
def new_sale(request: HttpRequest) -> HttpResponse:
    """Make a sale of one form; mistakes stand beside what was typed."""
    sheet = SaleSheet(request.POST if request.method == "POST" else None)
    status = HTTPStatus.OK
    if request.method == "POST":
        sale_id = _make(request, sheet)
        if sale_id is not None:
            return redirect("desk_sale", sale_id)
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    codes = Sku.objects.order_by("code").values_list("code", "name", "list_price", "stock__on_hand")
    context = {"title": _("New sale"), "sheet": sheet, "skus": codes[:SKUS_OFFERED_MAX]}
    return page(request, "desk/sale_new.html", context, status=status)


@for_people_who("seckill.view_flashsale")
@require_safe
def sale_page(request: HttpRequest, sale_id: int) -> HttpResponse:
    """Show a sale: its word, its window, its items, what is odd about it, and what may be done."""
    sale, now = get_object_or_404(FlashSale, pk=sale_id), timezone.now()
    items = SaleItem.objects.filter(pool__sale=sale).select_related("sku__product", "pool").order_by("pool_id", "pk")
    word, phase = word_of_sale(sale=sale, now=now), phase_of_sale(sale=sale, now=now)
    is_editable = SaleState(sale.state) in EDITABLE
    context = {
        "title": sale.name,
        "sale": sale,
        "word": word,
        "items": _with_units_now(items[:ITEMS_SHOWN_MAX], is_on_sale=not is_editable),
        "item_count": items.count(),
        "findings": check_plan(plan=plan_of(sale=sale), now=now) if is_editable else [],
        "actions": offered(sale=sale, word=word, phase=phase, by=request.user),
        "may_pause": phase in ITEM_PHASES and request.user.has_perm("seckill.change_flashsale"),
        "may_ask": phase in CLOSING_MOVES and request.user.has_perm("seckill.add_windowchange"),
        "may_import": is_editable and request.user.has_perm("seckill.add_saleitem"),
        "may_edit": is_editable and request.user.has_perm("seckill.change_flashsale"),
        "phase": phase,
        "phases": SalePhase,
        "table": changeable_table(),
    }
    return page(request, "desk/sale.html", context)


@for_people_who("seckill.view_flashsale", "seckill.change_flashsale")
def preheat_page(request: HttpRequest, sale_id: int) -> HttpResponse:
    """Show what preheating will do; do it, if the sale is still what was shown."""
    sale, form = get_object_or_404(FlashSale, pk=sale_id), WhyForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            with told(request, sale, "preheat", form.cleaned_data["reason"]):
                preheat_as_seen(sale_id=sale_id, mark=request.POST.get("mark", ""), clock=timezone.now)
        except SaleNotReady as error:
            messages.error(request, str(error))
        except GateUnavailable:
            messages.warning(request, _("The sale is preheated, and Redis is away: it comes there by itself."))
            return redirect("desk_sale", sale_id)
        else:
            messages.success(request, _("The sale is preheated. It opens by itself."))
            return redirect("desk_sale", sale_id)
    preview = preheat_preview(sale_id=sale_id, now=timezone.now())
    context = {"title": _("Preheat"), "sale": preview.sale, "preview": preview, "form": form}
    return page(request, "desk/sale_preheat.html", context)


@for_people_who("seckill.view_flashsale", "seckill.add_saleitem")
def import_page(request: HttpRequest, sale_id: int) -> HttpResponse:
    """Read a file of items, show what it holds and what is wrong in it, and write it when that was seen."""
    sale = get_object_or_404(FlashSale, pk=sale_id)
    form = FileForm(request.POST or None, request.FILES or None, sale_id=sale_id)
    context: dict[str, Any] = {"title": _("Import items"), "sale": sale, "form": form}
    context |= {"columns": COLUMNS, "lines_max": LINES_MAX, "kilobytes_max": BYTES_MAX // 1024}
    if request.method != "POST" or not form.is_valid():
        return page(request, "desk/sale_import.html", context)
    pool, file = form.cleaned_data["pool"], form.cleaned_data["file"]
    # A file beyond the limit is refused by its first bytes; the rest is not read.
    content = form.cleaned_data["text"].encode() if file is None else file.read(BYTES_MAX + 1)
    why = WhyForm(request.POST if "write" in request.POST else None)
    if why.is_bound and why.is_valid():
        try:
            with told(request, sale, "import_items", why.cleaned_data["reason"]):
                number = write_items(content=content, pool_id=pool.pk, now=timezone.now())
        except SaleNotReady as error:
            messages.error(request, str(error))
        else:
            messages.success(request, _("%(number)d items were imported.") % {"number": number})
            return redirect("desk_sale", sale_id)
    read = read_items(content=content, pool_id=pool.pk, now=timezone.now())
    context |= {"read": read, "mistakes": read.mistakes[:ERRORS_SHOWN_MAX], "pool": pool}
    context |= {"text": _as_text(content), "why": why}
    return page(request, "desk/sale_import.html", context)


@for_people_who("seckill.view_flashsale")
@require_safe
def import_template(_request: HttpRequest) -> HttpResponseBase:
    """Send an empty file with the names of the columns."""
    return csv_response(name="items.csv", columns=COLUMNS, lines=[])


def _with_units_now(items: Iterable[SaleItem], *, is_on_sale: bool) -> list[Any]:
    """Items with their units of today: what was planned, and of a sale that was preheated what is allocated."""
    rows: list[Any] = list(items)
    allocated = Counter[int]()
    if is_on_sale:
        for part in parts_of(item_id__in=[item.pk for item in rows]):
            allocated[part.item_id] += part.allocated
    for item in rows:
        item.units_now = allocated.get(item.pk, item.units)
    return rows


def _make(request: HttpRequest, sheet: SaleSheet) -> int | None:
    """Write the sale, or put what is wrong into the form."""
    if not sheet.is_valid():
        return None
    plan, now = sheet.plan(), timezone.now()
    findings = check_plan(plan=plan, now=now)
    if not is_sound(findings):
        sheet.show([finding for finding in findings if finding.weight is Weight.ERROR])
        return None
    try:
        sale_id = create_sale(plan=plan, details=sheet.details(), by=who_of(request), now=now)
    except SaleNotReady as error:
        sheet.sale.add_error(None, str(error))
        return None
    messages.success(request, _("The sale is a draft now. Look it over, then schedule or preheat it."))
    return sale_id


def _as_text(content: bytes) -> str:
    """The file as the page hands it back with the yes, in UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("gb18030", errors="replace")
