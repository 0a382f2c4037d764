"""Calling an ASGI application as a server does, on one event loop for all tests: it keeps its connections."""

import asyncio
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler

from config.django_threads import in_threads
from rest import threads
from seckill.gate import pipeline

if TYPE_CHECKING:
    from a2wsgi.asgi_typing import ASGIApp

T = TypeVar("T")

SECONDS_MAX = 20


@cache
def event_loop() -> asyncio.AbstractEventLoop:
    """Return the loop, which runs in a thread until the process ends."""
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="asgi", daemon=True).start()
    return loop


def on_loop(work: Coroutine[Any, Any, T]) -> T:
    """Do some work on the loop and return what it returns."""
    return asyncio.run_coroutine_threadsafe(work, event_loop()).result(SECONDS_MAX)


def forget_pipeline() -> None:
    """Let the loop, and the threads behind it, connect anew to Redis: to another server, as a test wants."""

    async def forget() -> None:
        for opening in pipeline._pipelines.pop(event_loop(), {}).values():
            if opening.done() and opening.exception() is None and (lost := opening.result()):
                lost._transport.abort()
        event_loop().set_default_executor(ThreadPoolExecutor())

    on_loop(forget())
    threads._threads.shutdown()
    threads._threads = ThreadPoolExecutor(max_workers=settings.WEB_THREADS, thread_name_prefix="lane")


@cache
def django() -> "ASGIApp":
    """Return Django as it stands behind the fast lane."""
    return in_threads(WSGIHandler())


def call_asgi(application: "ASGIApp", environ: Mapping[str, Any]) -> tuple[int, list[tuple[str, str]], bytes]:
    """Make the call of a WSGI environ; return status, headers and body."""
    return on_loop(_call(application, environ))


def scope_of(environ: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scope of the request a WSGI environ is of."""
    headers = {name.removeprefix("HTTP_"): value for name, value in environ.items() if name.startswith("HTTP_")}
    headers |= {name: environ[name] for name in ("CONTENT_TYPE", "CONTENT_LENGTH") if environ.get(name)}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": environ["REQUEST_METHOD"],
        "scheme": environ["wsgi.url_scheme"],
        "path": environ["PATH_INFO"],
        "root_path": "",
        "query_string": environ.get("QUERY_STRING", "").encode(),
        "headers": [(name.lower().replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        "server": (environ["SERVER_NAME"], int(environ["SERVER_PORT"])),
        "client": ("127.0.0.1", 1),
    }


async def _call(application: "ASGIApp", environ: Mapping[str, Any]) -> tuple[int, list[tuple[str, str]], bytes]:
    unread = [environ["wsgi.input"].getvalue()]
    told: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": unread.pop(), "more_body": False}

    async def send(message: Any) -> None:
        told.append(message)

    await application(scope_of(environ), receive, send)  # type: ignore[arg-type]
    start, *bodies = told
    headers = [(name.decode().title(), value.decode()) for name, value in start["headers"]]
    return start["status"], headers, b"".join(message["body"] for message in bodies)
