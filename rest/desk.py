"""What every page of the operators' desk is built on; see "How a page of the desk is made" in docs/design.md.

A page derives from ``DeskAdmin``, or from ``ReadOnlyDeskAdmin`` where services alone write; its inlines from
``DeskInline``. Tables that grow with every sale come in through ``LargeList``, the others through ``BoundedList``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from csp.decorators import csp_update
from django import forms
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from unfold import widgets
from unfold.admin import ModelAdmin, TabularInline
from unfold.sites import UnfoldAdminSite

from rest.large_lists import BoundedList, LargeList

if TYPE_CHECKING:
    Page = admin.ModelAdmin[Any]
    Inline = admin.TabularInline[Any, Any]
    Site = AdminSite
else:
    Page, Inline, Site = ModelAdmin, TabularInline, UnfoldAdminSite

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
    """Base of the pages whose rows people edit; of tables that stay small."""

    list_filter_sheet = False
    warn_unsaved_form = True


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
