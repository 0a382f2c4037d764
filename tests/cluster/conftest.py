"""What the tests of a cluster have in common: they are left to the whole suite, and begin with a cluster at peace."""

from pathlib import Path

import pytest

from benchmarks.servers.redis_cluster import RedisCluster
from tests.plugin import running_servers
from tests.support.clustered import ClusteredServers


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run them only with ``--cluster``."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def cluster() -> RedisCluster:
    """The cluster of this test process."""
    servers = running_servers()
    assert isinstance(servers, ClusteredServers)
    assert servers.cluster is not None
    return servers.cluster
