"""The control of the guard: the shop's application with work for nothing before each call."""

import time
from typing import TYPE_CHECKING

from benchmarks.asgi import application as shop

if TYPE_CHECKING:
    from a2wsgi.asgi_typing import Receive, Scope, Send

# Of processor time, before each call: what a careless look-up, a log line or a second signature would cost.
BURNT_SECONDS = 0.000_12


async def application(scope: "Scope", receive: "Receive", send: "Send") -> None:
    """Waste time, and let the shop answer."""
    until = time.thread_time() + BURNT_SECONDS
    while time.thread_time() < until:
        pass
    await shop(scope, receive, send)
