"""``make demo`` itself, smaller: it ends well, its report is complete, and no process is left behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.web import wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = [sys.executable, "-m", "benchmarks.demo", "--buyers", "200", "--units", "20"]
KEYS = {
    *("units", "buyers", "accepted", "orders", "sold_out", "limit_reached", "not_started", "bad_request", "failed"),
    *("oversold", "duplicate_orders", "drift"),
    *("purchase_p50_ms", "purchase_p99_ms", "purchases_per_second", "settle_seconds"),
}
OWN_SERVERS = ("DATABASE_URL", "STOCK_REDIS_URL", "CACHE_REDIS_URL", "BROKER_URL", "SECRET_KEY")


def start() -> subprocess.Popen[bytes]:
    """Start the demo with servers of its own, in a session of its own."""
    environment = {name: value for name, value in os.environ.items() if name not in OWN_SERVERS}
    return subprocess.Popen(
        COMMAND, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )


def command_of(process: psutil.Process) -> str:
    """The command line of a process; "" when it has ended meanwhile."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def left_behind(family: list[psutil.Process]) -> list[str]:
    """Those that still run; a dead one that waits for init has no command line."""
    return [command for process in family if (command := command_of(process))]


def test_a_small_demo_ends_well() -> None:
    demo = start()
    output, _ = demo.communicate(timeout=120)
    assert demo.returncode == 0, output.decode()
    report = json.loads((ROOT / "var" / "demo" / "report.json").read_text())
    assert report.keys() >= KEYS
    assert {name: report[name] for name in ("units", "buyers", "accepted", "orders", "sold_out", "failed")} == {
        "units": 20,
        "buyers": 200,
        "accepted": 20,
        "orders": 20,
        "sold_out": 180,
        "failed": 0,
    }
    assert (report["oversold"], report["duplicate_orders"], report["drift"]) == (0, 0, 0)
    assert (report["not_started"], report["bad_request"]) == (4, 6)
    assert b"Every law held" in output


def test_ctrl_c_leaves_nothing_behind() -> None:
    demo = start()
    family: list[psutil.Process] = []

    def is_serving() -> bool:
        assert demo.poll() is None, demo.communicate()[0].decode()
        family[:] = psutil.Process(demo.pid).children(recursive=True)
        return any("granian" in command_of(process) for process in family)

    wait_until(is_serving, seconds=60)
    demo.send_signal(signal.SIGINT)
    output, _ = demo.communicate(timeout=30)
    assert demo.returncode == 130
    assert b"interrupted" in output
    wait_until(lambda: not left_behind(family), seconds=5)
