"""Frames: what Django's middleware and a view put around every answer, whatever it says.

Which headers those are depends on few things a request brings: its host, its scheme, its language. So they are
made once for each of these, by Django's own middleware around an empty answer, and kept.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import Any

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.http import HttpRequest, HttpResponse, parse_cookie
from django.utils import translation
from django.views.decorators.csrf import csrf_exempt
from rest_framework.views import APIView

Headers = Mapping[bytes, bytes]

# The headers Django's middleware looks at before and after a call of the API that needs no session.
SEEN = (b"host", b"x-forwarded-proto", b"x-forwarded-host", b"x-forwarded-port", b"accept-language")
LANGUAGE = re.compile(r"[A-Za-z0-9-]{1,20}", re.ASCII)
# Marks the request that a frame is made around: nobody has sent it.
IS_FRAME = "shop.is_frame"
# Anybody may name any host or language; the table of frames must not grow with that.
KEPT_MAX = 1024
# What each answer says for itself.
OWN = frozenset({"Content-Type", "Content-Length", "Cache-Control", "X-Request-Id"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """Headers of all answers alike, as ASGI has them, and the language to speak."""

    headers: tuple[tuple[bytes, bytes], ...]
    language: str


class _EmptyAnswers(WSGIHandler):
    """Django's middleware as it is set up, around a view that says nothing."""

    def __init__(self, view: type[APIView]) -> None:
        # Set up as for a request: only then it knows that who answers GET answers HEAD too.
        instance = view()
        instance.setup(HttpRequest())
        headers = instance.default_response_headers

        @csrf_exempt
        def say_nothing(request: HttpRequest) -> HttpResponse:
            del request
            return HttpResponse(headers=headers)

        self._say_nothing = say_nothing
        super().__init__()

    def resolve_request(self, request: HttpRequest) -> Any:
        """Find the one view there is."""
        del request
        return self._say_nothing, (), {}


class Frames:
    """The frames of one view."""

    def __init__(self, view: type[APIView]) -> None:
        self._handler = _EmptyAnswers(view)
        self._kept = lru_cache(maxsize=KEPT_MAX)(self._make)

    def around(self, scope: Mapping[str, Any], headers: Headers) -> Frame | None:
        """Return the frame of a request's answer; None where the middleware answers by itself."""
        name, port = scope["server"]
        language = _language_cookie(headers)
        return self._kept(language, scope["method"], scope["scheme"], name, port, *map(headers.get, SEEN))

    def _make(self, language: str, method: str, scheme: str, name: str, port: int, *seen: bytes | None) -> Frame | None:
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": "/api/",
            "SERVER_NAME": name,
            "SERVER_PORT": str(port),
            "wsgi.url_scheme": scheme,
            "wsgi.input": BytesIO(),
            IS_FRAME: True,
        }
        for header, value in zip(SEEN, seen, strict=True):
            if value is not None:
                environ["HTTP_" + header.decode().upper().replace("-", "_")] = value.decode("latin-1")
        if language:
            environ["HTTP_COOKIE"] = f"{settings.LANGUAGE_COOKIE_NAME}={language}"
        request = WSGIRequest(environ)
        # The middleware leaves the thread speaking the request's language; whoever calls speaks his own.
        with translation.override(translation.get_language()):
            response = self._handler.get_response(request)
        if response.status_code != 200:
            return None
        own = ((name, value) for name, value in response.items() if name not in OWN)
        return Frame(headers=tuple(map(as_sent, own)), language=response["Content-Language"])


def as_sent(header: tuple[str, str]) -> tuple[bytes, bytes]:
    """Return a header as ASGI has it."""
    name, value = header
    return name.lower().encode("latin-1"), value.encode("latin-1")


def _language_cookie(headers: Headers) -> str:
    cookies = headers.get(b"cookie", b"").decode("latin-1")
    if settings.LANGUAGE_COOKIE_NAME not in cookies:
        return ""
    language = parse_cookie(cookies).get(settings.LANGUAGE_COOKIE_NAME, "")
    return language if LANGUAGE.fullmatch(language) else ""
