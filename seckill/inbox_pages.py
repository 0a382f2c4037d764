"""The inbox's page: what waits for me, my requests, all of them; and where to ask for another change."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from inventory.changes import REASON_LENGTH_MAX, ChangeState
from seckill.inbox import Entry, all_requests, kinds, may_look, own_requests, waiting_requests

LISTS = {
    "waiting": (gettext_lazy("waiting for me"), waiting_requests),
    "mine": (gettext_lazy("my requests"), own_requests),
    "all": (gettext_lazy("all requests"), all_requests),
}
COLOURS = {
    ChangeState.REQUESTED: "warning",
    ChangeState.APPROVED: "info",
    ChangeState.APPLIED: "success",
    ChangeState.REFUSED: "danger",
}


@admin.site.admin_view
@require_safe
def inbox_page(request: HttpRequest) -> HttpResponse:
    """Show one of the three lists; to whoever may ask for, see or approve any kind of change."""
    if not may_look(by=request.user):
        raise PermissionDenied
    chosen = request.GET.get("list", "")
    chosen = chosen if chosen in LISTS else "waiting"
    context = {
        "title": _("Inbox"),
        "lists": [(key, words, key == chosen) for key, (words, _of) in LISTS.items()],
        "chosen": chosen,
        "rows": [_row(entry) for entry in LISTS[chosen][1](by=request.user)],
        "reason_length_max": REASON_LENGTH_MAX,
        "searches": [_link(table, "changelist") for table in kinds(by=request.user, action="view")],
        "asks": [_link(table, "add") for table in kinds(by=request.user, action="add")],
    }
    return TemplateResponse(request, "desk/inbox.html", {**admin.site.each_context(request), **context})


def _row(entry: Entry) -> dict[str, Any]:
    change: Any = entry.change
    run = entry.finding and entry.finding.run
    return {
        "entry": entry,
        "change": change,
        "kind": change._meta.verbose_name,  # noqa: SLF001  Django documents it as an interface
        "colour": COLOURS.get(change.state, "info"),
        "address": _address(type(change), "change", change.pk),
        "decide": _address(type(change), "decide", change.pk),
        "run_address": reverse("admin:seckill_reconciliationrun_change", args=[run.pk]) if run else "",
    }


def _link(table: Any, page: str) -> dict[str, Any]:
    return {"address": _address(table, page), "words": table._meta.verbose_name}  # noqa: SLF001


def _address(table: Any, page: str, *args: int) -> str:
    opts = table._meta  # noqa: SLF001
    return reverse(f"admin:{opts.app_label}_{opts.model_name}_{page}", args=args)
