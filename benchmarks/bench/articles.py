"""A WSGI application that sells a unit in the seed articles' ways: ``POST /<way>/``, answered as the shop would.

It has the least of the shop's lane: the body is read, the ticket is checked, nothing is counted, logged or throttled.
"""

import json
import multiprocessing
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import django

from benchmarks.servers.process import end_with_parent

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

if (master := multiprocessing.parent_process()) is not None and master.pid is not None:
    end_with_parent(master.pid)
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from benchmarks.bench.ways import WAYS  # noqa: E402  it needs Django
from seckill.tickets import read_ticket  # noqa: E402  as well

JSON = ("Content-Type", "application/json")
SOLD_OUT = b'{"code":"sold_out","status":409}'


def application(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    """Sell one unit, or say that there is none."""
    way = environ["PATH_INFO"].strip("/")
    if way == "readyz":
        start_response("200 OK", [JSON])
        return (b'{"status":"ready"}',)
    body = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
    claims = read_ticket(body["ticket"])
    if not WAYS[way](claims).is_sold:
        start_response("409 Conflict", [JSON, ("Content-Length", str(len(SOLD_OUT)))])
        return (SOLD_OUT,)
    told = {"order_no": claims.order_no, "status_url": f"/api/v1/purchases/{claims.order_no}/", "poll_after_ms": 500}
    answer = json.dumps(told, separators=(",", ":")).encode()
    start_response("202 Accepted", [JSON, ("Content-Length", str(len(answer)))])
    return (answer,)
