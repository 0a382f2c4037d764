"""Pointing a Redis alias at another server, for the length of one test."""

from typing import Any

from pytest_django import Settings

NOWHERE = "redis://127.0.0.1:1/0"


def point(settings: Settings, alias: str, url: str, **pool_options: Any) -> None:
    """Point ``alias`` at ``url``; what the connections of its pool shall be besides is in ``pool_options``."""
    before = settings.CACHES[alias]
    options = before["OPTIONS"]
    kwargs = {**options.get("CONNECTION_POOL_KWARGS", {}), **pool_options}
    changed = {**before, "LOCATION": url, "OPTIONS": {**options, "CONNECTION_POOL_KWARGS": kwargs}}
    settings.CACHES = {**settings.CACHES, alias: changed}
