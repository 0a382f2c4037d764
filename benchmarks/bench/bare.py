"""An ASGI application that answers at once, whatever is asked: what HTTP alone costs under the shop's own Granian."""

import multiprocessing
from typing import TYPE_CHECKING

from benchmarks.servers.process import end_with_parent

if TYPE_CHECKING:
    from a2wsgi.asgi_typing import Receive, Scope, Send

if (master := multiprocessing.parent_process()) is not None and master.pid is not None:
    end_with_parent(master.pid)

BODY = b'{"status":"ready"}'
HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))]


async def application(scope: "Scope", receive: "Receive", send: "Send") -> None:
    """Answer."""
    del receive
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await send({"type": "http.response.body", "body": BODY})
