"""Counts of several processes: added up, kept when a process ends, and its gauges forgotten."""

import os
import subprocess
import sys
from pathlib import Path

from prometheus_client import generate_latest

from metrics.files import counted
from tests.support.scrape import Samples, samples_of, value

COUNT = """
import sys
from metrics.definitions import PURCHASES, SETTLE_ENTRIES, begin_process
begin_process(role="web")
PURCHASES.labels("accepted").inc(int(sys.argv[1]))
SETTLE_ENTRIES.observe(3)
print("ready", flush=True)
sys.stdin.read()
"""


def start(directory: Path, number: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", COUNT, str(number)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(directory)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def look(directory: Path) -> Samples:
    with counted(directory) as registry:
        return samples_of(generate_latest(registry).decode())


def accepted(samples: Samples) -> float:
    return value(samples, "seckill_purchases_total", outcome="accepted")


def test_counts_outlive_their_process_and_gauges_do_not(tmp_path: Path) -> None:
    first, second = start(tmp_path, 5), start(tmp_path, 7)
    told = look(tmp_path)
    assert (accepted(told), value(told, "seckill_processes", role="web")) == (12, 2)

    first.communicate()
    told = look(tmp_path)
    assert (accepted(told), value(told, "seckill_processes", role="web")) == (12, 1)
    assert not list(tmp_path.glob(f"*_{first.pid}.db"))

    second.communicate()
    third = start(tmp_path, 1)
    for _ in range(2):
        told = look(tmp_path)
        assert (accepted(told), value(told, "seckill_processes", role="web")) == (13, 1)
        assert value(told, "seckill_settle_batch_entries_count") == 3
        assert value(told, "seckill_settle_batch_entries_bucket", le="5.0") == 3
        assert value(told, "seckill_settle_batch_entries_bucket", le="2.0") == 0
    third.communicate()


def test_whoever_dies_while_he_adds_up_has_added_nothing(tmp_path: Path) -> None:
    start(tmp_path, 5).communicate()
    (tmp_path / "counter_dead.new").write_bytes(b"half of it")
    assert accepted(look(tmp_path)) == 5
