"""The one server that has a bucket, be it alone or a node of a cluster."""

from typing import Any

from redis.cluster import ClusterNode

from seckill.gate.cluster import StockCluster
from seckill.gate.connection import raw_client
from seckill.gate.keys import BucketRef
from seckill.gate.nodes import masters, slot_of


def server_of(bucket: BucketRef) -> Any:
    """Return a plain client of the server that has a bucket, as this process knows it."""
    client = raw_client()
    return client.client_of(node_of(bucket)) if isinstance(client, StockCluster) else client


def node_of(bucket: BucketRef) -> ClusterNode:
    """Return a cluster's node that has a bucket, as this process knows it."""
    cluster = raw_client()
    assert isinstance(cluster, StockCluster)
    return cluster.node_of(slot_of(bucket.keys[0]))


def key_count() -> int:
    """Return how many keys all servers of the stock have."""
    return sum(client.dbsize() for _, client in masters())


def empty_stock() -> None:
    """Take everything out of every server of the stock."""
    for _, client in masters():
        client.flushall()


def flush_scripts() -> None:
    """Let every server of the stock forget all scripts."""
    for _, client in masters():
        client.script_flush()
