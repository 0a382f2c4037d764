"""Django behind an ASGI door: WSGI in a pool of threads, which keep their connections from request to request.

Django's own ASGI handler would give each request a new thread, and with it new connections to MySQL and Redis.
"""

from typing import TYPE_CHECKING, Any, cast

from a2wsgi import WSGIMiddleware
from django.conf import settings

if TYPE_CHECKING:
    from a2wsgi.asgi_typing import ASGIApp, Receive, Scope, Send
    from a2wsgi.wsgi_typing import WSGIApp
    from django.core.handlers.wsgi import WSGIHandler


def in_threads(django: "WSGIHandler") -> "ASGIApp":
    """Return Django as an ASGI application with ``WEB_THREADS`` threads."""
    bridge = WSGIMiddleware(cast("WSGIApp", django), workers=settings.WEB_THREADS)

    async def application(scope: "Scope", receive: "Receive", send: "Send") -> None:
        # The bridge asks for the body from its thread, and needs a coroutine; Granian's is another kind of awaitable.
        async def receive_in_loop() -> Any:
            return await receive()

        await bridge(scope, receive_in_loop, send)

    return application
