"""The private servers with the stock in a Redis Cluster of three masters and three replicas."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self, cast

from benchmarks.servers import PrivateServers, Server
from benchmarks.servers.redis_cluster import RedisCluster, redis_cluster


class WholeCluster:
    """All nodes in the way of one server, for tests that stop or restart "the" stock Redis."""

    def __init__(self, cluster: RedisCluster) -> None:
        self._cluster = cluster

    def stop(self) -> None:
        """End every node."""
        for node in self._cluster.nodes:
            node.stop()

    def kill(self) -> None:
        """End every node as a power cut would."""
        for node in self._cluster.nodes:
            node.kill()

    def start(self) -> None:
        """Start every node, and wait until they serve all slots again."""
        for node in self._cluster.nodes:
            node.launch()
        for node in self._cluster.nodes:
            node.await_ready()
        self._cluster.await_whole()

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()


class ClusteredServers(PrivateServers):
    """A database, a Redis for cache and broker, and a cluster for the stock; the single stock Redis idles."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._clusters = ExitStack()
        self.cluster: RedisCluster | None = None
        self._place: Path = options["directory"]

    def __enter__(self) -> Self:
        super().__enter__()
        place = self._place.with_name(f"{self._place.name}-cluster")
        self.cluster = self._clusters.enter_context(redis_cluster(directory=place, masters=3, replicas_each=1))
        self._variables["STOCK_REDIS_URL"] = self.cluster.url
        return self

    def __exit__(self, *error: object) -> None:
        self._clusters.close()
        super().__exit__(*error)

    @property
    def stock_redis(self) -> Server:
        """All nodes as if they were one; the idle one while nothing else runs."""
        return cast("Server", WholeCluster(self.cluster)) if self.cluster else super().stock_redis
