"""What the durable mode costs: ``make bench-durable``; the result is ``var/bench/durable.json``.

The gate alone, as a web process calls it: purchases a second and how long one takes, while Redis syncs its file once a
second, while it syncs each write before it answers, and while a replica must have each purchase as well.
"""

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path

import django
from rich.table import Table

from benchmarks.screen import Screen
from benchmarks.servers import PrivateServers, Server, redis
from benchmarks.servers.account import server_account
from benchmarks.servers.directory import data_directory, home_directory
from benchmarks.servers.process import HOST
from benchmarks.servers.stack import Stack
from benchmarks.stage import run_on_stage

DIRECTORY = Path("var/bench")
UNITS = 2_000_000
CONNECTIONS = (1, 8, 32)
REPLICA_SECONDS_MAX = 10


@dataclass(frozen=True, kw_only=True)
class Mode:
    """How sure a purchase shall be."""

    name: str
    policy: str
    replicas: int


MODES = (
    Mode(name="once a second", policy="everysec", replicas=0),
    Mode(name="durable, each write", policy="always", replicas=0),
    Mode(name="durable, and a replica", policy="always", replicas=1),
)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What was measured of one mode with so many callers."""

    mode: str
    connections: int
    per_second: int
    p50_ms: float
    p99_ms: float


def main() -> int:
    """Run what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.durable", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each is measured (3)")
    arguments = parser.parse_args()
    return run_on_stage("benchmark of the durable mode", lambda screen: _run(screen, seconds=arguments.seconds))


def _run(screen: Screen, *, seconds: float) -> int:
    with screen.step("Starting a database and two Redis servers"):
        servers = PrivateServers(directory=DIRECTORY / "durable-servers", is_fresh=True, environ={})
    with servers:
        os.environ.update(servers.environment(), DJANGO_SETTINGS_MODULE="config.settings", LOG_LEVEL="ERROR")
        django.setup()
        costs = measure(screen, servers=servers, seconds=seconds)
    (DIRECTORY / "durable.json").write_text(json.dumps([asdict(cost) for cost in costs], indent=2) + "\n")
    table = Table("Redis syncs", "connections", "purchases/s", "p50 ms", "p99 ms", title="A purchase at the gate")
    for cost in costs:
        table.add_row(cost.mode, *map(str, (cost.connections, cost.per_second, cost.p50_ms, cost.p99_ms)))
    screen.console.print(table)
    return 0


def measure(screen: Screen, *, servers: PrivateServers, seconds: float) -> list[Cost]:
    """Measure each mode on these servers, which hold nothing else; Django is set up for them."""
    from django.conf import settings

    from seckill.gate.connection import raw_client

    with screen.step("Opening a sale"):
        till = _open_till()
    costs = []
    for mode in MODES:
        with screen.step(f"Buying: {mode.name}"), _replicas(mode.replicas, servers=servers):
            raw_client().config_set("appendfsync", mode.policy)
            settings.DURABLE_REPLICAS = mode.replicas
            for connections in CONNECTIONS:
                times = _rush(till, connections=connections, seconds=seconds)
                costs.append(_cost(mode, connections=connections, times=times, seconds=seconds))
    return costs


def _open_till() -> "Buyer":
    from django.utils import timezone

    from benchmarks import catalogue
    from seckill.models import SalePool
    from seckill.preheat import preheat_sale

    catalogue.migrate()
    catalogue.stock_catalogue()
    sale = catalogue.schedule_sale(name="durable", units=UNITS, opens_at=timezone.now() - timedelta(minutes=1))
    SalePool.objects.filter(sale_id=sale.sale_id).update(max_queue=UNITS)
    preheat_sale(sale_id=sale.sale_id, clock=timezone.now)
    return Buyer(item_id=sale.item_id)


class Buyer:
    """Buys one unit after the other, each for another account."""

    def __init__(self, *, item_id: int) -> None:
        from benchmarks.returns.till import TICKET_LASTS_MS, Till

        self._till = Till.of(item_id)
        self._buyers = count(1)
        self._until_ms = int(time.time() * 1000) + TICKET_LASTS_MS

    def buy(self) -> None:
        """Buy as ``seckill.purchase`` does, without the ticket."""
        from benchmarks.returns.till import NotSold
        from seckill.gate import durable, gate
        from seckill.gate.codes import ReserveCode
        from seckill.order_numbers import new_order_number

        buyer, bucket = next(self._buyers), self._till.bucket
        reply = gate.reserve(
            bucket=bucket,
            order_no=new_order_number(bucket),
            item_id=self._till.item_id,
            buyer_id=buyer,
            limit_key=str(buyer),
            quantity=1,
            price=self._till.price,
            ticket_expires_ms=self._until_ms,
        )
        if reply.code is not ReserveCode.RESERVED:
            raise NotSold(reply.code.name)
        durable.await_replicas(bucket=bucket, has_written=True)


def _rush(buyer: Buyer, *, connections: int, seconds: float) -> list[float]:
    """Let so many threads buy for so long; return how long each purchase took."""
    times: list[float] = []
    until = time.monotonic() + seconds

    def run() -> None:
        while (begun := time.monotonic()) < until:
            buyer.buy()
            times.append(time.monotonic() - begun)

    threads = [threading.Thread(target=run) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def _cost(mode: Mode, *, connections: int, times: Sequence[float], seconds: float) -> Cost:
    ordered = sorted(times)

    def share(part: float) -> float:
        return round(ordered[int(part * (len(ordered) - 1))] * 1000, 2)

    return Cost(
        mode=mode.name,
        connections=connections,
        per_second=round(len(times) / seconds),
        p50_ms=share(0.5),
        p99_ms=share(0.99),
    )


@contextmanager
def _replicas(number: int, *, servers: PrivateServers) -> Iterator[None]:
    """Run a replica of the stock Redis for the length of the block, if one is wanted."""
    if not number:
        yield
        return
    from seckill.gate.connection import raw_client

    account = server_account()
    home = home_directory(directory=(DIRECTORY / "durable-replica").absolute(), account=account)
    data = data_directory(home / "replica", account=account, is_fresh=True)
    address = ("--replicaof", f"{HOST} {servers.stock_redis.port}")
    stack = Stack.from_environment(os.environ)
    server = Server(program=redis.program(data=data, account=account, stack=stack, options=(*redis.STOCK, *address)))
    raw_client().config_set("repl-diskless-sync-delay", 0)
    try:
        server.start()
        raw_client().set("begun", 1)
        give_up_at = time.monotonic() + REPLICA_SECONDS_MAX
        while raw_client().wait(number, 100) < number and time.monotonic() < give_up_at:
            pass
        yield
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main())
