"""Scripts on a Redis Cluster: each thread keeps one connection per node, and a redirected script is sent again.

A node that answers MOVED, ASK, TRYAGAIN or CLUSTERDOWN has not run the script, and neither has one that could not be
reached: those are tried again for a moment. A reply that was lost is unknown, here as on a single server, and nothing
is sent again. Whatever the reason, a slot that is not served is "unavailable", never "sold out".
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol

from django.conf import settings
from django_redis import get_redis_connection
from hiredis import pack_command
from redis.cluster import ClusterNode
from redis.crc import key_slot
from redis.exceptions import AskError, ClusterDownError, MovedError, NoScriptError, RedisError, TryAgainError

from seckill.errors import GateUnavailable
from seckill.gate.cluster import ClusterConnectionFactory, NodeAway, StockCluster
from seckill.gate.keys import BucketRef

# How long a buyer's thread goes after a slot that moves; then it is his client's turn.
TRY_SECONDS = 0.2
PAUSE_SECONDS = 0.01
# As for a single server, see connection.py.
IDLE_SECONDS = 0.2

ASKING = pack_command(("ASKING",))


class Text(Protocol):
    """A script's text and its digest."""

    text: str
    sha: str


class _Own(threading.local):
    """This thread's connections by node, each with the time of its last use."""

    def __init__(self) -> None:
        self.by_node: dict[str, list[Any]] = {}
        self.last: Any = None


_own = _Own()


def forget_node_connections() -> None:
    """Let this thread connect anew to every node."""
    _own.by_node, _own.last = {}, None


def last_connection() -> Any:
    """Return the connection that this thread's last script went out on, or None."""
    return _own.last


@lru_cache(maxsize=65_536)
def slot_of(key: str) -> int:
    """Return the cluster slot of a key."""
    return key_slot(key.encode())


def run_on_node(cluster: StockCluster, script: Text, keys: Sequence[str], args: Sequence[str | int | bytes]) -> Any:
    """Run a script on the node that has its keys. Raises ``RedisError``, also where the slot is not served in time."""
    slot, ends = slot_of(keys[0]), 0.0
    asked: ClusterNode | None = None
    reason: RedisError
    while True:
        try:
            node = asked or cluster.node_of(slot)
            return _evaluate(_connection(cluster, node), script, keys, args, is_asked=asked is not None)
        except MovedError as error:
            asked, reason = None, error
            cluster.follow(error, told_by=node)
        except AskError as error:
            asked, reason = cluster.node_at(error.host or node.host, error.port), error
        except (TryAgainError, ClusterDownError, NodeAway) as error:
            asked, reason = None, error
            cluster.look_again()
        now = time.monotonic()
        ends = ends or now + TRY_SECONDS
        if now >= ends:
            raise reason
        if not isinstance(reason, AskError):
            time.sleep(PAUSE_SECONDS)


def _evaluate(
    connection: Any, script: Text, keys: Sequence[str], args: Sequence[str | int | bytes], *, is_asked: bool
) -> Any:
    tail = (len(keys), *keys, connection.run_id, *args)
    exchange = _exchange_asking if is_asked else _exchange
    try:
        try:
            return exchange(connection, ("EVALSHA", script.sha, *tail))
        except NoScriptError:
            return exchange(connection, ("EVAL", script.text, *tail))
    except (AskError, TryAgainError, ClusterDownError):
        raise  # A whole reply: the connection is at the beginning of the next one.
    except BaseException:
        connection.disconnect()
        raise


def _exchange(connection: Any, command: tuple[Any, ...]) -> Any:
    connection.send_packed_command((pack_command(command),), check_health=False)
    return connection.read_response()


def _exchange_asking(connection: Any, command: tuple[Any, ...]) -> Any:
    """Send one command to the node a slot moves to, which takes it only right behind ASKING."""
    connection.send_packed_command((ASKING + pack_command(command),), check_health=False)
    connection.read_response()
    return connection.read_response()


def _connection(cluster: StockCluster, node: ClusterNode) -> Any:
    """Return this thread's connection to a node, connected. Raises ``NodeAway``: nothing was sent on it yet."""
    own, now = _own.by_node.get(node.name), time.monotonic()
    if own is None:
        # Made past the pool, which would count it for good, also when this thread has ended.
        pool = cluster.client_of(node).connection_pool
        own = _own.by_node[node.name] = [pool.connection_class(**pool.connection_kwargs), now]
    connection, used_at = own
    _own.last = connection
    if now - used_at > IDLE_SECONDS and connection.is_connected and _is_closed(connection):
        connection.disconnect()
    if not connection.is_connected:
        _connect(cluster, node, connection)
    own[1] = now
    return connection


def place_of(key: str) -> str | None:
    """Name the server that has a key: "" where there is one, None where a thread has to find out."""
    if "NODES" not in settings.CACHES["stock"]["OPTIONS"]:
        return ""
    cluster = ClusterConnectionFactory.made(settings.CACHES["stock"])
    with suppress(NodeAway):
        return None if cluster is None else cluster.node_of(slot_of(key)).name
    return None


