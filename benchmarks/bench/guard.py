"""A guard that needs no quiet machine: the processor time of a purchase, told in answers that never change.

``make bench-guard`` runs the shop and a yardstick, a bare answer with work that stays the same in front of it, under
two Granians of one process each, sends them short bursts of calls by turns, and compares what their processes have
used for each call. A processor's time counts only while it works for the process, but on a busy machine it works more
slowly, with cold caches: the quickest tenth of the bursts of each kind is what such a machine lets through nearly
undisturbed, and only that is compared. It ends with 1 when a purchase takes more than it may: somebody has made the
path slower. A bare answer is measured besides, and told.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.bench.bursts import Client
from benchmarks.bench.house import APPLICATION, DIRECTORY, granian
from benchmarks.screen import Screen
from benchmarks.servers import PrivateServers
from benchmarks.servers.process import HOST, Server
from benchmarks.shop import WEB_OPTIONS
from benchmarks.stage import run_on_stage, set_up_django

REPORT = DIRECTORY / "guard.json"
BARE = "benchmarks.bench.bare:application"
YARDSTICK = "benchmarks.bench.yardstick:application"
SLOWER = "benchmarks.bench.slower:application"
# One process and its loop; all of what it does is counted, Granian's own threads included.
OPTIONS = tuple("--workers=1" if option.startswith("--workers=") else option for option in WEB_OPTIONS)
CONNECTIONS = 8
BURSTS, CALLS = 120, 64
WARM_UP_BURSTS = 5
QUICK_PART = 0.1
# Fourteen runs on two processors with two to four times as much to do gave 1.35 to 1.70, and one more 2.09; with 80
# microseconds more, as a second look into Redis costs, 2.14 to 2.45. In bare answers the same spread over 5.9 to 8.2.
YARDSTICKS_MAX = 1.95
# Other work can only make a run look worse: one that is beyond the limit is repeated, and the best of them counts.
TRIES_MAX = 3


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Processor microseconds of a purchase, the yardstick and a bare answer, in the quickest tenth of the bursts."""

    purchase_us: float
    yardstick_us: float
    bare_us: float

    @property
    def yardsticks(self) -> float:
        """How many of the yardstick's answers a purchase takes."""
        return self.purchase_us / self.yardstick_us

    @property
    def is_sound(self) -> bool:
        """Whether it is no more than allowed."""
        return self.yardsticks <= YARDSTICKS_MAX


def main() -> int:
    """Measure; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench.guard", description=__doc__)
    parser.add_argument("--bursts", type=int, default=BURSTS, help=f"of {CALLS} calls, of each kind ({BURSTS})")
    parser.add_argument("--application", default=APPLICATION, help=f"what is guarded; {SLOWER} is the control")
    arguments = parser.parse_args()
    return run_on_stage("measurement", partial(_run, bursts=arguments.bursts, application=arguments.application))


def _run(screen: Screen, *, bursts: int, application: str) -> int:
    REPORT.unlink(missing_ok=True)
    directory = DIRECTORY / "guard"
    directory.mkdir(parents=True, exist_ok=True)
    with PrivateServers(directory=directory / "servers", is_fresh=True, environ={}) as servers:
        environment = servers.environment()
        with screen.step("Making the tables"):
            set_up_django(environment)
            from benchmarks import catalogue  # It needs Django.

            catalogue.migrate()
            catalogue.stock_catalogue()
        with screen.step(f"Sending each bursts by turns, {bursts} of {CALLS} calls each"):
            verdict = judged(application=application, environment=environment, directory=directory, bursts=bursts)
    told = {**vars(verdict), "yardsticks": verdict.yardsticks, "allowed": YARDSTICKS_MAX}
    REPORT.write_text(json.dumps(told, indent=2) + "\n")
    screen.line(
        f"A purchase takes {verdict.purchase_us:.0f} us of processor time, the yardstick {verdict.yardstick_us:.0f} us,"
        f" a bare answer {verdict.bare_us:.1f} us: {verdict.yardsticks:.2f} yardsticks; allowed are {YARDSTICKS_MAX:g}."
    )
    return 0 if verdict.is_sound else 1


def judged(*, application: str, environment: Mapping[str, str], directory: Path, bursts: int = BURSTS) -> Verdict:
    """Measure until a run is within the limit, at most TRIES_MAX times; return the best. As ``measured``."""
    best: Verdict | None = None
    for _ in range(TRIES_MAX):
        verdict = measured(application=application, environment=environment, directory=directory, bursts=bursts)
        if best is None or verdict.yardsticks < best.yardsticks:
            best = verdict
        if best.is_sound:
            break
    assert best is not None  # noqa: S101  there is one try at least
    return best


def measured(*, application: str, environment: Mapping[str, str], directory: Path, bursts: int = BURSTS) -> Verdict:
    """Send bursts to the application, the yardstick and a bare one. Needs Django set up, the tables and the goods.

    ``ServersError`` when a purchase is not accepted.
    """
    purchases = _purchases((bursts + WARM_UP_BURSTS) * CALLS)
    asking = [_request("GET", "/")] * CALLS
    with ExitStack() as running:
        serve = partial(_serving, environment=environment, directory=directory)
        buyers, workers, askers = (
            running.enter_context(Client.of(running.enter_context(serve(name)), connections=CONNECTIONS, status=status))
            for name, status in ((application, 202), (YARDSTICK, 200), (BARE, 200))
        )
        bought, worked, asked = list[float](), list[float](), list[float]()
        for number in range(0, len(purchases), CALLS):
            bought.append(buyers.burst(purchases[number : number + CALLS]))
            worked.append(workers.burst(asking))
            asked.append(askers.burst(asking))
    purchase, yardstick, bare = (_quick(times[WARM_UP_BURSTS:]) for times in (bought, worked, asked))
    return Verdict(purchase_us=purchase, yardstick_us=yardstick, bare_us=bare)


def _quick(times: Sequence[float]) -> float:
    return sorted(times)[int(len(times) * QUICK_PART)]


def _purchases(count: int) -> list[bytes]:
    """Open a sale and return calls that are all accepted. Nothing is settled here, so nobody needs an account."""
    from benchmarks.bench import supply

    sale = supply.open_sale(name="Guard", units=count)
    tickets = supply.signed_tickets(sale=sale, buyers=list(range(1, count + 1)))
    bodies = ({"ticket": ticket, "quantity": 1, "attempt": 1} for _, ticket in tickets)
    return [_request("POST", "/api/v1/purchases/", json.dumps(body, separators=(",", ":")).encode()) for body in bodies]


def _request(method: str, path: str, body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}\r\n".encode() + body


@contextmanager
def _serving(application: str, *, environment: Mapping[str, str], directory: Path) -> Iterator[Server]:
    name = application.partition(":")[0].rpartition(".")[2]
    counts = directory / f"counts-{name}-{time.time_ns()}"
    counts.mkdir(parents=True)
    told = {**environment, "PROMETHEUS_MULTIPROC_DIR": str(counts.absolute()), "PUBLIC_URL": f"http://{HOST}"}
    log = (directory / f"{name}.log").absolute()
    server = granian(application=application, environment=told, log=log, options=OPTIONS)
    server.start()
    try:
        yield server
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main())
