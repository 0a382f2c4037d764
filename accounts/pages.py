"""Pages of who is asking: Django's own views, counted and closed to who is blocked, and the registration."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django import forms
from django.contrib.auth import login, views
from django.contrib.auth.forms import PasswordResetForm
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.generic import FormView
from rest_framework.exceptions import APIException

from accounts.blocks import is_address_blocked
from accounts.errors import RegistrationRefused
from accounts.services import ask_for_new_password, register
from rest.addresses import client_address
from rest.askers import address_key
from rest.throttles import throttle_key

PageView = Callable[..., HttpResponseBase]

MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"


def counted(scope: str) -> Callable[[PageView], PageView]:
    """Count what is posted to a page by its address, and refuse blocked ones.

    Not by account: who makes accounts has as many as he likes.
    """

    def decorate(view: PageView) -> PageView:
        @wraps(view)
        def count_first(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.method != "POST":
                return view(request, *args, **kwargs)
            if is_address_blocked(address=client_address(request), now=timezone.now()):
                raise PermissionDenied
            try:
                throttle_key(scope=scope, key=address_key(request))
            except APIException as error:
                return _wait(request, error)
            return view(request, *args, **kwargs)

        return count_first

    return decorate


def _wait(request: HttpRequest, error: APIException) -> HttpResponse:
    wait = max(1, round(getattr(error, "wait", None) or 2))
    response = render(request, "registration/wait.html", {"seconds": wait}, status=error.status_code)
    response["Retry-After"] = str(wait)
    return response


class LoginPage(views.LoginView):
    """Log in; wrong passwords are counted by name and address together."""

    redirect_authenticated_user = True


class PasswordResetPage(views.PasswordResetView):
    """Ask for a link by mail; says the same whether or not an account has the address."""

    success_url = reverse_lazy("password_reset_done")

    def form_valid(self, form: PasswordResetForm) -> HttpResponse:
        """Send it, unless the mailbox has had enough of them."""
        try:
            ask_for_new_password(request=self.request, email=form.cleaned_data["email"])
        except APIException as error:
            return _wait(self.request, error)
        return redirect(self.get_success_url())


class RegistrationForm(forms.Form):
    """Name and password; the address only for a forgotten password."""

    username = forms.CharField(label=_("Name"), max_length=150)
    email = forms.EmailField(
        label=_("E-mail address"), required=False, help_text=_("Only for a forgotten password; may stay empty.")
    )
    password = forms.CharField(
        label=_("Password"),
        max_length=128,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )


@method_decorator([never_cache, sensitive_post_parameters("password")], name="dispatch")
class RegistrationPage(FormView[RegistrationForm]):
    """Make an account and be logged in with it."""

    form_class = RegistrationForm
    template_name = "registration/register.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add where to go afterwards."""
        wanted = self.request.POST.get("next") or self.request.GET.get("next", "")
        return super().get_context_data(**kwargs) | {"next": wanted}

    def form_valid(self, form: RegistrationForm) -> HttpResponse:
        """Register, or show what is wrong at its field."""
        try:
            user = register(**form.cleaned_data)
        except RegistrationRefused as refused:
            for field, messages in refused.errors.items():
                for message in messages:
                    form.add_error(field, message)
            return self.form_invalid(form)
        login(self.request, user, backend=MODEL_BACKEND)
        return redirect(_next_page(self.request))


def _next_page(request: HttpRequest) -> str:
    wanted = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if is_ours else "/"
