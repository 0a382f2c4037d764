"""Starts each test process's private servers before Django reads its settings; loaded by ``-p tests.plugin``."""

import os
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from benchmarks.servers import PrivateServers
from tests.support.clustered import ClusteredServers

ROOT = Path(__file__).resolve().parent.parent

# What the settings want to see in a process that runs no test itself: the controller of pytest-xdist.
NOWHERE = {
    "DATABASE_URL": "mysql://nowhere/none",
    "STOCK_REDIS_URL": "redis://nowhere",
    "CACHE_REDIS_URL": "redis://nowhere",
    "SECRET_KEY": "unused",
}

_servers: PrivateServers | None = None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the same tests run on a Redis Cluster."""
    parser.addoption("--cluster", action="store_true", help="the stock is in a Redis Cluster of three and three")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is about one server, or about a cluster, where there is the other."""
    mark = "one_server" if config.getoption("--cluster") else "cluster"
    left_out = [item for item in items if item.get_closest_marker(mark)]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, object, object]:
    """Set the environment before pytest-django, which looks at the settings in this very hook."""
    global _servers  # noqa: PLW0603  one per process, for the whole run
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if not worker and getattr(early_config.known_args_namespace, "numprocesses", None):
        os.environ.update(NOWHERE, SANDBOX="1")
    else:
        kind = ClusteredServers if early_config.known_args_namespace.cluster else PrivateServers
        _servers = kind(directory=ROOT / "var" / "test" / (worker or "main"), is_fresh=True, environ={})
        _servers.__enter__()
        counts = ROOT / "var" / "test" / (worker or "main") / "counts"
        shutil.rmtree(counts, ignore_errors=True)
        os.environ.update(_servers.environment(), SANDBOX="1", PROMETHEUS_MULTIPROC_DIR=str(counts))
    return (yield)


def pytest_unconfigure() -> None:
    """Stop the servers."""
    if _servers is not None:
        _servers.__exit__(None, None, None)


def running_servers() -> PrivateServers:
    """Return the servers of this process."""
    assert _servers is not None
    return _servers
