"""Writes of the accounts: registration, log-in, log-in by a service outside."""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.utils.crypto import get_random_string
from django.utils.module_loading import import_string
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from kombu.exceptions import OperationalError

from accounts.errors import ExternalLoginOff, LockedOut, RegistrationRefused, WrongCredentials
from accounts.models import ExternalIdentity
from accounts.tasks import mail_reset
from rest.throttles import CountsUnavailable, throttle_key

RANDOM_NAME_LENGTH = 12


@dataclass(frozen=True, kw_only=True)
class ExternalAccount:
    """What a log-in service outside says of a code: whose it is. ``subject`` never changes."""

    provider: str
    subject: str


# ``settings.EXTERNAL_LOGIN`` names one: it asks its service about a code, and returns None when that knows none.
Verifier = Callable[[str], ExternalAccount | None]


def register(*, username: str, password: str, email: str = "") -> User:
    """Make an account.

    Raises ``RegistrationRefused`` with what is wrong by field; then there is none.
    """
    user = User(username=User.normalize_username(username), email=email)
    if errors := _errors(user=user, password=password):
        raise RegistrationRefused(errors=errors)
    user.set_password(password)
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError as error:
        raise RegistrationRefused(errors={"username": [_("This name is taken.")]}) from error
    return user


def ask_for_new_password(*, request: HttpRequest, email: str) -> None:
    """Have a link sent to an address, should an account have it.

    Looked up and sent by a worker: here, the time it takes would tell strangers who has an account. Counted
    by the address as Django compares it with those of the accounts, so that no spelling is counted apart.
    Raises ``Throttled`` and ``CountsUnavailable``.
    """
    throttle_key(scope="password_reset_mail", key=unicodedata.normalize("NFKC", email).casefold())
    link = {"domain": request.get_host(), "is_https": request.is_secure(), "language": get_language()}
    try:
        mail_reset.apply_async((email,), link, retry=False)
    except OperationalError as error:
        raise CountsUnavailable from error


def log_in_by_password(*, request: HttpRequest, username: str, password: str) -> User:
    """Return the account of a name and its password; the wrong ones are counted by name and address together.

    Raises ``WrongCredentials`` and ``LockedOut``.
    """
    user = authenticate(request, username=username, password=password)
    if getattr(request, "axes_locked_out", False):
        # Told as a problem, not as the page that the middleware would put in its place.
        vars(request)["axes_locked_out"] = False
        raise LockedOut
    if not isinstance(user, User):
        raise WrongCredentials
    return user


def log_in_by_code(*, code: str) -> User:
    """Return the account of a code that a log-in service outside gave; a new one at the first time.

    Raises ``ExternalLoginOff`` and ``WrongCredentials``.
    """
    if not settings.EXTERNAL_LOGIN:
        raise ExternalLoginOff
    verify: Verifier = import_string(settings.EXTERNAL_LOGIN)
    external = verify(code)
    if external is None:
        raise WrongCredentials
    user = _account_of(external) or _new_account_of(external)
    if not user.is_active:
        raise WrongCredentials
    return user


def _account_of(external: ExternalAccount) -> User | None:
    identity = ExternalIdentity.objects.filter(provider=external.provider, subject=external.subject)
    known = identity.select_related("account").first()
    return None if known is None else known.account


def _new_account_of(external: ExternalAccount) -> User:
    """Make an account without a password; of two first log-ins at once, one makes it and both get it."""
    name = f"{external.provider}-{get_random_string(RANDOM_NAME_LENGTH)}"
    try:
        with transaction.atomic():
            user = User.objects.create_user(username=name)
            ExternalIdentity.objects.create(provider=external.provider, subject=external.subject, account=user)
    except IntegrityError:
        made = _account_of(external)
        if made is None:
            raise
        return made
    return user


def _errors(*, user: User, password: str) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = {}
    try:
        user.full_clean(exclude=["password"])
    except ValidationError as error:
        errors.update(error.message_dict)
    try:
        validate_password(password, user)
    except ValidationError as error:
        errors["password"] = list(error.messages)
    return errors
