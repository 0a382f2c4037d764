"""``/metrics`` of a host that has workers and no web process, on a port of its own (``METRICS_PORT``).

It tells what the host's processes have counted, to whom the web's would tell it; what the stores say is the web's to
tell. On a host with both, the web answers for all, as they share a directory, and no port is wanted.
"""

import logging
import threading
from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, make_server

from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from prometheus_client import CONTENT_TYPE_LATEST

from config.exposition import PATH, counted_by_processes, may_read

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

logger = logging.getLogger(__name__)


class _Quiet(WSGIRequestHandler):
    timeout = 5

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Write no line per scrape."""


def application(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    """Answer whoever may read."""
    if environ.get("PATH_INFO") != PATH or not may_read(WSGIRequest(environ)):
        start_response(f"404 {HTTPStatus.NOT_FOUND.phrase}", [("Content-Length", "0")])
        return [b""]
    body = counted_by_processes()
    start_response("200 OK", [("Content-Type", CONTENT_TYPE_LATEST), ("Content-Length", str(len(body)))])
    return [body]


def serve_if_wanted() -> None:
    """Serve from a thread of this process, if there is a port; without one that is free the worker works on."""
    if not settings.METRICS_PORT:
        return
    try:
        server = make_server(settings.METRICS_HOST, settings.METRICS_PORT, application, handler_class=_Quiet)
    except OSError as error:
        logger.error("no metrics on %s:%s: %s", settings.METRICS_HOST, settings.METRICS_PORT, error)  # noqa: TRY400
        return
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
