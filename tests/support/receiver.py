"""A webhook's receiver on the loopback address: it keeps what it is sent and answers as it is told."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request as it came in."""

    headers: Mapping[str, str]
    body: bytes


@dataclass
class Receiver:
    """Where it listens, what it has heard, and what it answers next: 200 once its list is used up."""

    url: str
    answers: list[int] = field(default_factory=list)
    heard: list[Request] = field(default_factory=list)


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Run a receiver for the length of a ``with`` block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            own.heard.append(Request(headers=dict(self.headers.items()), body=body))
            status = own.answers.pop(0) if own.answers else 200
            self.send_response(status)
            if status in {301, 307}:
                self.send_header("Location", own.url)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        own = Receiver(url=f"http://127.0.0.1:{server.server_address[1]}/incidents")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield own
        finally:
            server.shutdown()
            thread.join()
