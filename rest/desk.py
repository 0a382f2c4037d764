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
from django.contrib.admin.utils import flatten_fieldsets
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
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
from rest.reasons import WHY, asking_why, delete_with_reason, reason_in, say_why

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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.add_action(delete_with_reason, "delete_selected")

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:  # noqa: FBT001, FBT002  Django's signature
        """Make a page of the desk of a view: for staff, under the desk's policy."""
        return for_the_desk(super().admin_view(view, cacheable))

    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the log-in, under the desk's policy."""
        show: Callable[..., Any] = for_the_desk(super().login)
        answer: HttpResponse = show(request, extra_context)
        return answer


class DeskAdmin(BoundedList, Page):
    """Base of the pages whose rows people edit; of tables that stay small. The action log tells each edit, and why.

    The admin logs inside the transaction that saves, so both are there or neither.
    """

    list_filter_sheet = False
    warn_unsaved_form = True
    # A table with a column for the reason names it here, and its form asks no second time.
    reason_field = WHY

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002  Django's
        """Ask why whoever may change a row that is there."""
        if self._asks_why(request, obj):
            kwargs["form"] = asking_why(kwargs.get("form", self.form))
        return super().get_form(request, obj, change=change, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Put that question last."""
        fieldsets = super().get_fieldsets(request, obj)
        if not self._asks_why(request, obj) or WHY in flatten_fieldsets(fieldsets):
            return fieldsets
        return [*fieldsets, (None, {"fields": (WHY,)})]

    def _asks_why(self, request: HttpRequest, obj: Any) -> bool:
        return obj is not None and self.reason_field == WHY and self.has_change_permission(request, obj)

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

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        """Delete a row once it was said why."""
        if request.method == "POST" and not reason_in(request, field=WHY):
            if not self.has_delete_permission(request, self.get_object(request, object_id)):
                raise PermissionDenied
            say_why(self, request)
            return HttpResponseRedirect(request.get_full_path())
        return super().delete_view(request, object_id, extra_context)

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
        reason = reason_in(request, field=WHY) or reason_in(request, field=self.reason_field)
        deed = deed_on(row, by=who_of(request), what=f"{self.opts.app_label}.{verb}", reason=reason)
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
