"""The doors through which a purchase or a poll gets in: Django's handler, and a served shop with its fast lane."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import quote, urlsplit

from django.db import connection

from benchmarks.servers import PrivateServers
from benchmarks.servers.account import Account
from benchmarks.servers.process import HOST, Program, Server, free_port

ROOT = Path(__file__).resolve().parent.parent.parent
OPTIONS = ("--interface=asgi", f"--host={HOST}", "--workers=1", "--no-ws")
# Granian's, or its proxy's.
HOP_HEADERS = frozenset({"date", "server", "connection"})


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came back, read in full."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, kw_only=True)
class Served:
    """A served shop."""

    port: int

    def call(self, method: str, path: str, *, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Reply:
        """Make one call on a connection of its own."""
        wire = HTTPConnection(HOST, self.port, timeout=10)
        try:
            wire.request(method, quote(path, safe="/%?=&-"), body or None, dict(headers or {}))
            answer = wire.getresponse()
            kept = {_titled(name): value for name, value in answer.getheaders() if name.lower() not in HOP_HEADERS}
            return Reply(status=answer.status, headers=kept, content=answer.read())
        finally:
            wire.close()


@contextmanager
def served_shop(servers: PrivateServers, *, lane: bool, directory: Path, **further: str) -> Iterator[Served]:
    """Serve the test database by Granian for the length of the block, with or without its fast lane.

    ``further`` are settings of its own.
    """
    database = urlsplit(servers.environment()["DATABASE_URL"])._replace(path=f"/{connection.settings_dict['NAME']}")
    environment = {**servers.environment(), "DATABASE_URL": database.geturl(), "FAST_LANE": str(int(lane)), **further}
    port = free_port()
    server = Server(
        program=Program(
            executable=sys.executable,
            arguments=(sys.executable, "-m", "granian", *OPTIONS, f"--port={port}", "benchmarks.asgi:application"),
            port=port,
            directory=ROOT,
            log=directory / f"served-{int(lane)}.log",
            account=Account(),
            environment=environment,
            is_ready=partial(_answers, port),
        )
    )
    server.start()
    try:
        yield Served(port=port)
    finally:
        server.stop()


def _answers(port: int) -> bool:
    try:
        return Served(port=port).call("GET", "/api/v1/time/").status == 200
    except (OSError, HTTPException):
        return False


def _titled(name: str) -> str:
    return "-".join(part.capitalize() for part in name.split("-"))
