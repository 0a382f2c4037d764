"""Providers by name: ``PAYMENT_PROVIDERS`` in the settings, the first being the default."""

from functools import cache
from typing import cast

from django.conf import settings
from django.utils.module_loading import import_string

from orders.errors import UnknownProvider
from orders.providers.interface import Provider


def provider_named(name: str) -> Provider:
    """Return a provider. Raises ``UnknownProvider``."""
    path = settings.PAYMENT_PROVIDERS.get(name)
    if path is None:
        raise UnknownProvider(name)
    return _made(path)


def default_provider() -> str:
    """Return the name of the provider a buyer gets who asks for none. Raises ``UnknownProvider``."""
    for name in settings.PAYMENT_PROVIDERS:
        return str(name)
    raise UnknownProvider("the settings name no payment provider")


@cache
def _made(path: str) -> Provider:
    return cast("Provider", import_string(path)())
