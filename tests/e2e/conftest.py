"""The whole shop as processes, on the test's own servers and database; started once for the tests here."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from pytest_django.plugin import DjangoDbBlocker

from benchmarks.servers import PrivateServers
from benchmarks.shop import Shop as ShopProcesses

METRICS_TOKEN = "metrics-of-the-running-shop-0123456789"
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def test_environment(servers: PrivateServers, django_db_setup: None) -> dict[str, str]:
    """The environment of a process that shall use the test database."""
    base, _, _ = servers.environment()["DATABASE_URL"].rpartition("/")
    return {
        **servers.environment(),
        "SANDBOX": "1",
        "DATABASE_URL": f"{base}/{connection.settings_dict['NAME']}",
        "METRICS_TOKEN": METRICS_TOKEN,
        # Workers tell of each task, so that tests see which request it belongs to.
        "LOG_LEVELS": "celery.beat=INFO,celery.app.trace=INFO",
    }


@pytest.fixture(scope="module")
def running(test_environment: dict[str, str], django_db_blocker: DjangoDbBlocker) -> Iterator[ShopProcesses]:
    """Granian, a worker and beat; gone before other tests, which want nobody to settle behind their backs."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    with ShopProcesses(directory=ROOT / "var" / "test" / f"shop-{worker}", environment=test_environment) as shop:
        shop.start()
        yield shop


@pytest.fixture
def all_running(running: ShopProcesses) -> None:
    """Start again what an earlier test has ended."""
    running.start()
