"""Measure what timing the stages costs: ``make bench-stages``; the numbers are in ``var/bench/stages.json``.

Over the loopback, two web processes on one set of servers, one that times a purchase in so many (as by default) and one
that times none, are rushed by turns with tickets that are all accepted; told are the medians of the rounds. Whatever
else this machine does disturbs that by more than timing costs. So the same two applications are also called in one
process, by turns of a hundred calls, and the processor times of neighbouring turns are compared: the median of that
decides. It ends with 0 when timing costs less than 3 %, 1 when not or when a step failed.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

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
TIMED_ONE_IN = 100
WEB_OPTIONS = ("--interface=asgi", f"--host={HOST}", "--workers=1", "--no-ws")
CONNECTIONS = 32
WARM_UP_SECONDS = 1
PER_SECOND_MAX = 12_000
TURNS, CALLS_PER_TURN = 400, 100
# The same as without timing, once more: what it differs by is the noise.
CONTROL = "off_again"


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
            number = (rounds * seconds + WARM_UP_SECONDS) * PER_SECOND_MAX + 3 * TURNS * CALLS_PER_TURN
            _write_tickets(tickets, number=number)
        with screen.step(f"Calling by turns in one process, {TURNS} turns of {CALLS_PER_TURN} calls each"):
            in_process = _call_by_turns(tickets)
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
    return _report(screen, found, in_process)


def _report(screen: Screen, found: dict[str, list[Round]], in_process: dict[str, list[float]]) -> int:
    speed = {name: median(one.per_second for one in rounds) for name, rounds in found.items()}
    cpu = {name: median(one.cpu_us for one in rounds) for name, rounds in found.items()}
    loss = 1 - speed["on"] / speed["off"]
    more, noise = (
        median(other / off for other, off in zip(in_process[name], in_process["off"], strict=True)) - 1
        for name in ("on", CONTROL)
    )
    own = {name: median(turns) for name, turns in in_process.items()}
    told = {
        "timed_one_in": TIMED_ONE_IN,
        "in_process_cpu_us": own,
        "in_process_cpu_more": round(more, 4),
        "in_process_noise": round(noise, 4),
        "loopback_per_second": speed,
        "loopback_throughput_loss": round(loss, 4),
        "loopback_cpu_us": cpu,
        "rounds": {name: [asdict(one) for one in rounds] for name, rounds in found.items()},
    }
    REPORT.write_text(json.dumps(told, indent=2) + "\n")
    screen.console.print(
        f"Processor time of a purchase, by turns in one process: {own['off']:.1f} us without timing,"
        f" {own['on']:.1f} us with; turn by turn {more:+.1%}, where nothing differs {noise:+.1%}.\n"
        f"Over the loopback: {speed['off']:,.0f} a second without, {speed['on']:,.0f} with ({loss:+.1%} lost);"
        f" processor time {cpu['off']:.1f} us and {cpu['on']:.1f} us.\n"
        f"The rounds are in {REPORT}.",
        markup=False,
        soft_wrap=True,
    )
    return 0 if more < ALLOWED_LOSS else 1


def _call_by_turns(tickets: Path) -> dict[str, list[float]]:
    """Return the processor microseconds of a purchase, turn by turn, without timing, with it, and without again."""
    return asyncio.run(_acall_by_turns(tickets))


async def _acall_by_turns(tickets: Path) -> dict[str, list[float]]:
    from django.conf import settings
    from django.core.handlers.wsgi import WSGIHandler

    from config.django_threads import in_threads
    from config.lane import FastLane
    from config.timing import with_stage_times

    settings.STAGE_SAMPLE_ONE_IN = TIMED_ONE_IN
    lane = FastLane(in_threads(WSGIHandler()))
    doors: dict[str, Any] = {"off": lane, "on": with_stage_times(lane), CONTROL: lane}
    found: dict[str, list[float]] = {name: [] for name in doors}
    with tickets.open() as lines:
        for turn in range(TURNS):
            # Who comes first changes, so that no drift of the machine favours one.
            for name in (*doors, *doors)[turn % 3 : turn % 3 + 3]:
                calls = [_Call(next(lines).strip()) for _ in range(CALLS_PER_TURN)]
                began = time.process_time()
                for call in calls:
                    await doors[name](call.scope, call.receive, call.send)
                found[name].append((time.process_time() - began) / CALLS_PER_TURN * 1_000_000)
    tickets.with_name(f"{tickets.name}.next").write_text(str(3 * TURNS * CALLS_PER_TURN))
    return found


class _Call:
    """A purchase as a server hands it to the application."""

    def __init__(self, ticket: str) -> None:
        self._body = json.dumps({"ticket": ticket, "quantity": 1, "attempt": 1}, separators=(",", ":")).encode()
        self.scope = {
            "type": "http",
            "method": "POST",
            "scheme": "http",
            "path": "/api/v1/purchases/",
            "query_string": b"",
            "server": (HOST, 80),
            "headers": [
                (b"host", HOST.encode()),
                (b"content-type", b"application/json"),
                (b"content-length", str(len(self._body)).encode()),
            ],
        }

    async def receive(self) -> Any:
        """Give the body."""
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def send(self, message: Any) -> None:
        """Take the answer. Raises ``ServersError`` for a refusal."""
        if message.get("status", 202) != 202:
            raise ServersError(f"a purchase was answered {message['status']}")


@contextmanager
def _web(environment: dict[str, str], *, one_in: int) -> Iterator[Server]:
    port = free_port()
    server = Server(
        program=Program(
            executable=sys.executable,
            arguments=(sys.executable, "-m", "granian", *WEB_OPTIONS, f"--port={port}", "benchmarks.asgi:application"),
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
