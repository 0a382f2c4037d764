"""Who is asking, told from the request alone, before any SQL: good enough to count calls by."""

from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest
from rest_framework.exceptions import APIException
from rest_framework_simplejwt.authentication import JWTAuthentication
from rest_framework_simplejwt.settings import api_settings

from rest.addresses import client_network

_tokens = JWTAuthentication()


def asker_of(request: HttpRequest) -> str:
    """Return the account's key when the request brings a session or a token that holds, else its address's.

    Carrier networks put thousands behind one address, so who is logged in is counted by himself.
    """
    account = _account_of_token(request) or request.session.get(SESSION_KEY)
    return f"account:{account}" if account else address_key(request)


def address_key(request: HttpRequest) -> str:
    """Return the key of the address a call comes from, whoever makes it."""
    return f"address:{client_network(request)}"


def _account_of_token(request: HttpRequest) -> str | None:
    header = request.headers.get("Authorization", "").encode()
    try:
        raw = _tokens.get_raw_token(header)
        return None if raw is None else str(_tokens.get_validated_token(raw)[api_settings.USER_ID_CLAIM])
    except (APIException, KeyError):
        return None
