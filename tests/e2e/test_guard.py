"""The guard over the processor time of a purchase: it lets the path pass as it is, and not one that became slower."""

from pathlib import Path

import pytest

from benchmarks.bench.guard import SLOWER, judged
from benchmarks.bench.house import APPLICATION
from benchmarks.catalogue import stock_catalogue

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def test_a_purchase_takes_no_more_processor_time_than_allowed(test_environment: dict[str, str], tmp_path: Path) -> None:
    stock_catalogue()
    verdict = judged(application=APPLICATION, environment=test_environment, directory=tmp_path)
    assert verdict.is_sound, verdict


def test_a_slower_path_is_noticed(test_environment: dict[str, str], tmp_path: Path) -> None:
    """The control: 120 microseconds of work for nothing in front of each purchase."""
    stock_catalogue()
    verdict = judged(application=SLOWER, environment=test_environment, directory=tmp_path)
    assert not verdict.is_sound, verdict
