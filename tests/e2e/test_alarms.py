"""Alarms are not noise: 500 reconciliations under load, with stalled, killed and restarted workers, raise none.

The control leaves the queue out of the count, as a shop does that compares Redis with MySQL alone.
"""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection, connections
from django.utils import timezone

from benchmarks.shop import ROOT
from benchmarks.shop import Shop as ShopProcesses
from orders.models import Order
from seckill import mending, reconciliation
from seckill.conf import Limits
from seckill.models import Incident
from seckill.reconciliation import DRIFT, Verdict, reconcile_bucket
from tests.support.shop import Shop, make_buyers, open_sale
from tests.support.state import numbers
from tests.support.web import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("all_running")]

RUNS = 500
STALL_SECONDS = 1.5
BETWEEN_FAULTS_SECONDS = 1.0
CONTROL_RUNS_MAX = 500


@pytest.fixture
def shop() -> Shop:
    return open_sale(units=20_000, limit=20_000)


@contextmanager
def load(shop: Shop, environment: dict[str, str]) -> Iterator[None]:
    """Two buyers who buy all the time and one who cancels what he has just bought, while the block runs."""
    ids = [shop.item.pk, *(buyer.pk for buyer in make_buyers(3))]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.load", str(os.getpid()), *map(str, ids)],
        cwd=ROOT,
        env={**os.environ, **environment, "DJANGO_SETTINGS_MODULE": "config.settings"},
    )
    try:
        wait_until(lambda: Order.objects.exclude(state="PENDING_PAYMENT").exists(), seconds=20)
        yield
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def stall(running: ShopProcesses) -> None:
    running.worker.pause()
    time.sleep(STALL_SECONDS)
    running.worker.resume()


def kill(running: ShopProcesses) -> None:
    running.worker.kill()
    running.worker.start()


def restart(running: ShopProcesses) -> None:
    running.worker.restart()


def test_500_reconciliations_raise_no_alarm(
    running: ShopProcesses, shop: Shop, test_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Three buyers with thousands of units are dear to look at; the round over the members goes by small steps.
    monkeypatch.setattr(mending, "LIMITS", Limits(looks_per_run=1))
    verdicts = Counter[str]()

    def reconcile_all() -> None:
        for _ in range(RUNS):
            verdicts[reconcile_bucket(bucket=shop.bucket, clock=timezone.now).verdict] += 1
        connections.close_all()

    reconciler = threading.Thread(target=reconcile_all)
    with load(shop, test_environment):
        reconciler.start()
        for fault in (stall, stall, kill, stall, restart, stall):
            time.sleep(BETWEEN_FAULTS_SECONDS)
            assert reconciler.is_alive()
            fault(running)
        reconciler.join()
    connection.close()  # It was idle for longer than a session may be.
    assert verdicts == {Verdict.BALANCED: RUNS}
    assert list(Incident.objects.values_list("kind", "detail")) == []
    wait_until(lambda: numbers(shop).queue_length == 0, seconds=10)


def test_without_the_queue_in_the_count_there_is_a_false_alarm(
    shop: Shop, test_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = reconciliation._Queued(in_flight={}, owed={})
    monkeypatch.setattr(reconciliation, "_queued_units", lambda **_: nothing)
    with load(shop, test_environment):
        verdicts = (reconcile_bucket(bucket=shop.bucket, clock=timezone.now).verdict for _ in range(CONTROL_RUNS_MAX))
        assert any(verdict == Verdict.LEAK for verdict in verdicts)
    assert Incident.objects.filter(kind=DRIFT).exists()
    wait_until(lambda: numbers(shop).queue_length == 0, seconds=10)
