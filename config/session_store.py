"""Sessions in the cache, as Django has them, but that one which does not answer is told from one that has forgotten.

Django's own takes both for an empty session: the buyer is told to log in, and his cookie is deleted. Here he is told
to come again, and keeps it.
"""

import logging
import pickle
from collections.abc import Callable
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.sessions.backends import cache
from django.core.cache import caches
from redis.exceptions import RedisError
from rest_framework import exceptions

logger = logging.getLogger(__name__)

R = TypeVar("R")

# What unpickling may raise for a value that somebody else, or another version, has written.
UNREADABLE = (
    pickle.UnpicklingError,
    AttributeError,
    EOFError,
    ImportError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
)


class SessionsUnavailable(exceptions.APIException):
    """Raised when the cache cannot be asked who somebody is: nobody is taken for a stranger."""

    status_code = 503
    default_detail = "Nobody can be recognised at the moment."
    default_code = "unavailable"


class SessionStore(cache.SessionStore):
    """Django's store of sessions in the cache. Whatever needs the cache raises ``SessionsUnavailable``."""

    def load(self) -> dict[str, Any]:
        """Read the session, as Django does; it would swallow the error, so the cache is asked first."""
        return _asked(self._load)

    def _load(self) -> dict[str, Any]:
        try:
            found = caches[settings.SESSION_CACHE_ALIAS].get(self.cache_key)
        except UNREADABLE as error:
            logger.warning("a session cannot be read, its owner has to log in again: %r", error)
            found = None
        if not isinstance(found, dict):
            found = None
        if found is None:
            self._session_key = None
        return dict(found or {})

    def create(self) -> None:
        """Begin a session."""
        _asked(super().create)

    def save(self, must_create: bool = False) -> None:  # noqa: FBT001, FBT002  Django's own signature
        """Write the session."""
        _asked(lambda: super(SessionStore, self).save(must_create))

    def exists(self, session_key: str) -> bool:
        """Tell whether there is such a session."""
        return _asked(lambda: super(SessionStore, self).exists(session_key))

    def delete(self, session_key: str | None = None) -> None:
        """Forget the session."""
        _asked(lambda: super(SessionStore, self).delete(session_key))


def _asked(ask: Callable[[], R]) -> R:
    try:
        return ask()
    except RedisError as error:
        raise SessionsUnavailable from error
