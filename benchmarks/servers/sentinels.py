"""A private Redis with a replica and three Sentinels, on free ports of this machine."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from redis import Redis

from benchmarks.servers import redis
from benchmarks.servers.account import Account, server_account
from benchmarks.servers.directory import data_directory, home_directory, locked, write_private
from benchmarks.servers.process import HOST, Program, Server
from benchmarks.servers.stack import Stack

SERVICE = "stock"
SENTINELS, QUORUM = 3, 2
# How soon a dead master is noticed, in ms; production has 5,000 or more.
DOWN_AFTER = 1_000


class RedisWithSentinels:
    """Two servers, one the other's replica, and the Sentinels that say which is the master."""

    def __init__(self, *, servers: list[Server], sentinels: list[Server]) -> None:
        self.servers, self.sentinels = servers, sentinels

    @property
    def url(self) -> str:
        """What STOCK_REDIS_URL is to be."""
        addresses = ",".join(f"{HOST}:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{addresses}/{SERVICE}/0"

    def client(self, server: Server) -> Redis:
        """Return a client of a server or Sentinel."""
        return Redis(host=HOST, port=server.port, protocol=2, socket_timeout=5)

    def master(self) -> Server:
        """Return the master that the Sentinels name."""
        with self.client(self.sentinels[0]) as client:
            _, port = client.execute_command("SENTINEL GET-MASTER-ADDR-BY-NAME", SERVICE)
        return next(server for server in self.servers if server.port == int(port))

    def is_ready(self) -> bool:
        """Tell whether each Sentinel knows the replica and the other Sentinels."""
        for sentinel in self.sentinels:
            with self.client(sentinel) as client:
                told = client.info("sentinel")["master0"]
            if (told["slaves"], told["sentinels"], told["status"]) != (1, SENTINELS, "ok"):
                return False
        return True


@contextmanager
def redis_with_sentinels(*, directory: Path) -> Iterator[RedisWithSentinels]:
    """Run them with their data under a directory, emptied first, and end them afterwards."""
    with ExitStack() as running:
        running.enter_context(locked(directory.absolute()))
        account = server_account()
        home = home_directory(directory=directory.absolute(), account=account)
        servers = [_started(running, _server(home / f"server-{n}", account=account)) for n in range(2)]
        with Redis(host=HOST, port=servers[1].port, protocol=2) as replica:
            replica.replicaof(HOST, servers[0].port)
        names = [f"sentinel-{number}" for number in range(SENTINELS)]
        sentinels = [_started(running, _sentinel(home / name, account=account, port=servers[0].port)) for name in names]
        yield RedisWithSentinels(servers=servers, sentinels=sentinels)


def _started(running: ExitStack, program: Program) -> Server:
    server = Server(program=program)
    running.callback(server.kill)
    server.start()
    return server


def _server(path: Path, *, account: Account) -> Program:
    data = data_directory(path, account=account, is_fresh=True)
    options = (*redis.STOCK, "--repl-diskless-sync-delay", "0")
    return redis.program(data=data, account=account, stack=Stack(), options=options)


def _sentinel(path: Path, *, account: Account, port: int) -> Program:
    data = data_directory(path, account=account, is_fresh=True)
    # A Sentinel writes down in its own file what it learns.
    lines = (
        f"sentinel monitor {SERVICE} {HOST} {port} {QUORUM}",
        f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER}",
        f"sentinel failover-timeout {SERVICE} 5000",
    )
    write_private(data / "sentinel.conf", "\n".join(lines) + "\n", account=account)
    return redis.sentinel_program(data=data, account=account, stack=Stack())
