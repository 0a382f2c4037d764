"""What every page of the operators' desk is built on; see "How a page of the desk is made" in docs/design.md.

A page derives from ``DeskAdmin``, or from ``ReadOnlyDeskAdmin`` where services alone write; its inlines from
``DeskInline``. Tables that grow with every sale come in through ``LargeList``, the others through ``BoundedList``.
"""

import json
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from csp.decorators import csp_update
from django import forms
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from unfold import widgets
from unfold.admin import ModelAdmin, TabularInline
from unfold.sites import UnfoldAdminSite

from actions.log import Facts, deed_on, differences, facts, record, recorded, seen
from actions.models import ActionEntry
from rest.actors import who_of
from rest.large_lists import BoundedList, LargeList

if TYPE_CHECKING:
    Page = admin.ModelAdmin[Any]
    Inline = admin.TabularInline[Any, Any]
    Site = AdminSite
else:
    Page, Inline, Site = ModelAdmin, TabularInline, UnfoldAdminSite

HISTORY_ROWS_MAX = 200

# What unfold needs beyond the buyers' policy, and no page of theirs gets: Alpine compiles what stands in x-attributes,
# and sets widths by the style attribute; the colours stand in a style element.
for_the_desk = csp_update({"script-src": ["'unsafe-eval'"], "style-src": ["'unsafe-inline'"]})


class DeskSite(Site):
    """The admin, with its own policy for scripts and styles on each of its pages."""

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:  # noqa: FBT001, FBT002  Django's signature
        """Make a page of the desk of a view: for staff, under the desk's policy."""
        return for_the_desk(super().admin_view(view, cacheable))

    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the log-in, under the desk's policy."""
        show: Callable[..., Any] = for_the_desk(super().login)
        answer: HttpResponse = show(request, extra_context)
        return answer


class DeskAdmin(BoundedList, Page):
    """Base of the pages whose rows people edit; of tables that stay small. Each edit is told in the action log.

    The admin logs inside the transaction that saves, so both are there or neither.
    """

    list_filter_sheet = False
    warn_unsaved_form = True

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Remember what a row was before a form changes it."""
        row = super().get_object(request, object_id, from_field)
        if row is not None and request.method == "POST":
            request.desk_before = facts(row)  # type: ignore[attr-defined]
        return row

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        """Tell what was added."""
        self._tell(request, obj, "add", message, before={}, after=facts(obj))

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        """Tell what was changed."""
        before, after = differences(getattr(request, "desk_before", {}), seen(obj)())
        self._tell(request, obj, "change", message, before=before, after=after)

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Tell what is about to be deleted; of several at once the admin asks this outside their transaction."""
        if request.POST.get("action") != "delete_selected":
            self.tell_deletion(request, queryset)

    def tell_deletion(self, request: HttpRequest, rows: Iterable[Model]) -> None:
        """Tell, inside the transaction that deletes them."""
        for row in rows:
            self._tell(request, row, "delete", "", before=facts(row), after={})

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Tell what is deleted, and delete it: both or neither."""
        with transaction.atomic():
            self.tell_deletion(request, queryset)
            super().delete_queryset(request, queryset)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Show the action log of the row."""
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        if not self.has_view_or_change_permission(request, row):
            raise PermissionDenied
        entries = ActionEntry.objects.filter(table=self.opts.label_lower, key=str(row.pk)).order_by("-pk")
        context = {
            **self.admin_site.each_context(request),
            "title": _("History: %(thing)s") % {"thing": row},
            "opts": self.opts,
            "object": row,
            "entries": entries[:HISTORY_ROWS_MAX],
            **(extra_context or {}),
        }
        return TemplateResponse(request, "desk/history.html", context)

    def recorded(self, request: HttpRequest, row: Model, what: str, reason: str = "") -> AbstractContextManager[None]:
        """Write the action log before and after what is done to a row; see ``actions.log.recorded``."""
        deed = deed_on(row, by=who_of(request), what=what, reason=reason)
        return recorded(deed=deed, see=seen(row), clock=timezone.now)

    def _tell(self, request: HttpRequest, row: Model, verb: str, message: Any, *, before: Facts, after: Facts) -> None:
        deed = deed_on(
            row, by=who_of(request), what=f"{self.opts.app_label}.{verb}", reason=request.POST.get("why", "").strip()
        )
        words = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False, default=str)
        record(deed=deed, now=timezone.now(), before=before, after=after, note=words)


class LargeDeskAdmin(LargeList, DeskAdmin):
    """Base of the pages over tables that grow with every sale."""


class ReadOnlyDeskAdmin(LargeDeskAdmin):
    """Base of pages that show rows which services alone may write."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is added by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is changed by hand."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is deleted by hand."""
        return False


class DeskForm(forms.Form):
    """Base of the forms of pages that are no model's: ``{{ form }}`` shows its fields as the admin shows its own."""

    template_name = "desk/fields.html"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            classes = classes_of(field.widget)
            field.widget.attrs.setdefault("class", " ".join(classes))
            if isinstance(field.widget, forms.RadioSelect):
                # Django's own puts the classes of the button on the list around it, and squeezes the words.
                field.widget.template_name = "unfold/widgets/radio.html"
                field.widget.option_template_name = "unfold/widgets/radio_option.html"


def classes_of(widget: forms.Widget) -> list[str]:
    """The classes that make a widget look like unfold's of its kind."""
    kinds: tuple[tuple[type[forms.Widget], list[str]], ...] = (
        (forms.RadioSelect, widgets.RADIO_CLASSES),
        (forms.Select, widgets.SELECT_CLASSES),
        (forms.CheckboxInput, widgets.CHECKBOX_CLASSES),
        (forms.Textarea, widgets.TEXTAREA_CLASSES),
    )
    return next((classes for kind, classes in kinds if isinstance(widget, kind)), widgets.INPUT_CLASSES)


class DeskInline(Inline):
    """Rows of another table on a page, editable."""

    extra = 0


class ReadOnlyDeskInline(DeskInline):
    """Rows of another table on a page, that services alone write."""

    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is added by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is changed by hand."""
        return False
