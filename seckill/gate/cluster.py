"""Redis Cluster behind django-redis: redis-py's client, its slot map and its nodes' pools, with nothing repeated.

What redis-py 8 does by itself, as its source says: MOVED, ASK and TRYAGAIN are followed, which is right, since the
command did not run; after a lost connection it asks for the slot map and sends the command again as often as its
``retry`` says, and a pipeline sends again whatever lost its reply however often that was forbidden. So ``retry`` is
none here, no write goes through a pipeline, and scripts go their own way, see ``nodes``.
"""

import logging
import os
import threading
import time
from typing import Any, Self

from django_redis.pool import ConnectionFactory
from redis import Redis, RedisCluster
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MovedError, RedisClusterException, RedisError
from redis.retry import Retry

logger = logging.getLogger(__name__)

# The slot map is asked for at most so often by one process, however many of its threads run into an old one.
LOOK_SECONDS = 0.1
# A node that could not be reached is not tried again for so long, so that its buyers hold up nobody else's threads.
AWAY_SECONDS = 0.5


class NodeAway(RedisConnectionError):
    """Raised when nothing was sent: no node serves the slot, or the one that does cannot be reached."""


class StockCluster(RedisCluster):
    """The client that ``get_redis_connection("stock")`` gives for a cluster; all its errors are ``RedisError``."""

    def __init__(self, **options: Any) -> None:
        self._looked_at = 0.0
        self._looking = threading.Lock()
        self._away_until: dict[str, float] = {}
        super().__init__(require_full_coverage=False, retry=Retry(NoBackoff(), 0), **options)

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Run a command on the node of its key; errors that the library keeps out of ``RedisError`` become one."""
        try:
            return super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
        except RedisClusterException as error:
            raise NodeAway(str(error)) from error
        except AttributeError as error:
            # A slot on its way to a node that has none yet: the library does not know where ASK leads.
            self.look_again()
            raise NodeAway(f"the slot moves to an unknown node: {error}") from error

    def _split_command_across_slots(self, command: str, *keys: Any) -> int:
        """Do UNLINK, DEL and EXISTS, each as often as it likes, with the same errors."""
        try:
            return super()._split_command_across_slots(command, *keys)
        except RedisClusterException as error:
            raise NodeAway(str(error)) from error

    def node_of(self, slot: int) -> ClusterNode:
        """Return the master of a slot by the map as it is known. Raises ``NodeAway`` where there is none."""
        nodes = self.nodes_manager.slots_cache.get(slot)
        if not nodes:
            raise NodeAway(f"no node serves slot {slot}")
        return nodes[0]

    def node_at(self, host: str, port: int) -> ClusterNode:
        """Return the node of an address that a redirection names, known before or not."""
        found: ClusterNode | None = self.get_node(host=host, port=port)  # type: ignore[no-untyped-call]
        return found or ClusterNode(host, port)  # type: ignore[no-untyped-call]

    def client_of(self, node: ClusterNode) -> Redis:
        """Return a plain client of one node."""
        client: Redis = self.get_redis_connection(node)
        return client

    def masters(self) -> list[ClusterNode]:
        """Return the masters that serve slots."""
        serving = {nodes[0].name: nodes[0] for nodes in list(self.nodes_manager.slots_cache.values()) if nodes}
        return [serving[name] for name in sorted(serving)]

    def follow(self, moved: MovedError, *, told_by: ClusterNode) -> None:
        """Note where a slot is, and look where all the others are. An address without a host is the teller's."""
        moved.host = moved.host or told_by.host
        self.look_again()
        if self.nodes_manager.slots_cache.get(moved.slot_id):
            self.nodes_manager.move_slot(moved)

    def look_again(self) -> None:
        """Ask for the slot map, unless that was just done or another thread is at it; never raises."""
        if not self._looking.acquire(blocking=False):
            return
        try:
            if time.monotonic() - self._looked_at >= LOOK_SECONDS:
                self._look()
        finally:
            self._looking.release()

    def _look(self) -> None:
        """Ask; where nobody answers, or with a map without masters, the old one stays and the caller has his error."""
        try:
            self.nodes_manager.initialize()
        except (RedisError, RedisClusterException, IndexError) as error:
            logger.warning("the slot map cannot be had: %s", error)
        # Counted from the end of a look, and not from a call that did not look.
        self._looked_at = time.monotonic()

    def require_not_away(self, name: str) -> None:
        """Raise ``NodeAway`` where a node was tried a moment ago; else the caller tries, and others wait for him."""
        until = self._away_until.get(name)
        if until is None:
            return
        now = time.monotonic()
        if now < until:
            raise NodeAway(f"{name} was away a moment ago")
        self._away_until[name] = now + AWAY_SECONDS

    def note_away(self, name: str) -> None:
        """Remember that a node could not be reached."""
        self._away_until[name] = time.monotonic() + AWAY_SECONDS

    def note_back(self, name: str) -> None:
        """Forget it."""
        self._away_until.pop(name, None)

    def begin_in_child(self) -> None:
        """Take new locks: another thread of the parent may have held the old ones when it forked."""
        self._looking = threading.Lock()
        self.nodes_manager._lock = threading.RLock()  # noqa: SLF001  the library has no hook for it
        self.nodes_manager._initialization_lock = threading.RLock()  # noqa: SLF001


