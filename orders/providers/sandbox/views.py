"""The sandbox's pay page, as a provider would host it."""

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from orders.models import SandboxPayment
from orders.providers.sandbox.till import Behaviour, behaviour_by_amount, give_up, pay


class PayForm(forms.Form):
    """How the sandbox shall behave; empty: by the cents of the amount."""

    behaviour = forms.ChoiceField(
        label=_("The provider shall"),
        choices=[("", _("behave by the cents of the amount")), *Behaviour.choices],
        required=False,
    )


@never_cache
@require_http_methods(["GET", "POST"])
def pay_page(request: HttpRequest, token: str) -> HttpResponse:
    """Show what is to be paid; take the money or the refusal, then show where the payment stands."""
    payment = get_object_or_404(SandboxPayment, token=token)
    form = PayForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        if "give_up" in request.POST:
            give_up(token=token, now=timezone.now())
        else:
            chosen = form.cleaned_data["behaviour"]
            behaviour = Behaviour(chosen) if chosen else behaviour_by_amount(amount=payment.amount)
            pay(token=token, behaviour=behaviour, now=timezone.now())
        return HttpResponseRedirect(request.path)
    return render(request, "sandbox/pay.html", {"payment": payment, "form": form})
