"""The monitor's pages: which sales there are to watch, one sale live, and the numbers its script asks for.

What a sale looks like is remembered for a second and its charts for two, so that ten operators cost a process as
much as one.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from rest.memory import Memory
from seckill.desk_texts import texts_json
from seckill.errors import GateUnavailable
from seckill.history import history
from seckill.models import FlashSale, SaleItem
from seckill.monitor import picture_of, sales_to_watch
from seckill.monitor_json import Json, picture_json, series_json, stages_json
from seckill.stage_times import stage_breakdown

Page = Callable[..., HttpResponseBase]

PICTURE_SECONDS = 1.0
HISTORY_SECONDS = 2.0
# What of the last hour the page offers to show.
SPANS = {seconds: timedelta(seconds=int(seconds)) for seconds in ("300", "900", "3600")}
_pictures: Memory[Json] = Memory(seconds=PICTURE_SECONDS, entries_max=50)
_histories: Memory[Json] = Memory(seconds=HISTORY_SECONDS, entries_max=100)
_stages: Memory[Json] = Memory(seconds=HISTORY_SECONDS, entries_max=1)


def watching(view: Page) -> Page:
    """Make a page for staff who may see sales; nobody keeps it."""

    @require_safe
    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.has_perm("seckill.view_flashsale"):
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return admin.site.admin_view(checked)


@watching
def monitor_list(request: HttpRequest) -> HttpResponse:
    """List the sales that are on or come next."""
    context = {"title": _("Live monitor"), "sales": sales_to_watch(now=timezone.now())}
    return _page(request, "desk/monitor_list.html", context)


@watching
def monitor_sale(request: HttpRequest, sale_id: int) -> HttpResponse:
    """Show one sale; its script fills in the numbers."""
    picture = _picture(sale_id)
    sale = FlashSale.objects.get(pk=sale_id)
    items = SaleItem.objects.filter(pool__sale_id=sale_id).select_related("sku__product", "pool").order_by("pk")
    context = {
        "title": sale.name,
        "sale": sale,
        "items": [item for item in items if item.pk in {shown["id"] for shown in picture["items"]}],
        "buckets": picture["buckets"],
        "picture": picture,
        "texts": texts_json(),
    }
    return _page(request, "desk/monitor.html", context)


@watching
def monitor_now(_request: HttpRequest, sale_id: int) -> HttpResponse:
    """Answer with what the sale looks like."""
    return JsonResponse(_picture(sale_id))


@watching
def monitor_history(request: HttpRequest, sale_id: int) -> HttpResponse:
    """Answer with the lines of the last hour or less, of all the sale's items or of the one that is asked for."""
    item, span = request.GET.get("item", ""), request.GET.get("span", "3600")
    if span not in SPANS or (item and not (item.isascii() and item.isdigit())):
        return JsonResponse({"code": "bad_request"}, status=HTTPStatus.BAD_REQUEST)
    key = (sale_id, item, span)
    return JsonResponse(_histories.get(key, lambda: _history(sale_id=sale_id, item=item, lasts=SPANS[span])))


@watching
def monitor_stages(_request: HttpRequest) -> HttpResponse:
    """Answer with where a purchase's milliseconds go, over all sales."""
    try:
        return JsonResponse(_stages.get((), lambda: stages_json(stage_breakdown(now=timezone.now()))))
    except GateUnavailable:
        return JsonResponse({"code": "unavailable"}, status=HTTPStatus.SERVICE_UNAVAILABLE)


def _picture(sale_id: int) -> Json:
    try:
        return _pictures.get(sale_id, lambda: picture_json(picture_of(sale_id=sale_id, clock=timezone.now)))
    except FlashSale.DoesNotExist as error:
        raise Http404 from error


def _history(*, sale_id: int, item: str, lasts: timedelta) -> Json:
    items = SaleItem.objects.filter(pool__sale_id=sale_id, **({"pk": int(item)} if item else {}))
    item_ids = list(items.values_list("pk", flat=True))
    return series_json(history(item_ids=item_ids, until=timezone.now(), lasts=lasts))


def _page(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    return TemplateResponse(request, template, {**admin.site.each_context(request), **context})
