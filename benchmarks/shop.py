"""The shop's own processes, Granian, one Celery worker and beat, run against servers that are there already."""

import json
import shutil
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Self

from benchmarks.servers.account import Account
from benchmarks.servers.directory import locked
from benchmarks.servers.process import HOST, Program, Server, ServersError, executable, free_port

ROOT = Path(__file__).resolve().parent.parent

WEB_OPTIONS = (
    "--interface=asgi",
    f"--host={HOST}",
    "--workers=2",
    "--no-ws",
    "--backlog=4096",
    "--workers-kill-timeout=1",
)
# It is alone with its broker: there is nobody to compare clocks with or to tell that it lives.
WORKER_OPTIONS = (
    "--queues=settle,sweep,slow,archive,alerts,money",
    "--concurrency=2",
    "--without-gossip",
    "--without-mingle",
    "--without-heartbeat",
    "--loglevel=INFO",
)
WORKER_READY = b" ready."
# As in deploy/systemd: on a machine that has too little for both, what is reserved waits, and who buys does not.
YIELDING = ("nice", "-n", "5")
BEAT_OPTIONS = ("--loglevel=INFO", "--pidfile=")
BEAT_READY = b"beat: Starting..."

HEALTH_TIMEOUT_SECONDS = 5


class Shop:
    """The shop's processes, for the length of a ``with`` block; none runs before it is started.

    `web`, `worker` and `beat` can be started, stopped, killed, paused and resumed one by one. `environment` is what
    config.settings reads, on top of the process's own; logs are in `directory`. Without `port` it is a free one.

    ServersError: another process runs a shop in `directory`, the port is taken, a process does not start.
    """

    def __init__(self, *, directory: Path, environment: Mapping[str, str], port: int | None = None) -> None:
        self._directory = directory.absolute()
        self._environment = environment
        self._port = port
        self._servers: dict[str, Server] = {}
        self._held = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as entering:  # Lets go of the directory when a later step fails.
            entering.enter_context(locked(self._directory))
            port = free_port() if self._port is None else _require_free(self._port)
            self._directory.mkdir(exist_ok=True)
            for old_log in self._directory.glob("*.log"):
                old_log.unlink()
            # Below INFO nobody says that he is ready.
            environment = {
                "LOG_LEVELS": "celery.beat=INFO",
                **self._environment,
                "LOG_LEVEL": "INFO",
                "PUBLIC_URL": f"http://{HOST}:{port}",
                "PROMETHEUS_MULTIPROC_DIR": str(self._fresh_counts()),
            }
            programs = _programs(directory=self._directory, environment=environment, port=port)
            self._servers = {program.log.stem: Server(program=program) for program in programs}
            self._held = entering.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        with self._held:
            try:
                self.stop()
            finally:
                self.kill()

    def _fresh_counts(self) -> Path:
        """Return an empty directory for what the processes count."""
        counts = self._directory / "counts"
        shutil.rmtree(counts, ignore_errors=True)
        counts.mkdir()
        return counts

    @property
    def web(self) -> Server:
        """Granian, with two processes of four threads."""
        return self._servers["web"]

    @property
    def worker(self) -> Server:
        """The Celery worker for all queues, with two processes."""
        return self._servers["worker"]

    @property
    def beat(self) -> Server:
        """Celery's beat."""
        return self._servers["beat"]

    @property
    def directory(self) -> Path:
        """Where the logs are."""
        return self._directory

    @property
    def url(self) -> str:
        """Where the shop is, without a slash at the end."""
        return f"http://{HOST}:{self.web.port}"

    def start(self) -> None:
        """Start what does not run, all at once; return when the last is ready. The tables must be there."""
        for server in self._servers.values():
            if not server.is_running:
                server.launch()
        for server in self._servers.values():
            server.await_ready()

    def stop(self) -> None:
        """Ask all to end, all at once, and kill what does not; returns when they are gone."""
        for server in self._servers.values():
            server.terminate()
        for server in self._servers.values():
            server.stop()

    def kill(self) -> None:
        """End all by SIGKILL, as a crash of the machine would."""
        for server in self._servers.values():
            server.kill()

    def require_running(self) -> None:
        """Raise ServersError with the end of its log when a process has ended by itself."""
        for server in self._servers.values():
            server.require_running()


def _programs(*, directory: Path, environment: Mapping[str, str], port: int) -> list[Program]:
    program = partial(
        Program,
        port=port,
        directory=ROOT,
        account=Account(),
        environment=environment,
    )
    celery = (sys.executable, "-m", "celery", "-A", "config")
    return [
        program(
            executable=sys.executable,
            arguments=(sys.executable, "-m", "granian", *WEB_OPTIONS, f"--port={port}", "benchmarks.asgi:application"),
            log=directory / "web.log",
            is_ready=partial(is_healthy, port=port),
        ),
        program(
            # Its own name keeps it apart from other workers, where the broker is an existing one.
            executable=executable("nice"),
            arguments=(*YIELDING, *celery, "worker", *WORKER_OPTIONS, f"--hostname=shop-{port}@%h"),
            log=directory / "worker.log",
            ready_line=WORKER_READY,
        ),
        program(
            executable=sys.executable,
            arguments=(*celery, "beat", *BEAT_OPTIONS),
            log=directory / "beat.log",
            ready_line=BEAT_READY,
        ),
    ]


def is_healthy(*, port: int) -> bool:
    """Tell whether the shop answers and reaches all its servers."""
    connection = HTTPConnection(HOST, port, timeout=HEALTH_TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/readyz")
        answer = json.loads(connection.getresponse().read())
        return bool(answer["status"] == "ready")
    except (OSError, HTTPException, ValueError, LookupError):
        return False
    finally:
        connection.close()


def is_free(port: int) -> bool:
    """Tell whether nobody listens on the port; closed connections that linger there do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _require_free(port: int) -> int:
    """Return the port, or raise ServersError; Granian itself would share it with another Granian."""
    if not is_free(port):
        raise ServersError(f"port {port} of {HOST} cannot be had: choose another")
    return port
