"""Redis servers of a test's own, one of which can lose its power: its file is then as long as the last sync left it.

A killed process alone loses nothing, for the kernel keeps what was written. What of it is on the disk, a library tells
that stands between the server and its C library: it notes each sync that has succeeded, see ``synced.c``.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.servers import Server, redis
from benchmarks.servers.account import Account, server_account
from benchmarks.servers.directory import data_directory, home_directory
from benchmarks.servers.process import HOST, Program
from benchmarks.servers.stack import Stack
from tests.plugin import ROOT

SOURCE = Path(__file__).with_name("synced.c")


@dataclass(frozen=True, kw_only=True)
class Powered:
    """A Redis, and what is known of its disk."""

    server: Server
    data: Path

    @property
    def url(self) -> str:
        """Where it answers."""
        return redis.url(port=self.server.port, database=0)

    def unsynced_bytes(self) -> int:
        """How many bytes of its file a power cut would lose right now."""
        return sum(path.stat().st_size - size for path, size in self._synced().items())

    def cut_power(self) -> None:
        """End the server this instant; what it had not synced is gone."""
        self.server.kill()
        for path, size in self._synced().items():
            os.truncate(path, size)

    def _synced(self) -> dict[Path, int]:
        sizes = dict.fromkeys((self.data / "appendonlydir").glob("*.incr.aof"), 0)
        for line in (self.data / "synced").read_text().splitlines():
            size, _, path = line.partition(" ")
            if Path(path) in sizes:
                sizes[Path(path)] = int(size)
        return sizes


@contextmanager
def powered_redis(*, policy: str) -> Iterator[Powered]:
    """Run a Redis with this ``appendfsync`` for the length of the block."""
    account = server_account()
    data = data_directory(_home(account) / f"powered-{policy}", account=account, is_fresh=True)
    library = data / "synced.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE], check=True)
    program = _program(data, account=account, options=("--appendonly", "yes", "--appendfsync", policy))
    environment = {"LD_PRELOAD": str(library), "SYNCED": str(data / "synced")}
    server = Server(program=replace(program, environment=environment))
    try:
        server.start()
        yield Powered(server=server, data=data)
    finally:
        server.stop()


@contextmanager
def replica_of(port: int) -> Iterator[Server]:
    """Run a replica of the Redis at this port, which has all that the master has."""
    account = server_account()
    data = data_directory(_home(account) / "replica", account=account, is_fresh=True)
    options = ("--appendonly", "yes", "--appendfsync", "always", "--replicaof", f"{HOST} {port}")
    server = Server(program=_program(data, account=account, options=options))
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _home(account: Account) -> Path:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    return home_directory(directory=ROOT / "var" / "test" / f"{worker}-power", account=account)


def _program(data: Path, *, account: Account, options: tuple[str, ...]) -> Program:
    stack = Stack.from_environment(os.environ)
    return redis.program(data=data, account=account, stack=stack, options=(*redis.COMMON, *options))
