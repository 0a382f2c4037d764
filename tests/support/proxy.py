"""A TCP proxy on the loopback address that can swallow one reply and break the connection."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

CHUNK = 65_536


@dataclass
class Proxy:
    """Where the proxy listens; ``swallow`` makes it drop the next reply and close."""

    port: int
    _swallow: threading.Event = field(default_factory=threading.Event)

    def swallow_next_reply(self) -> None:
        """Let the next request through and its reply vanish, once."""
        self._swallow.set()

    def take_order(self) -> bool:
        """Tell whether this reply is the one to vanish."""
        if self._swallow.is_set():
            self._swallow.clear()
            return True
        return False


@contextmanager
def proxy_to(port: int) -> Iterator[Proxy]:
    """Run a proxy in front of a local port for the length of a ``with`` block."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", port)) as server:
                while request := self.request.recv(CHUNK):
                    server.sendall(request)
                    reply = server.recv(CHUNK)
                    if proxy.take_order():
                        return
                    self.request.sendall(reply)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as listener:
        listener.daemon_threads = True
        proxy = Proxy(port=listener.server_address[1])
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield proxy
        finally:
            listener.shutdown()
            thread.join()
