"""The page that tells the life of a purchase to whoever has a customer on the telephone."""

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from seckill.errors import UnknownOrder
from seckill.explaining import explain

QUERY_LENGTH_MAX = 150


@admin.site.admin_view
@require_safe
def explain_page(request: HttpRequest) -> HttpResponse:
    """Tell the stories that answer to ``q``; staff who may see orders."""
    if not request.user.has_perm("orders.view_order"):
        raise PermissionDenied
    query = request.GET.get("q", "").strip()[:QUERY_LENGTH_MAX]
    context = {**admin.site.each_context(request), "title": _("What became of it"), "query": query, "stories": []}
    if query:
        try:
            context["stories"] = explain(query)
        except UnknownOrder:
            context["is_unknown"] = True
    return TemplateResponse(request, "desk/explain.html", context)
