"""The audit's pages: law 7 of an item, members that differ, the ledger with its file, and a comparison on request."""

from collections.abc import Mapping
from datetime import datetime, time, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from actions.log import deed_on, recorded
from inventory.ledger import LEDGER_COLUMNS, LedgerFilter, ledger_lines, ledger_page
from inventory.models import Sku, StockMovement
from inventory.selectors import stock_books
from rest.actors import who_of
from rest.csv import csv_response
from seckill.desk_texts import texts_json
from seckill.item_audit import audit_of_item, coverage_of, differing_members, summed, transfers_of
from seckill.latest_runs import latest_runs
from seckill.mending import Extent
from seckill.models import SaleItem
from seckill.monitor_pages import watching
from seckill.outcomes import account_of
from seckill.recheck import RecheckUnavailable, ask_for_reconciliation
from seckill.sampling import parts_of
from seckill.sku_audit import items_of_sku
from seckill.terms import TERMS_SHOWN

FINDINGS_PER_PAGE = 25
LEDGER_PER_PAGE = 50


class LedgerForm(forms.Form):
    """What of the ledger is shown."""

    kind = forms.ChoiceField(
        label=gettext_lazy("kind"),
        choices=[("", gettext_lazy("all")), *StockMovement.Kind.choices],
        required=False,
    )
    since = forms.DateField(label=gettext_lazy("from"), required=False, widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(label=gettext_lazy("to"), required=False, widget=forms.DateInput(attrs={"type": "date"}))
    reference = forms.CharField(label=gettext_lazy("reference begins with"), required=False, max_length=96)
    before = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)

    def narrowed(self, **where: Any) -> LedgerFilter:
        """The filter for what was chosen; what cannot be read narrows nothing down."""
        chosen: Mapping[str, Any] = self.cleaned_data if self.is_valid() else {}
        since, until = chosen.get("since"), chosen.get("until")
        return LedgerFilter(
            kind=chosen.get("kind", ""),
            reference=chosen.get("reference", ""),
            since=since and _midnight(since),
            until=until and _midnight(until + timedelta(days=1)),
            **where,
        )


@watching
def audit_item_page(request: HttpRequest, item_id: int) -> HttpResponse:
    """Show law 7 of an item bucket by bucket, what differs, and its ledger."""
    item = get_object_or_404(SaleItem.objects.select_related("sku__product", "pool__sale"), pk=item_id)
    audits = audit_of_item(item_id=item.pk)
    findings = Paginator(differing_members(pool_id=item.pool_id, now=timezone.now()), FINDINGS_PER_PAGE)
    context = {
        "title": _("Stock audit"),
        "item": item,
        "audits": audits,
        "sums": summed(audits),
        "terms": TERMS_SHOWN,
        "coverage": coverage_of(pool_id=item.pool_id),
        "transfers": transfers_of(item_id=item.pk) if len(audits) > 1 else [],
        "findings": findings.get_page(request.GET.get("members")),
        "newest_run": max((audit.run.pk for audit in audits if audit.run), default=0),
        "is_awaited": request.GET.get("after", ""),
        "may_reconcile": request.user.has_perm("seckill.change_saleitem"),
        "texts": texts_json(),
        **_ledger(request, accounts=_accounts(item)),
    }
    return _page(request, "desk/audit_item.html", context)


@watching
def audit_sku_page(request: HttpRequest, sku_id: int) -> HttpResponse:
    """Show a SKU's units in the warehouse and in every sale, each against the ledger."""
    sku = get_object_or_404(Sku.objects.select_related("product"), pk=sku_id)
    context = {
        "title": _("Stock audit"),
        "sku": sku,
        "warehouse": stock_books(sku_ids=[sku.pk])[0],
        "items": items_of_sku(sku_id=sku.pk),
        "texts": texts_json(),
        **_ledger(request, sku_id=sku.pk),
    }
    return _page(request, "desk/audit_sku.html", context)


@watching
def audit_runs(_request: HttpRequest, item_id: int) -> HttpResponse:
    """Answer with the last run of each of the item's buckets, for the page that waits for a newer one."""
    item = get_object_or_404(SaleItem, pk=item_id)
    runs = latest_runs(pool_ids=[item.pool_id])
    return JsonResponse({str(bucket): {"run": run.pk, "verdict": run.verdict} for bucket, run in runs.items()})


def reconcile_item(request: HttpRequest, item_id: int) -> HttpResponse:
    """Have a worker compare the item's buckets; the page then waits for what it finds."""
    if not request.user.has_perms(["seckill.view_flashsale", "seckill.change_saleitem"]):
        raise PermissionDenied
    item = get_object_or_404(SaleItem, pk=item_id)
    extent = Extent.FULL if "full" in request.POST else Extent.WINDOW
    newest = max((run.pk for run in latest_runs(pool_ids=[item.pool_id]).values()), default=0)
    address = reverse("desk_audit_item", args=[item.pk])
    try:
        deed = deed_on(item, by=who_of(request), what="seckill.reconcile")
        with recorded(deed=deed, see=dict, clock=timezone.now):
            ask_for_reconciliation(pool_id=item.pool_id, extent=extent)
    except RecheckUnavailable as error:
        messages.error(request, _("No worker could be asked: %(error)s") % {"error": error})
        return redirect(address)
    return redirect(f"{address}?after={newest}")


desk_reconcile_item = admin.site.admin_view(require_POST(reconcile_item))


@watching
def ledger_file(request: HttpRequest) -> HttpResponseBase:
    """Send the ledger, or what was chosen of it, as CSV."""
    if not request.user.has_perm("inventory.view_stockmovement"):
        raise PermissionDenied
    form = LedgerForm(request.GET)
    item_id, sku_id = request.GET.get("item", ""), request.GET.get("sku", "")
    if not form.is_valid() or not all(number == "" or number.isdecimal() for number in (item_id, sku_id)):
        return HttpResponse(_("The filter cannot be read."), status=HTTPStatus.BAD_REQUEST, content_type="text/plain")
    where: dict[str, Any] = {"sku_id": int(sku_id) if sku_id else None}
    if item_id:
        where["accounts"] = _accounts(get_object_or_404(SaleItem, pk=int(item_id)))
    name = f"ledger-{timezone.localtime():%Y%m%d-%H%M%S}.csv"
    return csv_response(name=name, columns=LEDGER_COLUMNS, lines=ledger_lines(which=form.narrowed(**where)))


def _ledger(request: HttpRequest, **where: Any) -> dict[str, Any]:
    """The part of a page that shows the ledger; nothing for who may not see it."""
    if not request.user.has_perm("inventory.view_stockmovement"):
        return {"ledger": None}
    form = LedgerForm(request.GET)
    before = form.cleaned_data.get("before") if form.is_valid() else None
    page = ledger_page(which=form.narrowed(**where), size=LEDGER_PER_PAGE, before=before)
    chosen = {name: value for name, value in request.GET.items() if name in form.fields and name != "before" and value}
    return {
        "ledger": page,
        "ledger_form": form,
        "ledger_query": urlencode(chosen),
        "ledger_older": urlencode({**chosen, "before": page.before}) if page.before else "",
    }


def _accounts(item: SaleItem) -> list[str]:
    """The ledger accounts of an item; one that matches nothing before its preheat."""
    return [account_of(item_id=item.pk, bucket=part.bucket) for part in parts_of(item_id=item.pk)] or ["-"]


def _midnight(day: Any) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def _page(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    return TemplateResponse(request, template, {**admin.site.each_context(request), **context})
