"""Script calls on django-redis's connections: EVALSHA, and EVAL only after NOSCRIPT.

Each thread keeps one connection of the pool's making, since taking one out of the pool and giving it back costs
more than the script. A call names the run id of the very connection it goes out on. Nothing is repeated: after a
lost reply the outcome is unknown, and whoever asked looks it up by order number.
"""

import hashlib
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django_redis import get_redis_connection
from hiredis import pack_command
from redis.exceptions import NoScriptError, RedisError

from seckill.errors import GateUnavailable
from seckill.gate.cluster import StockCluster
from seckill.gate.nodes import forget_node_connections, last_connection, run_on_node

LUA = Path(__file__).parent / "lua"
# A connection that was quiet for so long may have been closed by the server or by whatever stands between.
IDLE_SECONDS = 0.2

# Around a script's text: its reply gets one number more, the microseconds the server took for it. From 7.2 on TIME
# stands still while a script runs; servers since then lend scripts their processor clock. With neither it is 0.
TIMED = """
local clock = rawget(_G, 'os')
local function microseconds()
  if clock then return math.floor(clock.clock() * 1000000) end
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local began = microseconds()
local function run()
%s
end
local reply = run()
reply[#reply + 1] = microseconds() - began
return reply
"""


class Script:
    """One Lua file with the prelude in front of it; ``around`` may put something about it."""

    def __init__(self, name: str, *, around: str = "%s") -> None:
        self.name = name
        self.text = (LUA / "prelude.lua").read_text() + around.replace("%s", (LUA / f"{name}.lua").read_text())
        self.sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    def __call__(self, keys: Sequence[str], *args: str | int | bytes) -> Any:
        """Run on ``keys`` with the connection's run id as the first argument.

        Raises ``GateUnavailable`` for whatever is not an answer of the script.
        """
        try:
            return self._call(keys, args)
        except RedisError as error:
            raise GateUnavailable(f"{self.name}: {error}") from error

    def _call(self, keys: Sequence[str], args: Sequence[str | int | bytes]) -> Any:
        connection = connection_of_this_thread()
        if connection is None:
            return run_on_node(_own.cluster, self, keys, args)
        try:
            tail = (len(keys), *keys, connection.run_id, *args)
            try:
                return _exchange(connection, ("EVALSHA", self.sha, *tail))
            except NoScriptError:
                return _exchange(connection, ("EVAL", self.text, *tail))
        except BaseException:
            # A reply that was not read must never be taken for the next caller's.
            connection.disconnect()
            raise


def _exchange(connection: Any, command: tuple[Any, ...]) -> Any:
    """Send one command and read its reply: what ``send_command`` does, without its way through Python for each part."""
    connection.send_packed_command((pack_command(command),), check_health=False)
    return connection.read_response()


def on_the_same_connection(*command: str | int) -> Any:
    """Send a command on the connection that this thread's last script went out on, and on no other.

    Raises ``GateUnavailable`` when it is lost, or for whatever is not an answer.
    """
    connection = _own.connection if _own.cluster is None else last_connection()
    if connection is None or not connection.is_connected:
        raise GateUnavailable(f"{command[0]}: the connection is lost")
    try:
        try:
            return _exchange(connection, command)
        except BaseException:
            connection.disconnect()
            raise
    except RedisError as error:
        raise GateUnavailable(f"{command[0]}: {error}") from error


class _Own(threading.local):
    """This thread's connection, once it has one, and when it was last used."""

    connection: Any = None
    # In place of the connection where there are many servers.
    cluster: Any = None
    used_at: float = 0.0


_own = _Own()


def connection_of_this_thread() -> Any:
    """Return this thread's connection, connected; one that was idle is first looked at, with nothing sent on it yet.

    None for a cluster, where a connection is one node's, see ``nodes``.
    """
    connection, now = _own.connection, time.monotonic()
    if connection is None:
        if _own.cluster is not None:
            return None
        client = raw_client()
        if isinstance(client, StockCluster):
            _own.cluster = client
            return None
        connection = _own.connection = new_connection()
    elif now - _own.used_at > IDLE_SECONDS and connection.is_connected and _is_closed(connection):
        connection.disconnect()
    if not connection.is_connected:
        connection.connect()
    _own.used_at = now
    return connection


def new_connection() -> Any:
    """Return a connection of the single server's pool's making that is nobody's yet, and not connected."""
    return raw_client().connection_pool.make_connection()


def _is_closed(connection: Any) -> bool:
    """Tell whether there is anything to read: an end, or what nobody has asked for."""
    try:
        return bool(connection.can_read())
    except (RedisError, OSError):
        return True


def forget_connections() -> None:
    """Let this thread connect anew: to another server, or, in a forked child, not over its parent's socket."""
    _own.connection = _own.cluster = None
    forget_node_connections()


os.register_at_fork(after_in_child=forget_connections)


def raw_client() -> Any:
    """The redis-py client of the ``stock`` alias, for one server or a cluster.

    The cache API's prefix and pickling never touch these keys.
    """
    return get_redis_connection("stock")
