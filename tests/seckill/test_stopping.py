"""All sales stopped without a log-in: by a command that needs no MySQL, and by a file; nobody loses what he has."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from django.core.management import call_command
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from benchmarks.servers import PrivateServers
from seckill.errors import GateUnavailable
from seckill.gate.connection import raw_client
from seckill.models import SaleItem
from seckill.pausing import pause_item, resume_item
from seckill.purchase import purchase
from seckill.rebuild import rebuild_bucket
from seckill.settlement import settle_bucket
from seckill.stop_file import LOOK_SECONDS, stop_file
from seckill.stopping import resume_stopped, stop_sales
from seckill.sweep import look_over
from seckill.tickets import read_ticket
from tests.support.api import PURCHASES, read_reply, refusal
from tests.support.doors import Served, served_shop
from tests.support.shop import Shop, buy, make_ticket, make_tickets, open_sale
from tests.support.state import assert_settled_state
from tests.support.threads import run_together

ROOT = Path(__file__).resolve().parent.parent.parent
EFFECTIVE_WITHIN_SECONDS = 1.0


def stop(*pools: int) -> None:
    stop_sales(pool_ids=frozenset(pools) or None, now=timezone.now())


def resume(*pools: int) -> int:
    return resume_stopped(pool_ids=frozenset(pools) or None, tell=lambda _: None)


def mark_of(shop: Shop) -> bytes | None:
    raw: bytes | None = raw_client().hget(shop.bucket.keys[1], f"paused:{shop.item.pk}")
    return raw


def stop_without_mysql(servers: PrivateServers) -> str:
    """Run the command as a process that cannot reach MySQL."""
    environment = {**servers.environment(), "DATABASE_URL": "mysql://seckill:x@127.0.0.1:9/nowhere"}
    command = [sys.executable, "manage.py", "stop_sales"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_is_stopped_and_sold_again() -> None:
    first, second = open_sale(items=2), open_sale()
    tickets = make_tickets(first, 2)
    number = buy(tickets[0])
    stop()
    assert [buy(tickets[1]), buy(make_ticket(second))] == ["Paused", "Paused"]
    assert buy(tickets[0]) == number
    assert SaleItem.objects.filter(is_paused=True, stopped_at__isnull=False).count() == 3
    assert mark_of(first) == b"1"
    assert resume() == 3
    assert "-" in buy(tickets[1])
    assert "-" in buy(make_ticket(second))
    assert resume() == 0


def test_one_pool_alone() -> None:
    stopped, other = open_sale(), open_sale()
    stop(stopped.pool.pk)
    assert buy(make_ticket(stopped)) == "Paused"
    assert "-" in buy(make_ticket(other))
    assert resume(other.pool.pk) == 0
    assert buy(make_ticket(stopped)) == "Paused"


def test_what_an_operator_had_paused_stays_paused() -> None:
    shop = open_sale(items=2)
    pause_item(item_id=shop.item.pk)
    stop()
    assert resume() == 1
    assert buy(make_ticket(shop)) == "Paused"


def test_an_operator_may_resume_one_item_of_a_stop() -> None:
    shop = open_sale()
    stop()
    resume_item(item_id=shop.item.pk)
    assert "-" in buy(make_ticket(shop))
    assert resume() == 0


@pytest.mark.slow
@pytest.mark.parametrize("then", ["sweep", "rebuild", "damage and sweep"])
def test_stopped_while_mysql_was_away_it_stays_stopped_when_it_is_back(servers: PrivateServers, then: str) -> None:
    """The sweep, or a rebuild, tells MySQL before either could take the stop for a pause that nobody wants."""
    shop = open_sale()
    ticket = make_ticket(shop)
    assert "told by the sweep" in stop_without_mysql(servers)
    assert (mark_of(shop), SaleItem.objects.get(pk=shop.item.pk).is_paused) == (b"stop", False)
    assert buy(ticket) == "Paused"
    if then == "damage and sweep":
        raw_client().delete(shop.bucket.keys[0])
    if then != "sweep":
        rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    for _ in range(2):
        look_over(now=timezone.now())
        assert (mark_of(shop), SaleItem.objects.get(pk=shop.item.pk).is_paused) == (b"1", True)
    assert buy(ticket) == "Paused"
    assert resume() == 1
    assert "-" in buy(ticket)


def test_in_the_middle_of_a_rush_nothing_is_accepted_a_second_later() -> None:
    """By Redis's clock; whoever was accepted before has his order."""
    shop = open_sale(units=400, max_queue=1_000)
    tickets = make_tickets(shop, 200)
    stopped_ms: list[int] = []

    def stop_soon() -> None:
        while raw_client().xlen(shop.bucket.keys[4]) < 20:
            time.sleep(0.001)
        seconds, microseconds = raw_client().time()
        stopped_ms.append(seconds * 1000 + microseconds // 1000)
        stop()

    stopper = threading.Thread(target=stop_soon)
    stopper.start()
    answers = [answer for start in range(0, 200, 20) for answer in run_together(buy, tickets[start : start + 20])]
    stopper.join()
    accepted = [answer for answer in answers if "-" in answer]
    times = [int(entry.decode().partition("-")[0]) for entry, _ in raw_client().xrange(shop.bucket.keys[4])]
    assert 20 <= len(accepted) < 200
    assert set(answers) - set(accepted) == {"Paused"}
    assert max(times) <= stopped_ms[0] + 1000 * EFFECTIVE_WITHIN_SECONDS
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert_settled_state(shop, sold=len(accepted))


def test_the_commands_say_what_they_did(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("stop_sales")
    assert "nothing is on sale" in capsys.readouterr().out
    shop = open_sale()
    call_command("stop_sales")
    assert f"bucket {shop.bucket}: 1 items are stopped" in capsys.readouterr().out
    call_command("resume_sales")
    assert f"item {shop.item.pk} is sold again" in capsys.readouterr().out
    call_command("resume_sales")
    assert "nothing was stopped" in capsys.readouterr().out


# The file.


@pytest.fixture
def path(settings: Settings, tmp_path: Path) -> Path:
    settings.STOP_FILE = str(tmp_path / "stop")
    return tmp_path / "stop"


def test_while_the_file_is_there_nothing_new_is_accepted(
    path: Path, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    shop = open_sale(limit=2)
    used, unused = make_tickets(shop, 2)
    number = buy(used)
    path.touch()
    stop_file.forget()
    with django_assert_num_queries(0):
        assert [buy(unused), buy(used), buy(used, 2)] == ["Paused", number, "Conflict"]
    path.unlink()
    stop_file.forget()
    assert buy(unused) == read_ticket(unused).order_no


def test_a_lost_redis_is_an_outage_to_whoever_may_have_been_accepted(path: Path) -> None:
    """Law 5: neither "paused" nor "accepted" where nobody can tell."""
    shop = open_sale()
    ticket = make_ticket(shop)
    path.touch()
    raw_client().delete(shop.bucket.keys[3])
    with pytest.raises(GateUnavailable):
        purchase(ticket=ticket, quantity=1)


def test_without_a_path_there_is_no_switch(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings.STOP_FILE = ""
    assert not stop_file.is_there()


@pytest.mark.slow
def test_the_file_counts_within_a_second_in_every_process(servers: PrivateServers, tmp_path: Path) -> None:
    shop = open_sale(units=50)
    switch = tmp_path / "stop"
    with (
        served_shop(servers, lane=True, directory=tmp_path, STOP_FILE=str(switch)) as fast,
        served_shop(servers, lane=False, directory=tmp_path, STOP_FILE=str(switch)) as slow,
    ):
        assert [post(served, make_ticket(shop)) for served in (fast, slow)] == ["accepted"] * 2
        switch.touch()
        time.sleep(EFFECTIVE_WITHIN_SECONDS)
        assert [post(served, make_ticket(shop)) for served in (fast, slow)] == ["paused"] * 2
        switch.unlink()
        time.sleep(EFFECTIVE_WITHIN_SECONDS)
        assert [post(served, make_ticket(shop)) for served in (fast, slow)] == ["accepted"] * 2
    assert LOOK_SECONDS < EFFECTIVE_WITHIN_SECONDS


def post(served: Served, ticket: str) -> str:
    body = f'{{"ticket": "{ticket}", "quantity": 1}}'.encode()
    answer = read_reply(served.call("POST", PURCHASES, body=body, headers={"Content-Type": "application/json"}))
    return "accepted" if answer.status == 202 else refusal(answer)[1]
