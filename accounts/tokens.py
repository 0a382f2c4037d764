"""Tokens of apps: a short-lived access token, and a refresh token that each use replaces."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from rest_framework.exceptions import APIException
from rest_framework_simplejwt.authentication import JWTAuthentication
from rest_framework_simplejwt.exceptions import TokenError
from rest_framework_simplejwt.settings import api_settings
from rest_framework_simplejwt.tokens import RefreshToken

from accounts.errors import TokenInvalid


@dataclass(frozen=True, kw_only=True)
class TokenPair:
    """What an app keeps: ``access`` goes with each call, ``refresh`` gets the next pair, once."""

    access: str
    refresh: str
    expires_in_seconds: int


def tokens_for(user: User) -> TokenPair:
    """Return a new pair for an account that has said who it is."""
    refresh = RefreshToken.for_user(user)
    lifetime = int(api_settings.ACCESS_TOKEN_LIFETIME.total_seconds())
    return TokenPair(access=str(refresh.access_token), refresh=str(refresh), expires_in_seconds=lifetime)


def renew_tokens(*, refresh: str) -> TokenPair:
    """Return the next pair and void the old refresh token.

    Raises ``TokenInvalid``, also for one that was used before or whose account has a new password.
    """
    try:
        old = RefreshToken(refresh)  # type: ignore[arg-type]  # its annotation names another kind of text
        user = JWTAuthentication().get_user(old)
        is_first_use = _void(old)
    except (TokenError, APIException) as error:
        raise TokenInvalid from error
    if not is_first_use:
        raise TokenInvalid
    assert isinstance(user, User)  # noqa: S101  the settings name Django's own
    return tokens_for(user)


def revoke_tokens(*, refresh: str) -> None:
    """Void a refresh token: log out. Raises ``TokenInvalid``."""
    try:
        _void(RefreshToken(refresh))  # type: ignore[arg-type]  # its annotation names another kind of text
    except TokenError as error:
        raise TokenInvalid from error


def _void(token: RefreshToken) -> bool:
    """Void a refresh token; of several at once, one is told True."""
    made: Any = token.blacklist()  # what get_or_create returns, whatever its annotation says
    return bool(made[1])
