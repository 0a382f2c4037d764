"""What every connection to the stock Redis does first; imports nothing of ours, so that settings may name it."""

import socket
import struct
from typing import Any

from redis.exceptions import ResponseError


def learn_run_id(connection: Any) -> None:
    """Shake hands as usual, let the kernel keep the time, and remember the server's run id as ``run_id``.

    The scripts compare it with the gate's. A restarted server has another one and breaks its
    connections, so the first call after a restart is refused without a round trip of its own.
    """
    connection.on_connect()
    ask_run_id(connection)


def ask_run_id(connection: Any) -> None:
    """Do the same after the usual handshake, as a cluster's client wants it."""
    connection.send_command("INFO", "server")
    text = connection.read_response()
    lines = (text.decode() if isinstance(text, bytes) else text).splitlines()
    run_ids = [line.partition(":")[2] for line in lines if line.startswith("run_id:")]
    if not run_ids:
        raise ResponseError("the server does not tell its run id, so a restart could not be noticed")
    connection.run_id = run_ids[0]
    _let_the_kernel_keep_time(connection)


def _let_the_kernel_keep_time(connection: Any) -> None:
    """Give the socket its time limit as an option of the kernel's, which is as strict and costs nothing.

    For a limit of its own Python asks ``poll`` before each read and write: two system calls more for each script,
    and at each of them the interpreter goes to another thread. TLS sockets keep Python's, they cannot do without.
    """
    sock, seconds = connection._sock, connection.socket_timeout  # noqa: SLF001  redis-py shows it to nobody
    if type(sock) is not socket.socket or not seconds:
        return
    limit = struct.pack("ll", int(seconds), int(seconds % 1 * 1_000_000))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    sock.settimeout(None)
