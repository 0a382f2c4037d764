"""The reason that a sensitive action of the desk wants before anything is done.

Who edits a row is asked in its form, who deletes some on the page that asks whether he is sure, and who acts on rows of
a list on a page of its own. The action log keeps what he says.
"""

from collections.abc import Callable
from functools import cached_property, wraps
from types import new_class
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.actions import delete_selected
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextInputWidget

from actions.models import REASON_LENGTH_MAX

# Shorter than any word that tells somebody something a year later.
REASON_LENGTH_MIN = 3
# Of the chosen rows, so many are named on the page; all of them are acted on.
ROWS_NAMED_MAX = 50
# The field of the forms of rows, some of which have a column named "reason".
WHY = "why"

ListAction = Callable[[Any, HttpRequest, QuerySet[Any]], HttpResponse | None]


class AsksWhy(forms.Form):
    """Part of a form of the desk that is not saved without a reason; no column of the row is written by it."""

    why = forms.CharField(
        label=gettext_lazy("reason"),
        min_length=REASON_LENGTH_MIN,
        max_length=REASON_LENGTH_MAX,
        widget=UnfoldAdminTextInputWidget,
        help_text=gettext_lazy("Stands in the action log, with what was changed."),
    )

    @cached_property
    def changed_data(self) -> list[str]:
        """What was changed of the row."""
        return [name for name in super().changed_data if name != WHY]


def asking_why(form: type[Any]) -> type[Any]:
    """The form of a row with the question why it is changed."""
    return form if issubclass(form, AsksWhy) else new_class(form.__name__, (AsksWhy, form))


def reason_in(request: HttpRequest, *, field: str = "reason") -> str:
    """The reason that was sent, or nothing where it says nothing."""
    reason = request.POST.get(field, "").strip()[:REASON_LENGTH_MAX]
    return reason if len(reason) >= REASON_LENGTH_MIN else ""


def with_reason(action: ListAction) -> ListAction:
    """Let an action of a list begin only once a reason was given."""

    @wraps(action)
    def asked(page: Any, request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
        if reason_in(request):
            return action(page, request, rows)
        return _ask(page, request, rows, name=action.__name__)

    return asks_itself(asked)


def asks_itself(action: ListAction) -> ListAction:
    """Mark an action of a list that does nothing without a reason; a test finds those without the mark."""
    action.asks_reason = True  # type: ignore[attr-defined]
    return action


@asks_itself
@admin.action(permissions=["delete"], description=gettext_lazy("Delete selected %(verbose_name_plural)s"))
def delete_with_reason(page: Any, request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
    """Delete the selected rows as the admin does, once it was said why."""
    if request.POST.get("post") and not reason_in(request, field=WHY):
        say_why(page, request)
        return None
    answer: HttpResponse | None = delete_selected(page, request, rows)
    return answer


def say_why(page: Any, request: HttpRequest) -> None:
    """Tell that nothing was done, for want of a reason."""
    page.message_user(request, _("Nothing was done: say why."), messages.ERROR)


def _ask(page: admin.ModelAdmin[Any], request: HttpRequest, rows: QuerySet[Any], *, name: str) -> HttpResponse:
    """Show what was chosen, and hand the choice back with the reason."""
    found: Any = page.get_action(name)
    context = {
        **page.admin_site.each_context(request),
        "title": found[2],
        "opts": page.opts,
        "action": name,
        "rows": rows.order_by("pk")[:ROWS_NAMED_MAX],
        "chosen": request.POST.getlist(ACTION_CHECKBOX_NAME),
        "select_across": request.POST.get("select_across", "0"),
    }
    return TemplateResponse(request, "desk/ask_reason.html", context)
