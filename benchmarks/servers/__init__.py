"""Private MariaDB and Redis servers for the demo, the tests and the benchmarks: the one way to start and stop them."""

from benchmarks.servers.private import PrivateServers
from benchmarks.servers.process import Server, ServersError

__all__ = ["PrivateServers", "Server", "ServersError"]
