"""Short bursts of calls by turns on two servers, and the processor time each of them took, to the nanosecond."""

import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Self

import psutil

from benchmarks.servers import ServersError
from benchmarks.servers.process import HOST, Server

TIMEOUT_SECONDS = 20.0
READ_BYTES = 65_536
CPUCLOCK_SCHED = 2  # From linux/posix-timers.h.


@dataclass(frozen=True, kw_only=True)
class Client:
    """Connections to a server, on each of which one call at a time is under way."""

    server: Server
    sockets: Sequence[socket.socket]
    expected: bytes

    @classmethod
    @contextmanager
    def of(cls, server: Server, *, connections: int, status: int) -> Iterator[Self]:
        """Connect; every answer must have this status."""
        with ExitStack() as open_:
            sockets = [
                open_.enter_context(socket.create_connection((HOST, server.port), timeout=TIMEOUT_SECONDS))
                for _ in range(connections)
            ]
            yield cls(server=server, sockets=sockets, expected=f"HTTP/1.1 {status} ".encode())

    def burst(self, requests: Sequence[bytes]) -> float:
        """Send all requests, as many at once as there are connections; return processor microseconds for each."""
        before = _cpu_nanoseconds(self.server)
        width = len(self.sockets)
        for start in range(0, len(requests), width):
            some = requests[start : start + width]
            for sock, request in zip(self.sockets, some, strict=False):
                sock.sendall(request)
            for sock, _ in zip(self.sockets, some, strict=False):
                self._read(sock)
        return (_cpu_nanoseconds(self.server) - before) / len(requests) / 1_000

    def _read(self, sock: socket.socket) -> None:
        """Read one answer to its end. Raises ``ServersError`` when it is not the one that is measured."""
        got = sock.recv(READ_BYTES)
        while b"\r\n\r\n" not in got:
            got += _more(sock)
        head, _, body = got.partition(b"\r\n\r\n")
        if not head.startswith(self.expected):
            raise ServersError(f"expected {self.expected.decode()}and was answered {got.decode(errors='replace')}")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        while len(body) < length:
            body += _more(sock)


def _more(sock: socket.socket) -> bytes:
    got = sock.recv(READ_BYTES)
    if not got:
        raise ServersError("the server has closed the connection")
    return got


def _cpu_nanoseconds(server: Server) -> int:
    """Processor time of the server's processes, all threads included, by the clock that the kernel keeps for each."""
    master = psutil.Process(server.pid)
    processes = (master, *master.children(recursive=True))
    return sum(time.clock_gettime_ns(_clock_of(process.pid)) for process in processes)


def _clock_of(pid: int) -> int:
    """What clock_getcpuclockid(3) says on Linux, which Python does not offer for other processes."""
    return ~pid << 3 | CPUCLOCK_SCHED
