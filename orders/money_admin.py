"""Admin of money: payments and refunds are read, and given back or honoured by actions that services carry out."""

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from orders.errors import OrderError
from orders.models import Honour, Payment, PaymentAttempt, Refund
from orders.services.honours import request_honour
from orders.services.refunding import RefundRequest, default_units_to, request_refund
from orders.states import PaymentProblem, PaymentState, RefundedUnitsTo, RefundReason, RefundState
from orders.unwelcome import in_words, refused_honours
from rest.coloured import coloured
from rest.desk import DeskAdmin, DeskForm, ReadOnlyDeskAdmin
from rest.reasons import reason_in, with_reason

CENT = Decimal("0.01")


class RefundForm(DeskForm):
    """How much goes back, why, and where the units go; left empty, the reason decides."""

    amount = forms.DecimalField(label=_("amount"), min_value=CENT, max_digits=12, decimal_places=2)
    reason = forms.ChoiceField(label=_("reason"), choices=RefundReason.choices)
    units_to = forms.ChoiceField(
        label=_("units go"), choices=[("", _("as usual for the reason")), *RefundedUnitsTo.choices], required=False
    )
    note = forms.CharField(label=_("note"), max_length=200)


def _try(
    *, request: HttpRequest, site: DeskAdmin, action: Callable[[], object], row: Model, what: str, reason: str
) -> bool:
    name = row.reference if isinstance(row, Refund) else str(row)
    try:
        with site.recorded(request, row, what, reason):
            action()
    except OrderError as error:
        site.message_user(request, f"{name}: {error}", messages.ERROR)
        return False
    site.message_user(request, _("%(name)s: done") % {"name": name}, messages.SUCCESS)
    return True


