"""Accounts and sessions: the operator, and buyers by the thousand, logged in without a password hash each.

Needs Django set up and the tables there.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase, digits

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.contrib.sessions.backends.cache import SessionStore
from django.core.cache import caches
from django.utils.crypto import get_random_string

from benchmarks.servers.account import Account
from benchmarks.servers.directory import write_private

# The one that knows passwords; the other of the settings only looks on.
MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"

OPERATOR = "operator"
CSRF_SECRET_LENGTH = 32  # Django's; a header may carry the cookie's secret as it is.
CHUNK = 1_000


@dataclass(frozen=True, kw_only=True)
class Login:
    """A user's live session: what a browser would hold in its cookies ``sessionid`` and ``csrftoken``."""

    user_id: int
    session: str
    csrf: str


def operator_password(*, directory: Path) -> str:
    """Make sure that the operator can log in; return the password, which a 0600 file in `directory` keeps."""
    path = directory / "operator-password"
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        write_private(path, f"{secrets.token_urlsafe(12)}\n", account=Account())
    password = path.read_text().strip()
    user, _ = User.objects.get_or_create(username=OPERATOR)
    if not user.check_password(password):
        user.set_password(password)
    user.is_active = user.is_staff = user.is_superuser = True
    user.save()
    return password


def make_buyers(number: int, *, prefix: str = "buyer") -> list[User]:
    """Return so many buyers, made where they are missing, none of whom can log in with a password."""
    names = [f"{prefix}-{n:05}" for n in range(1, number + 1)]
    users = User.objects.filter(username__in=names)
    known = set(users.values_list("username", flat=True))
    missing = [User(username=name, password=make_password(None)) for name in names if name not in known]
    User.objects.bulk_create(missing, batch_size=CHUNK)
    return list(users.order_by("pk"))


def log_in(users: Sequence[User]) -> list[Login]:
    """Write a session for each user straight into the session store, all in a few round trips."""
    logins, sessions = [], {}
    for user in users:
        login = Login(user_id=user.pk, session=_session_key(), csrf=get_random_string(CSRF_SECRET_LENGTH))
        sessions[f"{SessionStore.cache_key_prefix}{login.session}"] = {
            SESSION_KEY: str(user.pk),
            BACKEND_SESSION_KEY: MODEL_BACKEND,
            HASH_SESSION_KEY: user.get_session_auth_hash(),
        }
        logins.append(login)
    caches[settings.SESSION_CACHE_ALIAS].set_many(sessions, timeout=settings.SESSION_COOKIE_AGE)
    return logins


def _session_key() -> str:
    return get_random_string(32, allowed_chars=ascii_lowercase + digits)
