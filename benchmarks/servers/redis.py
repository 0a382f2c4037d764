"""How the private Redis servers are run, or Valkey servers in their place."""

import socket
from functools import partial
from pathlib import Path

from benchmarks.servers.account import Account
from benchmarks.servers.process import HOST, Program, free_port
from benchmarks.servers.stack import Stack

COMMON = ("--bind", HOST, "--protected-mode", "yes", "--save", "", "--maxmemory-policy", "noeviction")
STOCK = (*COMMON, "--appendonly", "yes", "--appendfsync", "everysec")
CACHE = (*COMMON, "--appendonly", "no")


# Debian's redis-tools has the server without its service: the same program under its checker's name.
PROGRAMS = {"redis": ("redis-server", "redis-check-rdb"), "valkey": ("valkey-server", "valkey-check-rdb")}


def program(*, data: Path, account: Account, stack: Stack, options: tuple[str, ...]) -> Program:
    """Return the command for a Redis with its files in `data`."""
    port = free_port()
    command = stack.command(*PROGRAMS[stack.store])
    return Program(
        executable=command.executable,
        arguments=(*command.arguments, "--port", str(port), "--dir", str(data), *options),
        port=port,
        directory=data,
        log=data.with_suffix(".log"),
        account=account,
        is_ready=partial(_is_ready, port=port),
    )


def sentinel_program(*, data: Path, account: Account, stack: Stack) -> Program:
    """Return the command for a Sentinel that reads, and writes, sentinel.conf in `data`."""
    port = free_port()
    command = stack.command(*PROGRAMS[stack.store])
    options = ("--sentinel", "--bind", HOST, "--port", str(port), "--dir", str(data))
    return Program(
        executable=command.executable,
        arguments=(*command.arguments, str(data / "sentinel.conf"), *options),
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
