"""What is measured: private servers, the shop's processes, and other web servers of the same kind beside it."""

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks.bench.size import Size
from benchmarks.screen import Screen
from benchmarks.servers import PrivateServers, ServersError
from benchmarks.servers.account import Account
from benchmarks.servers.process import HOST, Program, Server, free_port
from benchmarks.shop import ROOT, WEB_OPTIONS, Shop, is_healthy
from benchmarks.stage import set_up_django

DIRECTORY = Path("var/bench")
if TYPE_CHECKING:
    from benchmarks.catalogue import OpenedSale

APPLICATION = "benchmarks.asgi:application"
# As many processes as the shop has, and threads for what waits in them: more gained nothing on two cores.
THREADS = ("--interface=wsgi", f"--host={HOST}", "--workers=2", "--blocking-threads=4", "--no-ws", "--backlog=4096")
DRAIN_SECONDS_MAX = 180.0
POLL_SECONDS = 0.02


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """A sale from which many have bought, and the memory that each of them takes in Redis."""

    sale: "OpenedSale"
    bytes_each: float


@dataclass(kw_only=True)
class House:
    """The servers, the shop, and how large the run is; the other web servers are started when they are asked for."""

    directory: Path
    size: Size
    screen: Screen
    servers: PrivateServers
    shop: Shop
    environment: Mapping[str, str]
    running: ExitStack
    crowds: dict[int, "Crowd"] = field(default_factory=dict)
    _others: dict[str, Server] = field(default_factory=dict)

    def without_lane(self) -> Server:
        """The same shop with FAST_LANE=0, so that Django answers purchases."""
        return self._other("without-lane", application=APPLICATION, more={"FAST_LANE": "0"})

    def bare(self) -> Server:
        """An application that does nothing, under the same Granian."""
        return self._other("bare", application="benchmarks.bench.bare:application")

    def articles(self) -> Server:
        """The seed articles' ways to sell a unit, which wait in threads."""
        return self._other("articles", application="benchmarks.bench.articles:application", options=THREADS)

    def _other(
        self,
        name: str,
        *,
        application: str,
        more: Mapping[str, str] | None = None,
        options: Sequence[str] = WEB_OPTIONS,
    ) -> Server:
        if name not in self._others:
            with self.screen.step(f"Starting Granian: {name}"):
                counts = self.directory / f"counts-{name}"
                counts.mkdir(exist_ok=True)
                told = {**self.environment, "PROMETHEUS_MULTIPROC_DIR": str(counts.absolute()), **(more or {})}
                log = (self.directory / f"{name}.log").absolute()
                server = granian(application=application, environment=told, log=log, options=options)
                server.start()
                self.running.callback(server.stop)
                self._others[name] = server
        return self._others[name]

    def require_running(self) -> None:
        """Raise ServersError with the end of the right log when something has ended by itself."""
        self.servers.require_running()
        self.shop.require_running()
        for server in self._others.values():
            server.require_running()


@contextmanager
def without_workers(house: House) -> Iterator[None]:
    """Have nobody settle and nobody at the queues for the length of the block."""
    try:
        house.shop.beat.stop()
        house.shop.worker.stop()
        yield
    finally:
        house.shop.start()


def granian(
    *, application: str, environment: Mapping[str, str], log: Path, options: Sequence[str] = WEB_OPTIONS
) -> Server:
    """Return a Granian, not yet started, with the shop's own options. ``/readyz`` must answer as the shop's does."""
    port = free_port()
    return Server(
        program=Program(
            executable=sys.executable,
            arguments=(sys.executable, "-m", "granian", *options, f"--port={port}", application),
            port=port,
            directory=ROOT,
            log=log,
            account=Account(),
            environment={"LOG_LEVEL": "INFO", **environment},
            is_ready=partial(is_healthy, port=port),
        )
    )


@contextmanager
def running_house(*, screen: Screen, size: Size, directory: Path = DIRECTORY / "house") -> Iterator[House]:
    """Run the shop as in production, on servers that are emptied first; nothing of it runs after the block.

    Django is set up in this process, for the same servers. ServersError: something does not start.
    """
    with ExitStack() as running:
        directory.mkdir(parents=True, exist_ok=True)
        _remove_leavings(directory)
        with screen.step("Starting a database and two Redis servers"):
            servers = running.enter_context(PrivateServers(directory=directory / "servers", is_fresh=True, environ={}))
            environment = servers.environment()
        shop = running.enter_context(Shop(directory=directory / "shop", environment=environment))
        with screen.step("Making the tables and filling the warehouse"):
            set_up_django(environment)
            from benchmarks import catalogue  # It needs Django.

            catalogue.migrate()
            catalogue.stock_catalogue()
        with screen.step("Starting Granian, a Celery worker and beat"):
            shop.start()
        house = House(
            directory=directory,
            size=size,
            screen=screen,
            servers=servers,
            shop=shop,
            environment=environment,
            running=running,
        )
        try:
            yield house
        except Exception:
            house.require_running()  # What has died explains more than whoever missed it.
            raise


def _remove_leavings(directory: Path) -> None:
    """Remove the logs, tickets and counts of an earlier run; the servers and the shop remove their own."""
    for path in directory.iterdir():
        if path.suffix in {".log", ".tickets", ".next", ".polls"}:
            path.unlink()
        if path.name.startswith("counts-"):
            shutil.rmtree(path)


def url_of(server: Server, path: str) -> str:
    """Return the address of a path of a server."""
    return f"http://{HOST}:{server.port}{path}"


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and of those it has begun."""
    master = psutil.Process(pid)
    times = [process.cpu_times() for process in (master, *master.children(recursive=True))]
    return float(sum(time_.user + time_.system for time_ in times))


def wait_until_empty(length: Callable[[], int], *, seconds: float = DRAIN_SECONDS_MAX) -> float:
    """Wait until a queue is empty and return the seconds that took. ServersError when it takes too long."""
    began = time.monotonic()
    while length():
        if time.monotonic() - began > seconds:
            raise ServersError(f"{length()} still wait after {seconds:.0f} s")
        time.sleep(POLL_SECONDS)
    return time.monotonic() - began
