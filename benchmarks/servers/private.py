"""The three servers as one: started together under a directory, or those the environment names."""

import os
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Self

from benchmarks.servers import database, mariadb, mysql, redis
from benchmarks.servers.account import server_account
from benchmarks.servers.directory import data_directory, home_directory, kept_secrets, locked
from benchmarks.servers.process import HOST, Server, ServersError
from benchmarks.servers.stack import Stack

EXISTING_URLS = ("DATABASE_URL", "STOCK_REDIS_URL", "CACHE_REDIS_URL")


class PrivateServers:
    """A database, a Redis for stock and a Redis for cache and broker, for the length of a ``with`` block.

    Their data stays in `directory` for the next time, unless `is_fresh` wipes that of earlier runs first. As root they
    run as ``nobody``; when that user cannot reach `directory` it becomes a symlink to a new temporary directory.

    If `environ` (the process's own by default) names all of DATABASE_URL, STOCK_REDIS_URL and CACHE_REDIS_URL, those
    servers are used and none is started; an empty `environ` always gives private ones. Which kinds of servers these
    are, MariaDB and Redis unless it says otherwise, the process's environment decides: see ``Stack``.

    ServersError: only some of the three are named, the kinds are not known, another process holds the directory, a
    program is missing, a server does not start.
    """

    def __init__(self, *, directory: Path, is_fresh: bool = False, environ: Mapping[str, str] | None = None) -> None:
        self._directory = directory.absolute()
        self._is_fresh = is_fresh
        self._environ = os.environ if environ is None else environ
        self._stack = Stack.from_environment(os.environ)
        self._servers: dict[str, Server] = {}
        self._variables: dict[str, str] = {}
        self._running = ExitStack()

    def __enter__(self) -> Self:
        variables = _existing_servers(self._environ)
        if not variables:
            with ExitStack() as starting:  # Takes down what already runs when a later step fails.
                variables = self._start(starting)
                self._running = starting.pop_all()
        self._variables = {**variables, "ALLOWED_HOSTS": f"{HOST},localhost", "HTTPS": "0"}
        return self

    def __exit__(self, *_: object) -> None:
        self._running.close()
        self._servers.clear()

    @property
    def database(self) -> Server:
        """The private database server; ServersError when the environment names another."""
        return self._server(self._stack.database)

    @property
    def stock_redis(self) -> Server:
        """The private Redis that decides (append-only file); ServersError when the environment names another."""
        return self._server(f"stock-{self._stack.store}")

    @property
    def cache_redis(self) -> Server:
        """The private Redis for cache and sessions (database 0) and broker (1); ServersError like the others."""
        return self._server(f"cache-{self._stack.store}")

    def require_running(self) -> None:
        """Raise ServersError with the end of its log when a private server has ended by itself."""
        for server in self._servers.values():
            server.require_running()

    def environment(self) -> dict[str, str]:
        """Return the variables config.settings reads to use these servers over plain HTTP on this machine."""
        return dict(self._variables)

    def _start(self, starting: ExitStack) -> dict[str, str]:
        starting.enter_context(locked(self._directory))
        account = server_account()
        home = home_directory(directory=self._directory, account=account)
        kept = kept_secrets(home)
        stack = self._stack
        kind = {"mariadb": mariadb.program, "mysql": mysql.program}[stack.database]
        programs = {
            stack.database: partial(kind, password=kept.database_password),
            f"stock-{stack.store}": partial(redis.program, options=redis.STOCK),
            f"cache-{stack.store}": partial(redis.program, options=redis.CACHE),
        }
        for name, program in programs.items():
            data = data_directory(home / name, account=account, is_fresh=self._is_fresh)
            server = self._servers[name] = Server(program=program(data=data, account=account, stack=stack))
            starting.callback(server.stop)
            server.start()  # One by one: a port is taken before the next is chosen, and only the database takes time.
        return {
            "DATABASE_URL": database.url(port=self.database.port, password=kept.database_password),
            "STOCK_REDIS_URL": redis.url(port=self.stock_redis.port, database=0),
            "CACHE_REDIS_URL": redis.url(port=self.cache_redis.port, database=0),
            "BROKER_URL": redis.url(port=self.cache_redis.port, database=1),
            "SECRET_KEY": kept.secret_key,
        }

    def _server(self, name: str) -> Server:
        if name not in self._servers:
            raise ServersError(f"no private {name} runs here: not started, or the environment names another server")
        return self._servers[name]


def _existing_servers(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of servers that already run, or none; ServersError when only some URLs are named."""
    missing = [name for name in EXISTING_URLS if not environ.get(name)]
    if len(missing) == len(EXISTING_URLS):
        return {}
    if missing:
        raise ServersError(
            f"the environment names no {' and no '.join(missing)}: give all of {', '.join(EXISTING_URLS)}"
            " to use servers that run, or none of them to have private ones started"
        )
    named = {name: environ[name] for name in (*EXISTING_URLS, "BROKER_URL", "SECRET_KEY") if environ.get(name)}
    return {"SECRET_KEY": secrets.token_urlsafe(48), **named}
