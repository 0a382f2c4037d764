"""``make rehearsal`` itself, small: locust's buyers go through a whole sale, and the shop's books say how it went."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
RESULT = ROOT / "var" / "rehearsal"
OWN_SERVERS = ("DATABASE_URL", "STOCK_REDIS_URL", "CACHE_REDIS_URL", "BROKER_URL", "SECRET_KEY")


def test_sixty_buyers_rehearse_for_ten_units() -> None:
    command = [sys.executable, "-m", "benchmarks.rehearsal", "--buyers=60", "--units=10", "--opens-in=45"]
    environment = {name: value for name, value in os.environ.items() if name not in OWN_SERVERS}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=170, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = json.loads((RESULT / "report.json").read_text())
    assert report["ends"] == {"paid": 10, "sold_out": 50}
    assert report["verdict"] == {
        "units": 10,
        "sold": 10,
        "orders": 10,
        "buyers_with_orders": 10,
        "paid": 10,
        "drift": 0,
        "broken": [],
    }
    assert "4 purchase: sold_out" in (RESULT / "locust.html").read_text()
    assert "Every law held" in (RESULT / "index.html").read_text()
