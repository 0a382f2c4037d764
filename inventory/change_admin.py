"""Base of the pages of changes by hand: a form to ask, an inbox, and a page to approve or reject with a reason."""

import logging
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext_lazy as _

from inventory.changes import (
    REASON_LENGTH_MAX,
    ChangeState,
    ManualChange,
    approve,
    may_decide,
    reject,
    submit,
    waiting_for,
)
from inventory.errors import AlreadyDecided, ChangeNotAllowed
from rest.desk import DeskForm, LargeDeskAdmin

logger = logging.getLogger(__name__)


# The page that lists what waits, of every table of changes: asking and deciding lead there.
INBOX = "desk_inbox"


class DecisionForm(DeskForm):
    """Yes or no, and why."""

    decision = forms.ChoiceField(
        label=_("decision"),
        choices=[("approve", _("Approve: it is applied at once")), ("reject", _("Reject"))],
        widget=forms.RadioSelect,
    )
    reason = forms.CharField(label=_("reason of the decision"), max_length=REASON_LENGTH_MAX)


class InboxFilter(admin.SimpleListFilter):
    """The two lists that people look for."""

    title = _("list")
    parameter_name = "inbox"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Offer both lists."""
        return [("waiting", _("waiting for me")), ("mine", _("my requests"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Narrow the list down to what was chosen."""
        if self.value() == "mine":
            return queryset.filter(requested_by=request.user)
        if self.value() == "waiting":
            return queryset.filter(pk__in=waiting_for(table=queryset.model, by=request.user).values("pk"))
        return queryset


class ManualChangeAdmin(LargeDeskAdmin):
    """Requests are added and decided on; nothing about them is ever edited or deleted."""

    request_fields: ClassVar[list[str]]
    reason_field = "reason"
    list_display = ["__str__", "reason", "state", "requested_by", "requested_at", "decided_by", "outcome"]
    list_filter = [InboxFilter, "state"]
    list_select_related = ["requested_by", "decided_by"]
    ordering = ["-id"]
    show_full_result_count = False
    change_form_template = "admin/manual_change.html"

    def apply(self, *, change_id: int) -> ChangeState:
        """Apply an approved change, as far as that is possible now; return where it stands."""
        raise NotImplementedError

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is changed by hand."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is deleted by hand."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever asks or decides may look."""
        return any(self._may(request, action) for action in ("view", "add", "approve"))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Ask for the request alone; show everything."""
        if obj is None:
            return self.request_fields
        return [field.name for field in self.opts.fields if field.name != "id"]

    def save_model(self, request: HttpRequest, obj: ManualChange, form: Any, change: bool) -> None:  # noqa: FBT001
        """Write the request."""
        try:
            submit(change=obj, by=request.user, now=timezone.now())
        except ChangeNotAllowed as error:
            raise PermissionDenied(str(error)) from error

    def response_add(self, request: HttpRequest, obj: ManualChange, post_url_continue: Any = None) -> HttpResponse:
        """Lead to the request in the inbox."""
        answer = super().response_add(request, obj, post_url_continue)
        is_plain = "_addanother" not in request.POST and "_popup" not in request.POST
        return redirect(f"{reverse(INBOX)}?list=mine") if is_plain else answer

    def get_urls(self) -> list[URLPattern]:
        """Add the page of the decision."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_decide"
        decide = path("<int:change_id>/decide/", self.admin_site.admin_view(self.decide), name=name)
        return [decide, *super().get_urls()]

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        """Show the way to the decision to whoever may take it."""
        change = kwargs.get("obj")
        if change is not None and may_decide(change=change, by=request.user):
            context["decide_url"] = self._url("decide", change.pk)
        return super().render_change_form(request, context, *args, **kwargs)

    def decide(self, request: HttpRequest, change_id: int) -> HttpResponse:
        """Show a request with the form of the decision; take the decision when it is posted."""
        change = self.get_object(request, str(change_id))
        if change is None or not self._may(request, "approve"):
            raise PermissionDenied
        if change.state != ChangeState.REQUESTED:
            return self._tell_late(request, change)
        if not may_decide(change=change, by=request.user):
            raise PermissionDenied
        form = DecisionForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            self._carry_out(request, change, **form.cleaned_data)
            return redirect(INBOX)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Decide on a request"),
            "opts": self.opts,
            "change": change,
            "form": form,
            "is_own": change.requested_by_id == request.user.pk,
            "change_url": self._url("change", change.pk),
        }
        return TemplateResponse(request, "admin/decide_change.html", context)

    def _carry_out(self, request: HttpRequest, change: ManualChange, *, decision: str, reason: str) -> None:
        act = approve if decision == "approve" else reject
        try:
            with self.recorded(request, change, f"{self.opts.app_label}.{decision}", reason):
                act(table=type(change), change_id=change.pk, by=request.user, reason=reason, now=timezone.now())
        except AlreadyDecided:
            self._tell_late(request, type(change).objects.select_related("decided_by").get(pk=change.pk))
            return
        except ChangeNotAllowed as error:
            self.message_user(request, str(error), messages.ERROR)
            return
        state = self._apply(change.pk) if decision == "approve" else ChangeState.REJECTED
        level = messages.WARNING if state in {ChangeState.APPROVED, ChangeState.REFUSED} else messages.SUCCESS
        self.message_user(request, f"{change}: {state.label}", level)

    def _tell_late(self, request: HttpRequest, change: ManualChange) -> HttpResponse:
        """Say who has decided already, when, what and why; nothing was changed."""
        words = _("%(change)s: %(who)s was quicker (%(when)s): %(state)s, “%(reason)s”. Nothing was changed by you.")
        told = words % {
            "change": change,
            "who": change.decided_by,
            "when": date_format(timezone.localtime(change.decided_at), "SHORT_DATETIME_FORMAT"),
            "state": change.get_state_display(),
            "reason": change.decision_reason,
        }
        self.message_user(request, told, messages.WARNING)
        return redirect(INBOX)

    def _apply(self, change_id: int) -> ChangeState:
        """A decision that is taken stays taken, whatever becomes of the first try to apply it."""
        try:
            return self.apply(change_id=change_id)
        except DatabaseError:
            logger.exception("change %s is approved; the follow-up applies it", change_id)
            return ChangeState.APPROVED

    def _may(self, request: HttpRequest, action: str) -> bool:
        codename = get_permission_codename(action, self.opts)
        return request.user.has_perm(f"{self.opts.app_label}.{codename}")

    def _url(self, page: str, change_id: int) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}", args=[change_id])
