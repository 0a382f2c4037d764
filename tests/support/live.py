"""The shop's own views behind a real socket, in a thread: for whoever must reach it by HTTP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler


class _Quiet(WSGIRequestHandler):
    """A handler that writes no line per request."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def live_shop() -> Iterator[str]:
    """Serve for the length of the block; give the address, without a slash at the end."""
    server = ThreadedWSGIServer(("127.0.0.1", 0), _Quiet, allow_reuse_address=True)
    server.set_app(WSGIHandler())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
