"""Two beats: one sends, and when it is killed the other does; the control is two that do not ask."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection
from django_redis import get_redis_connection
from pytest_django import Settings

from config import beat
from config.beat import LEASE_SECONDS, Lease
from tests.plugin import ROOT
from tests.support.aliases import NOWHERE, point
from tests.support.broker import empty_queues, waiting_tasks
from tests.support.web import wait_until

COUNTED_SECONDS = 5


@pytest.fixture(autouse=True)
def without_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases of the tests ask each time."""
    monkeypatch.setattr(beat, "ASK_SECONDS", 0.0)


def test_one_holds_it_and_the_other_gets_it_when_it_ends() -> None:
    first, second = (Lease(seconds=0.3) for _ in range(2))
    assert [first.ask(), second.ask(), first.ask(), second.ask()] == [True, False, True, False]
    wait_until(second.ask, seconds=2)
    assert not first.ask()


def test_who_cannot_ask_goes_on_as_he_was(settings: Settings) -> None:
    """And begins after the length of a lease, since a tick too many is harmless and one too few is not."""
    first, second = (Lease(seconds=0.3) for _ in range(2))
    assert first.ask()
    point(settings, "default", NOWHERE)
    assert [first.ask(), second.ask()] == [True, False]
    wait_until(second.ask, seconds=2)
    assert first.ask()


def test_a_lease_that_was_thrown_away_is_taken_again_by_one() -> None:
    first, second = Lease(), Lease()
    assert first.ask()
    get_redis_connection("default").flushdb()
    assert second.ask()
    assert not first.ask()


def environment() -> dict[str, str]:
    """Return a beat's: on the test's own database, and telling what it does."""
    base, _, _ = os.environ["DATABASE_URL"].rpartition("/")
    name = connection.settings_dict["NAME"]
    return {**os.environ, "DATABASE_URL": f"{base}/{name}", "LOG_LEVELS": "celery.beat=INFO,config.beat=INFO"}


@contextmanager
def beat_process(name: str, scheduler: str) -> Iterator[subprocess.Popen[bytes]]:
    """A beat of its own, with its log in var."""
    directory = Path(ROOT / "var" / "test")
    options = (
        "--schedule",
        str(directory / f"{name}.db"),
        "--pidfile=",
        "--loglevel",
        "INFO",
        "--scheduler",
        scheduler,
    )
    with (directory / f"{name}.log").open("wb") as log:
        command = [sys.executable, "-m", "celery", "-A", "config", "beat", *options]
        with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=log, stderr=log) as process:
            try:
                yield process
            finally:
                process.kill()


def sweeps_sent() -> int:
    return sum(name == "seckill.sweep" for name, _ in waiting_tasks("sweep"))


def sweeps_in(seconds: float) -> int:
    empty_queues()
    time.sleep(seconds)
    return sweeps_sent()


@pytest.mark.slow
def test_of_two_beats_one_sends_and_the_other_when_that_one_is_killed() -> None:
    """CASES 28: killed by SIGKILL, so nothing is given back; the sweep is away for the rest of the lease at most."""
    scheduler = "config.beat:LeasedScheduler"
    with beat_process("beat-1", scheduler) as first:
        wait_until(lambda: sweeps_sent() > 0, seconds=20)
        with beat_process("beat-2", scheduler) as second:
            wait_until(lambda: log_says("beat-2", "Starting"), seconds=20)
            assert abs(sweeps_in(COUNTED_SECONDS) - COUNTED_SECONDS) <= 1
            assert not log_says("beat-2", "this beat sends")
            first.kill()
            first.wait()
            empty_queues()
            assert wait_until(lambda: sweeps_sent() > 0, seconds=20) < LEASE_SECONDS + 3
            assert log_says("beat-2", "this beat sends")
            assert abs(sweeps_in(COUNTED_SECONDS) - COUNTED_SECONDS) <= 1
            assert second.poll() is None


def log_says(name: str, words: str) -> bool:
    return words in (ROOT / "var" / "test" / f"{name}.log").read_text()


@pytest.mark.slow
def test_control_two_beats_that_do_not_ask_send_everything_twice() -> None:
    scheduler = "django_celery_beat.schedulers:DatabaseScheduler"
    with beat_process("control-1", scheduler), beat_process("control-2", scheduler):
        wait_until(lambda: log_says("control-1", "Starting") and log_says("control-2", "Starting"), seconds=20)
        wait_until(lambda: sweeps_sent() > 1, seconds=20)
        assert sweeps_in(COUNTED_SECONDS) >= 2 * COUNTED_SECONDS - 2
