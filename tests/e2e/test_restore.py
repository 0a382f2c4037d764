"""The restore drill: MySQL is dumped in the middle of a sale, everything is wiped, and the dump is put back.

What the dump knew is true again in MySQL and in Redis; what it did not know is named by an incident.
"""

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.utils import timezone

from orders.models import Order
from seckill.gate import gate
from seckill.gate.connection import raw_client
from seckill.models import Incident
from seckill.settlement import settle_bucket
from seckill.sweep import look_over
from seckill.tasks import rebuild_one
from tests.plugin import ROOT
from tests.support.shop import Shop, buy, make_tickets, open_sale
from tests.support.state import assert_settled_state

pytestmark = pytest.mark.slow

UNITS = 300
BOUGHT_BEFORE = 100


@pytest.fixture
def login(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment in which the scripts of deploy/ log in; other connections are closed meanwhile."""
    shop = connection.settings_dict
    words = [f"{name.lower()}={shop[name]}" for name in ("HOST", "PORT", "USER", "PASSWORD")]
    file = tmp_path / "my.cnf"
    file.touch(mode=0o600)
    file.write_text("\n".join(["[client]", *words]))
    yield {**os.environ, "MYSQL_DEFAULTS": str(file)}
    connections.close_all()


def run(script: str, dump: Path, environment: dict[str, str]) -> None:
    command = ["bash", str(ROOT / "deploy" / script), str(connection.settings_dict["NAME"]), str(dump)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def settle(shop: Shop) -> int:
    return settle_bucket(bucket=shop.bucket, clock=timezone.now).entries


def sell_while_it_is_dumped(shop: Shop, tickets: list[str], dump: Path, login: dict[str, str]) -> list[str]:
    """Sell all tickets, and have the dump made in the middle of it; return all order numbers."""
    bought = [buy(ticket) for ticket in tickets[:BOUGHT_BEFORE]]
    settle(shop)
    dumper = threading.Thread(target=run, args=("backup", dump, login))
    dumper.start()
    for number, ticket in enumerate(tickets[BOUGHT_BEFORE:]):
        bought.append(buy(ticket))
        if number % 5 == 0:
            settle(shop)
    dumper.join()
    settle(shop)
    assert_settled_state(shop, sold=UNITS)
    return bought


def restore(dump: Path, login: dict[str, str]) -> set[str]:
    """Put the dump back; return the orders it knows."""
    connections.close_all()
    run("restore", dump, login)
    return set(Order.objects.values_list("number", flat=True))


def assert_sells_on(shop: Shop, tickets: list[str], bought: list[str], known: set[str]) -> None:
    """Assert the laws for what the dump knew, and that everybody else may buy with the ticket he has."""
    assert BOUGHT_BEFORE <= len(known) < UNITS
    assert known < set(bought)
    assert_settled_state(shop, sold=len(known))
    assert [buy(ticket) for ticket in tickets] == bought
    while settle(shop):
        pass
    assert_settled_state(shop, sold=UNITS)


def test_all_wiped_and_restored(tmp_path: Path, login: dict[str, str]) -> None:
    shop = open_sale(units=UNITS)
    tickets = make_tickets(shop, UNITS)
    dump = tmp_path / "dump.sql.gz"
    bought = sell_while_it_is_dumped(shop, tickets, dump, login)

    raw_client().flushall()
    known = restore(dump, login)
    assert look_over(now=timezone.now()).to_rebuild == [shop.bucket]
    rebuild_one(shop.bucket.pool_id, 0)

    incident = Incident.objects.get()
    assert (incident.kind, "the bucket is not in Redis" in incident.detail) == ("redis_lost", True)
    assert_sells_on(shop, tickets, bought, known)


def test_mysql_alone_restored_names_what_it_forgot_and_sells_nothing_twice_unasked(
    tmp_path: Path, login: dict[str, str]
) -> None:
    """Redis remembers commits that MySQL has lost: nothing is sold until an operator accepts that."""
    shop = open_sale(units=UNITS)
    tickets = make_tickets(shop, UNITS)
    dump = tmp_path / "dump.sql.gz"
    bought = sell_while_it_is_dumped(shop, tickets, dump, login)
    settled_seq = gate.snapshot(bucket=shop.bucket, entries_max=0).settled_seq

    known = restore(dump, login)
    settle(shop)  # As the next settlement and each reconciliation do.
    assert look_over(now=timezone.now()).to_rebuild == [shop.bucket]
    rebuild_one(shop.bucket.pool_id, 0)
    incident = Incident.objects.get(kind="commits_lost", resolved_at=None)
    told = f"Redis was told that reservations up to {settled_seq} are in MySQL, which has them up to"
    assert told in incident.detail
    assert set(Order.objects.values_list("number", flat=True)) == known

    call_command("rebuild", shop.pool.pk, "--accept-lost-commits")
    assert not Incident.objects.filter(kind="commits_lost", resolved_at=None).exists()
    assert_sells_on(shop, tickets, bought, known)
