"""Threads for what an event loop must not wait for: SQL, and whatever else takes its time."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from django.conf import settings
from django.db import close_old_connections

T = TypeVar("T")

CONNECTIONS_SECONDS = 1.0


class _Seen(threading.local):
    """When this thread's database connections were looked after."""

    connections_at: float = 0.0


_seen = _Seen()
_threads = ThreadPoolExecutor(max_workers=settings.WEB_THREADS, thread_name_prefix="lane")


async def in_thread(call: Callable[[], T]) -> T:
    """Make a call in a thread and return what it returns; it sees the caller's context, and a sound connection."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_threads, copy_context().run, _run, call)


def _run(call: Callable[[], T]) -> T:
    _look_after_connections()
    return call()


def _look_after_connections() -> None:
    """Close those that are broken or too old, as Django does around each request; here each second."""
    now = time.monotonic()
    if now - _seen.connections_at >= CONNECTIONS_SECONDS:
        _seen.connections_at = now
        close_old_connections()