@admin.register(Payment)
class PaymentAdmin(ReadOnlyDeskAdmin):
    """Money that has arrived; the list "refund due" has two choices: refund, or honour."""

    list_display = ["__str__", "order", "amount", "how_far", "what_happened", "created_at", "remedy"]
    list_filter = ["state", "problem", "provider"]
    list_select_related = ["order"]
    search_fields = ["provider_reference", "order_reference", "order__number"]
    ordering = ["-id"]
    show_full_result_count = False
    actions = ["refund_in_full", "honour"]
    change_form_template = "admin/payment.html"

    def has_refund_permission(self, request: HttpRequest) -> bool:
        """Tell who may give money back."""
        return request.user.has_perm("orders.refund_payment")

    def has_honour_permission(self, request: HttpRequest) -> bool:
        """Tell who may honour money for a closed order."""
        return request.user.has_perm("orders.honour_payment")

    @coloured(
        description=_("state"),
        colours={
            PaymentState.ACCEPTED: "success",
            PaymentState.REFUND_DUE: "danger",
            PaymentState.HONOURING: "warning",
            PaymentState.REFUNDED: "info",
        },
    )
    def how_far(self, payment: Payment) -> tuple[str, str]:
        """The state in its colour: red is what somebody has to decide."""
        return payment.state, payment.get_state_display()

    @admin.display(description=_("what happened"))
    def what_happened(self, payment: Payment) -> str:
        """Why the money pays no order, what was done by itself, and why it was not honoured, if that was tried."""
        return in_words(payment=payment, refused=getattr(payment, "refused", None))

    @admin.display(description=_("what you can do"))
    def remedy(self, payment: Payment) -> str:
        """The one button, for money that somebody has to decide about."""
        if payment.state != PaymentState.REFUND_DUE:
            return "–"
        words = _("Refund or honour") if payment.problem == PaymentProblem.CLOSED_ORDER else _("Refund")
        address = reverse("admin:orders_payment_refund", args=[payment.pk])
        return format_html('<a class="desk-button" href="{}">{}</a>', address, words)

    def prepare_rows(self, rows: list[Any]) -> None:
        """Look up at once why the money of these rows was not honoured."""
        reasons = refused_honours(payment_ids=[row.pk for row in rows if row.problem])
        for row in rows:
            row.refused = reasons.get(row.pk)

    def get_urls(self) -> list[URLPattern]:
        """Add the refund's form."""
        view = self.admin_site.admin_view(self.refund)
        return [path("<int:payment_id>/refund/", view, name="orders_payment_refund"), *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show where to refund, to whoever may."""
        url = reverse("admin:orders_payment_refund", args=[object_id]) if object_id.isdigit() else ""
        context = {"refund_url": url if self.has_refund_permission(request) else ""}
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **context})

    def refund(self, request: HttpRequest, payment_id: int) -> HttpResponse:
        """Ask how much goes back, why, and where the units go; then ask the provider for it."""
        if not (self.has_refund_permission(request) and self.has_view_permission(request)):
            raise PermissionDenied
        payment = get_object_or_404(Payment, pk=payment_id)
        left = payment.amount - payment.refunding
        may_honour = payment.problem == PaymentProblem.CLOSED_ORDER and self.has_honour_permission(request)
        may_honour = may_honour and payment.state == PaymentState.REFUND_DUE
        is_honoured = may_honour and "honour" in request.POST
        if is_honoured and reason_in(request):
            self._honour(request, payment)
            return redirect("admin:orders_payment_change", payment_id)
        form = RefundForm(None if is_honoured else request.POST or None, initial={"amount": left})
        if request.method == "POST" and form.is_valid():
            wanted = _request_of(form=form, payment=payment, actor_id=request.user.pk)
            action = partial(request_refund, request=wanted, now=timezone.now())
            note = form.cleaned_data["note"]
            if _try(request=request, site=self, action=action, row=payment, what="orders.refund", reason=note):
                return redirect("admin:orders_payment_change", payment_id)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("Give money back"),
            "payment": payment,
            "left": left,
            "form": form,
            "words": in_words(payment=payment, refused=refused_honours(payment_ids=[payment.pk]).get(payment.pk)),
            "may_honour": may_honour,
        }
        return TemplateResponse(request, "admin/refund.html", context)

    @admin.action(description=_("Refund the selected payments that pay no order"), permissions=["refund"])
    @with_reason
    def refund_in_full(self, request: HttpRequest, payments: QuerySet[Payment]) -> None:
        """Give back all that is left of money that is unwelcome; what pays an order is asked about one by one."""
        for payment in payments.order_by("pk"):
            if payment.pays_id is not None:
                name = _("%(payment)s pays an order: refund it on its own page") % {"payment": payment}
                self.message_user(request, name, messages.ERROR)
                continue
            wanted = RefundRequest(
                payment_id=payment.pk,
                amount=payment.amount - payment.refunding,
                reason=RefundReason.UNWELCOME,
                units_to=RefundedUnitsTo.NOWHERE,
                actor_id=request.user.pk,
            )
            action = partial(request_refund, request=wanted, now=timezone.now())
            _try(
                request=request, site=self, action=action, row=payment, what="orders.refund", reason=reason_in(request)
            )

    @admin.action(description=_("Honour the selected payments: take a unit again"), permissions=["honour"])
    @with_reason
    def honour(self, request: HttpRequest, payments: QuerySet[Payment]) -> None:
        """Have a unit taken again for money of closed orders, if one is left."""
        for payment in payments.order_by("pk"):
            self._honour(request, payment)

    def _honour(self, request: HttpRequest, payment: Payment) -> None:
        action = partial(request_honour, payment_id=payment.pk, actor_id=request.user.pk, now=timezone.now())
        _try(request=request, site=self, action=action, row=payment, what="orders.honour", reason=reason_in(request))


@admin.register(Refund)
class RefundAdmin(ReadOnlyDeskAdmin):
    """Refunds; one that has failed may be asked for again, and is then another refund."""

    list_display = ["reference", "payment", "amount", "reason", "units_to", "state", "failure", "created_at"]
    list_filter = ["state", "reason"]
    list_select_related = ["payment"]
    search_fields = ["reference", "provider_reference", "payment__provider_reference"]
    ordering = ["-id"]
    show_full_result_count = False
    actions = ["ask_again"]

    def has_refund_permission(self, request: HttpRequest) -> bool:
        """Tell who may give money back."""
        return request.user.has_perm("orders.refund_payment")

    @admin.action(description=_("Ask again for the selected refunds that have failed"), permissions=["refund"])
    @with_reason
    def ask_again(self, request: HttpRequest, refunds: QuerySet[Refund]) -> None:
        """Request the same amounts again; units that came back with the first do not come back again."""
        for refund in refunds.filter(state=RefundState.FAILED).order_by("pk"):
            wanted = RefundRequest(
                payment_id=refund.payment_id,
                amount=refund.amount,
                reason=RefundReason(refund.reason),
                units_to=RefundedUnitsTo.NOWHERE,
                actor_id=request.user.pk,
                replaces_id=refund.pk,
            )
            action = partial(request_refund, request=wanted, now=timezone.now())
            _try(
                request=request,
                site=self,
                action=action,
                row=refund,
                what="orders.refund_again",
                reason=reason_in(request),
            )


@admin.register(Honour)
class HonourAdmin(ReadOnlyDeskAdmin):
    """Wishes to honour, and how they ended."""

    list_display = ["payment", "number", "state", "reason", "requested_by", "created_at"]
    list_filter = ["state"]
    list_select_related = ["payment", "requested_by"]
    ordering = ["-id"]


@admin.register(PaymentAttempt)
class PaymentAttemptAdmin(ReadOnlyDeskAdmin):
    """Begun payments, and when their provider is asked next."""

    list_display = ["reference", "provider", "order", "amount", "state", "asks", "ask_at", "created_at"]
    list_filter = ["state", "provider"]
    list_select_related = ["order"]
    search_fields = ["reference"]
    exclude = ["pay_url"]
    ordering = ["-id"]
    show_full_result_count = False


def _request_of(*, form: RefundForm, payment: Payment, actor_id: int | None) -> RefundRequest:
    cleaned = form.cleaned_data
    reason, chosen = RefundReason(cleaned["reason"]), cleaned["units_to"]
    usual = default_units_to(payment=payment, amount=cleaned["amount"], reason=reason)
    return RefundRequest(
        payment_id=payment.pk,
        amount=cleaned["amount"],
        reason=reason,
        units_to=RefundedUnitsTo(chosen) if chosen else usual,
        note=cleaned["note"],
        actor_id=actor_id,
    )
