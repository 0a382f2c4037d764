"""Script calls of an event loop: on one connection per server, sent together and answered in their order (pipelining).

A thread that waits for its reply costs two system calls and two hand-overs of the interpreter for each purchase, and
Redis as many. Here whatever is asked within one turn of the loop leaves in one write, and the replies come back in one
piece. Each is a script call of its own all the same, with a verdict of its own.

Only a script's own reply counts here. An error in its place (no such script, another node's slot, a replica) is left
to ``Script``, in a thread: it knows what to do, and every script bears being called again.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast
from weakref import WeakKeyDictionary

from hiredis import HiredisError, Reader, pack_command
from redis.exceptions import RedisError

from seckill.errors import GateUnavailable
from seckill.gate.connection import Script, new_connection
from seckill.gate.nodes import connected_to_node, place_of

Argument = str | int | bytes

# What the reader says when a reply is not complete yet; False is a reply.
NOTHING_YET = object()


class Pipeline(asyncio.Protocol):
    """A connection that redis-py has made and shaken hands on, for any number of calls under way.

    When it is lost, or gives no reply for as long as a connection may take, the outcome of all of them is unknown.
    """

    def __init__(self, connection: Any) -> None:
        self.run_id: str = connection.run_id
        # redis-py's own end of it, which would close the socket if it were let go.
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._reader = Reader(notEnoughData=NOTHING_YET)
        self._unsent: list[bytes] = []
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._heard_at = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self.is_lost = False

    def call(self, command: bytes) -> "asyncio.Future[Any]":
        """Send a packed command with this turn's others; the future holds whatever Redis replies.

        Raises ``GateUnavailable`` where the connection was lost before: nobody would ever answer.
        """
        if self.is_lost:
            raise GateUnavailable("the connection was lost before anything was sent")
        future: asyncio.Future[Any] = self._loop.create_future()
        if not self._unsent:
            self._loop.call_soon(self._send)
        self._unsent.append(command)
        self._waiting.append(future)
        if self._watch is None:
            self._heard_at = self._loop.time()
            self._look_later()
        return future

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what the loop writes to."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Give each reply to the call it answers."""
        self._heard_at = self._loop.time()
        try:
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not NOTHING_YET:
                future = self._waiting.popleft()
                # Whoever asked may have gone.
                if not future.done():
                    future.set_result(reply)
        except (HiredisError, IndexError):
            # What comes now belongs to nobody, so nothing that follows can be trusted.
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Tell all who wait that they will not be answered."""
        self.is_lost = True
        if self._watch is not None:
            self._watch.cancel()
        for future in self._waiting:
            if not future.done():
                future.set_exception(GateUnavailable(f"the connection was lost: {error}"))
        self._waiting.clear()
        with suppress(RedisError, OSError):
            self._connection.disconnect()

    def _send(self) -> None:
        commands, self._unsent = self._unsent, []
        if not self.is_lost:
            self._transport.write(b"".join(commands))

    def _look_later(self) -> None:
        self._watch = self._loop.call_later(self._connection.socket_timeout / 4, self._look)

    def _look(self) -> None:
        """Give up on a server that has said nothing for too long."""
        if not self._waiting:
            self._watch = None
        elif self._loop.time() - self._heard_at >= self._connection.socket_timeout:
            self._transport.abort()
        else:
            self._look_later()


Opening = asyncio.Task[Pipeline | None]
# Of each loop the pipelines by server, or the attempts to get them: whoever comes meanwhile waits for the same.
_pipelines: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Opening]] = WeakKeyDictionary()


async def acall(script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Any:
    """Run a script as ``script(keys, *args)`` does, without holding a thread meanwhile.

    Raises ``GateUnavailable``; the outcome may be unknown then.
    """
    place = place_of(keys[0])
    pipeline = None
    if place is not None:
        opening = _opening(place, keys[0])
        pipeline = opening.result() if opening.done() else await asyncio.shield(opening)
    if pipeline is not None:
        command: Any = ("EVALSHA", script.sha, len(keys), *keys, pipeline.run_id, *args)
        reply = await pipeline.call(pack_command(command))
        if type(reply) is list:
            return reply
    # In the loop's own threads: those of ``in_thread`` may all be waiting for MySQL.
    return await asyncio.to_thread(script, keys, *args)


def _opening(place: str, key: str) -> Opening:
    loop = asyncio.get_running_loop()
    openings = _pipelines.get(loop)
    if openings is None:
        openings = _pipelines[loop] = {}
    opening = openings.get(place)
    if opening is None or (opening.done() and _is_useless(opening)):
        opening = openings[place] = loop.create_task(_open(place, key))
    return opening


def _is_useless(opening: Opening) -> bool:
    if opening.cancelled() or opening.exception() is not None:
        return True
    pipeline = opening.result()
    return pipeline is not None and pipeline.is_lost


async def _open(place: str, key: str) -> Pipeline | None:
    """Have redis-py make a connection, and take its socket over; None where that cannot be done, as with TLS."""
    connection = await asyncio.get_running_loop().run_in_executor(None, _connected, place, key)
    sock = connection._sock  # noqa: SLF001  redis-py shows it to nobody
    if type(sock) is not socket.socket:
        connection.disconnect()
        return None
    sock.settimeout(0)
    loop = asyncio.get_running_loop()
    create = loop.create_unix_connection if sock.family == socket.AF_UNIX else loop.create_connection
    try:
        _, pipeline = await create(partial(Pipeline, connection), sock=sock)
    except OSError as error:
        raise GateUnavailable(f"no connection: {error}") from error
    return pipeline


def _connected(place: str, key: str) -> Any:
    """Return a connected connection of the pool's making. Raises ``GateUnavailable``."""
    try:
        if place:
            return connected_to_node(key)
        connection = new_connection()
        connection.connect()
    except (RedisError, OSError) as error:
        raise GateUnavailable(f"no connection: {error}") from error
    return connection
