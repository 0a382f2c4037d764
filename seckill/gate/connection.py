"""Script calls on django-redis's raw connections: EVALSHA, and EVAL only after NOSCRIPT.

A call names the run id of the very connection it goes out on. Nothing is repeated: after a lost
reply the outcome is unknown, and whoever asked looks it up by order number.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django_redis import get_redis_connection
from redis.exceptions import NoScriptError, RedisError

from seckill.errors import GateUnavailable

LUA = Path(__file__).parent / "lua"


class Script:
    """One Lua file with the prelude in front of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = (LUA / "prelude.lua").read_text() + (LUA / f"{name}.lua").read_text()
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
        pool = raw_client().connection_pool
        connection = pool.get_connection()
        try:
            tail = (len(keys), *keys, connection.run_id, *args)
            connection.send_command("EVALSHA", self.sha, *tail)
            try:
                return connection.read_response()
            except NoScriptError:
                connection.send_command("EVAL", self.text, *tail)
                return connection.read_response()
        except BaseException:
            # A reply that was not read must never be taken for the next caller's.
            connection.disconnect()
            raise
        finally:
            pool.release(connection)


def raw_client() -> Any:
    """The redis-py client of the ``stock`` alias; the cache API's prefix and pickling never touch these keys."""
    return get_redis_connection("stock")
