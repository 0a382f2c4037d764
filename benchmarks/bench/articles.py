"""A WSGI application beside the shop under the same Granian: a bare answer, and the other ways to sell a unit."""

import multiprocessing
from collections.abc import Iterable
from typing import TYPE_CHECKING

from benchmarks.servers.process import end_with_parent

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

if (master := multiprocessing.parent_process()) is not None and master.pid is not None:
    end_with_parent(master.pid)

JSON = [("Content-Type", "application/json")]


def application(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    """Answer, whatever is asked."""
    del environ
    start_response("200 OK", [*JSON, ("Content-Length", "18")])
    return (b'{"status":"ready"}',)
