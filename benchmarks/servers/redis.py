"""How the private Redis servers are run."""

import socket
from functools import partial
from pathlib import Path

from benchmarks.servers.account import Account
from benchmarks.servers.process import HOST, Program, executable, free_port

COMMON = ("--bind", HOST, "--protected-mode", "yes", "--save", "", "--maxmemory-policy", "noeviction")
STOCK = (*COMMON, "--appendonly", "yes", "--appendfsync", "everysec")
CACHE = (*COMMON, "--appendonly", "no")


def program(*, data: Path, account: Account, options: tuple[str, ...]) -> Program:
    """Return the command for a Redis with its files in `data`."""
    port = free_port()
    return Program(
        # Debian's redis-tools has the server without its service: the same program under its checker's name.
        executable=executable("redis-server", "redis-check-rdb"),
        arguments=("redis-server", "--port", str(port), "--dir", str(data), *options),
        port=port,
        directory=data,
        log=data.with_suffix(".log"),
        account=account,
        is_ready=partial(_is_ready, port=port),
    )


def url(*, port: int, database: int) -> str:
    """Return the URL of one of the server's databases."""
    return f"redis://{HOST}:{port}/{database}"


def _is_ready(*, port: int) -> bool:
    """Tell whether it answers PING; while Redis loads its file it answers with an error."""
    try:
        with socket.create_connection((HOST, port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False