class ClusterConnectionFactory(ConnectionFactory):  # type: ignore[misc]
    """What ``CONNECTION_FACTORY`` names: one ``StockCluster`` per process, from LOCATION and the nodes in NODES."""

    _clusters: dict[str, StockCluster] = {}
    _failed: dict[str, tuple[float, str]] = {}
    _last: tuple[Any, StockCluster | None] = None, None
    _making = threading.Lock()

    def connect(self: Self, url: str) -> StockCluster:
        """Return the cluster, made at the first call. Raises ``NodeAway`` when no node of it answers."""
        key = _key(url, self.options)
        cluster = self._clusters.get(key)
        if cluster is not None:
            return cluster
        with self._making:
            if key not in self._clusters:
                self._clusters[key] = self._make(key, url)
            return self._clusters[key]

    @classmethod
    def made(cls, stock: dict[str, Any]) -> StockCluster | None:
        """Return the cluster of a CACHES entry where it is known already; nobody is asked."""
        if cls._last[0] is not stock:
            cluster = cls._clusters.get(_key(stock["LOCATION"], stock["OPTIONS"]))
            if cluster is None:
                return None
            ClusterConnectionFactory._last = stock, cluster
        return cls._last[1]

    def disconnect(self, connection: StockCluster) -> None:
        """Close what the nodes' pools hold."""
        connection.disconnect_connection_pools()  # type: ignore[no-untyped-call]

    def _make(self, key: str, url: str) -> StockCluster:
        failed_at, why = self._failed.get(key, (0.0, ""))
        if time.monotonic() - failed_at < AWAY_SECONDS:
            raise NodeAway(why)
        params = self.make_connection_params(url)
        others = self.options.get("NODES", ())
        nodes = [ClusterNode(host, port) for host, port in others]  # type: ignore[no-untyped-call]
        try:
            return StockCluster(startup_nodes=nodes, **params, **self.pool_cls_kwargs)
        except (RedisError, RedisClusterException, IndexError) as error:
            self._failed[key] = time.monotonic(), str(error)
            raise NodeAway(f"no node of the cluster answers: {error}") from error


def _key(url: str, options: dict[str, Any]) -> str:
    return f"{url} {options!r}"


def _begin_in_child() -> None:
    ClusterConnectionFactory._making = threading.Lock()  # noqa: SLF001
    for cluster in ClusterConnectionFactory._clusters.values():  # noqa: SLF001
        cluster.begin_in_child()


os.register_at_fork(after_in_child=_begin_in_child)
