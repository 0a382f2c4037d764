"""The contract of purchases and polls is tried at all doors: Django here, and served, with its lane and without."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.servers import PrivateServers
from tests.support.api import through
from tests.support.doors import Served, served_shop

LANES = {"served, fast lane": True, "served, FAST_LANE=0": False}


@pytest.fixture(scope="session")
def served_shops(
    servers: PrivateServers, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Served]]:
    """Two served shops on the test database, one with its fast lane."""
    directory: Path = tmp_path_factory.mktemp("served")
    with (
        served_shop(servers, lane=True, directory=directory) as fast,
        served_shop(servers, lane=False, directory=directory) as slow,
    ):
        yield {"served, fast lane": fast, "served, FAST_LANE=0": slow}


@pytest.fixture(params=["Django", *(pytest.param(name, marks=pytest.mark.slow) for name in LANES)])
def door(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let calls of nobody in particular go through one door after the other."""
    if request.param == "Django":
        yield
    else:
        with through(request.getfixturevalue("served_shops")[request.param]):
            yield
