"""Measure what timing the stages costs: ``make bench-stages``; the numbers are in ``var/bench/stages.json``.

Two web processes on one set of servers, one that times a purchase in so many (as by default) and one that times none,
are rushed by turns over the loopback with tickets that are all accepted. Told are the medians of the rounds: accepted
purchases a second, and the processor's time that the web process took for each, which others on this machine disturb
less. It ends with 0 when timing costs less than 3 % of the throughput, 1 when not or when a step failed.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median

import psutil

from benchmarks.screen import Screen
from benchmarks.servers import PrivateServers, ServersError
from benchmarks.servers.account import Account
from benchmarks.servers.process import HOST, Program, Server, executable, free_port
from benchmarks.shop import ROOT, is_healthy
from benchmarks.stage import run_on_stage, set_up_django

DIRECTORY = Path("var/bench")
REPORT = DIRECTORY / "stages.json"
ALLOWED_LOSS = 0.03
TIMED_ONE_IN = 50
WEB_OPTIONS = ("--interface=wsgi", f"--host={HOST}", "--workers=1", "--blocking-threads=2", "--no-ws")
CONNECTIONS = 32
WARM_UP_SECONDS = 1
PER_SECOND_MAX = 12_000


@dataclass(frozen=True, kw_only=True)
class Round:
    """One rush: accepted purchases a second, and processor microseconds of the web process for each."""

    per_second: float
    cpu_us: float


def main() -> int:
    """Measure; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stages", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="of each kind (7)")
    parser.add_argument("--seconds", type=int, default=3, help="each round (3)")
    arguments = parser.parse_args()
    return run_on_stage("measurement", partial(_run, rounds=arguments.rounds, seconds=arguments.seconds))


def _run(screen: Screen, *, rounds: int, seconds: int) -> int:
    REPORT.unlink(missing_ok=True)
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    with PrivateServers(directory=DIRECTORY / "servers", is_fresh=True) as servers:
        environment = servers.environment()
        set_up_django(environment)
        tickets = DIRECTORY / "tickets.txt"
        with screen.step("Making the tables, a sale and its tickets"):
            _write_tickets(tickets, number=2 * (rounds * seconds + WARM_UP_SECONDS) * PER_SECOND_MAX // 2)
        with _web(environment, one_in=0) as off, _web(environment, one_in=TIMED_ONE_IN) as on:
            webs = {"off": off, "on": on}
            for web in webs.values():
                _rush(web, tickets=tickets, seconds=WARM_UP_SECONDS)
            found: dict[str, list[Round]] = {"off": [], "on": []}
            with screen.step(f"Rushing by turns, {rounds} rounds of {seconds} s each"):
                for number in range(rounds):
                    # Who begins changes, so that no drift of the machine favours one.
                    for name in ("off", "on") if number % 2 else ("on", "off"):
                        found[name].append(_rush(webs[name], tickets=tickets, seconds=seconds))
    return _report(screen, found)


def _report(screen: Screen, found: dict[str, list[Round]]) -> int:
    speed = {name: median(one.per_second for one in rounds) for name, rounds in found.items()}
    cpu = {name: median(one.cpu_us for one in rounds) for name, rounds in found.items()}
    loss, cpu_more = 1 - speed["on"] / speed["off"], cpu["on"] / cpu["off"] - 1
    told = {
        "timed_one_in": TIMED_ONE_IN,
        "per_second": speed,
        "cpu_us_per_purchase": cpu,
        "throughput_loss": round(loss, 4),
        "cpu_more": round(cpu_more, 4),
        "rounds": {name: [asdict(one) for one in rounds] for name, rounds in found.items()},
    }
    REPORT.write_text(json.dumps(told, indent=2) + "\n")
    screen.console.print(
        f"Purchases a second: {speed['off']:,.0f} without timing, {speed['on']:,.0f} with ({loss:+.1%} lost).\n"
        f"Processor time each: {cpu['off']:.1f} us without, {cpu['on']:.1f} us with ({cpu_more:+.1%}).\n"
        f"The rounds are in {REPORT}.",
        markup=False,
    )
    return 0 if loss < ALLOWED_LOSS else 1


@contextmanager
def _web(environment: dict[str, str], *, one_in: int) -> Iterator[Server]:
    port = free_port()
    server = Server(
        program=Program(
            executable=sys.executable,
            arguments=(sys.executable, "-m", "granian", *WEB_OPTIONS, f"--port={port}", "benchmarks.wsgi:application"),
            port=port,
            directory=ROOT,
            log=(DIRECTORY / f"web-{one_in}.log").absolute(),
            account=Account(),
            environment={
                **environment,
                "STAGE_SAMPLE_ONE_IN": str(one_in),
                "THROTTLE_PURCHASE": "1000000",
                "LOG_LEVEL": "INFO",
            },
            is_ready=partial(is_healthy, port=port),
        )
    )
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _rush(web: Server, *, tickets: Path, seconds: int) -> Round:
    before = _cpu_seconds(web)
    url = f"http://{HOST}:{web.port}/api/v1/purchases/"
    done = subprocess.run(
        [executable("wrk"), "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", "benchmarks/purchase.lua", url],
        env={**os.environ, "TICKETS": str(tickets)},
        capture_output=True,
        text=True,
        check=True,
        timeout=seconds + 30,
    )
    requests = re.search(r"(\d+) requests in", done.stdout)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
    if requests is None or rate is None or "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        raise ServersError(f"wrk says:\n{done.stdout}{done.stderr}")
    cpu = _cpu_seconds(web) - before
    return Round(per_second=float(rate[1]), cpu_us=cpu / int(requests[1]) * 1_000_000)


def _cpu_seconds(web: Server) -> float:
    """Processor time of the process and those it has begun."""
    master = psutil.Process(web.pid)
    times = [process.cpu_times() for process in (master, *master.children(recursive=True))]
    return float(sum(time.user + time.system for time in times))


def _write_tickets(path: Path, *, number: int) -> None:
    """Write so many tickets of buyers that nobody knows: the hot path asks for none, and nothing is settled here."""
    from django.utils import timezone

    from benchmarks.catalogue import migrate, schedule_sale, stock_catalogue
    from seckill.models import SaleItem, SalePool
    from seckill.order_numbers import new_order_number
    from seckill.preheat import preheat_sale
    from seckill.tickets import sign_ticket

    migrate()
    stock_catalogue()
    sale = schedule_sale(name="Stages", units=number, opens_at=timezone.now())
    SalePool.objects.filter(pk=sale.bucket.pool_id).update(max_queue=number)
    preheat_sale(sale_id=sale.sale_id, clock=timezone.now)
    item = SaleItem.objects.select_related("pool__sale").get(pk=sale.item_id)
    with path.open("w") as file:
        for buyer in range(1, number + 1):
            order_no = new_order_number(sale.bucket)
            file.write(sign_ticket(order_no=order_no, item=item, buyer_id=buyer, key=str(buyer)) + "\n")
    path.with_name(f"{path.name}.next").unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