def connected_to_node(key: str) -> Any:
    """Return a new connection to the node that has a key, connected. Raises ``RedisError``."""
    cluster: StockCluster = get_redis_connection("stock")
    node = cluster.node_of(slot_of(key))
    pool = cluster.client_of(node).connection_pool
    connection = pool.connection_class(**pool.connection_kwargs)
    try:
        _connect(cluster, node, connection)
    except NodeAway:
        cluster.look_again()
        raise
    return connection


def _connect(cluster: StockCluster, node: ClusterNode, connection: Any) -> None:
    cluster.require_not_away(node.name)
    try:
        connection.connect()
    except RedisError as error:
        cluster.note_away(node.name)
        raise NodeAway(str(error)) from error
    cluster.note_back(node.name)


def _is_closed(connection: Any) -> bool:
    try:
        return bool(connection.can_read())
    except (RedisError, OSError):
        return True


@dataclass(frozen=True, kw_only=True)
class Replies:
    """What one bucket's keys were found to be, errors among them, and its node's time in milliseconds since 1970."""

    now_ms: int
    parts: Sequence[Any]


def read_by_node(*, buckets: Sequence[BucketRef], ask: Callable[[Any, BucketRef], None]) -> dict[BucketRef, Replies]:
    """Let ``ask`` put a bucket's reads into its node's pipeline, for many buckets in one round trip per node.

    Buckets whose node does not answer are missing. Raises ``GateUnavailable`` when no node does.
    """
    found: dict[BucketRef, Replies] = {}
    error: RedisError | None = None
    has_answer = False
    for client, group in _groups(buckets):
        try:
            found |= _read(client, group, ask)
            has_answer = True
        except RedisError as its_error:
            error = its_error
            _look_again()
    if error is not None and not has_answer:
        raise GateUnavailable(str(error)) from error
    return found


def _read(client: Any, buckets: Sequence[BucketRef], ask: Callable[[Any, BucketRef], None]) -> dict[BucketRef, Replies]:
    with client.pipeline(transaction=False) as pipeline:
        pipeline.time()
        marks = [1]
        for bucket in buckets:
            ask(pipeline, bucket)
            marks.append(len(pipeline))
        replies = pipeline.execute(raise_on_error=False)
    if isinstance(replies[0], RedisError):
        raise replies[0]
    if any(isinstance(reply, MovedError) for reply in replies):
        _look_again()
    seconds, microseconds = replies[0]
    now_ms = int(seconds) * 1000 + int(microseconds) // 1000
    return {
        bucket: Replies(now_ms=now_ms, parts=replies[first:last])
        for bucket, (first, last) in zip(buckets, pairwise(marks), strict=True)
    }


def _groups(buckets: Sequence[BucketRef]) -> list[tuple[Any, list[BucketRef]]]:
    """Return clients of nodes with the buckets of each; a single server has them all."""
    try:
        client = get_redis_connection("stock")
    except RedisError as error:
        raise GateUnavailable(str(error)) from error
    if not isinstance(client, StockCluster):
        return [(client, list(buckets))]
    groups: dict[str, tuple[Any, list[BucketRef]]] = {}
    for bucket in buckets:
        with suppress(NodeAway):
            node = client.node_of(slot_of(bucket.keys[0]))
            groups.setdefault(node.name, (client.client_of(node), []))[1].append(bucket)
    if not groups:
        _look_again()
        raise GateUnavailable("no node serves any of the buckets")
    return list(groups.values())


def _look_again() -> None:
    with suppress(RedisError):
        client = get_redis_connection("stock")
        if isinstance(client, StockCluster):
            client.look_again()


def masters() -> Iterator[tuple[str, Any]]:
    """Return the name and a plain client of every server that has stock. Raises ``RedisError``."""
    client = get_redis_connection("stock")
    if not isinstance(client, StockCluster):
        yield "", client
        return
    client.look_again()
    for node in client.masters():
        yield node.name, client.client_of(node)


def a_bucket_of_each_node(pool_id: int) -> list[BucketRef]:
    """Return one imaginary bucket of a pool for each node, so that each can be tried. Raises ``RedisError``."""
    client = get_redis_connection("stock")
    if not isinstance(client, StockCluster):
        return [BucketRef(pool_id=pool_id, number=0)]
    wanted = {node.name for node in client.masters()}
    found = []
    for number in range(BUCKETS_TRIED_MAX):
        if not wanted:
            break
        bucket = BucketRef(pool_id=pool_id, number=number)
        with suppress(NodeAway):
            name = client.node_of(slot_of(bucket.keys[0])).name
            if name in wanted:
                wanted.remove(name)
                found.append(bucket)
    return found


# A hundred nodes with even shares are all met by then; one with few slots may be missed.
BUCKETS_TRIED_MAX = 1_000
