"""One server process: whose it is, how it starts, answers, stops, and how it ends with its parent."""

import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from mirakuru import Executor, SimpleExecutor
from mirakuru.exceptions import ExecutorError

from benchmarks.servers.account import Account

HOST = "127.0.0.1"

# Below the range the kernel lends to clients (Linux: 32768 up). From that range a client that reconnects to a
# killed server may be lent the server's own port, connect to itself and keep the server from coming back.
PORTS = range(20_000, 30_000)
PORTS_TRIED_MAX = 100

START_TIMEOUT_SECONDS = 60  # Recovery after a kill under load takes MariaDB a while on a slow disk.
STOP_TIMEOUT_SECONDS = 2.5  # A server that needs longer is killed; both kinds recover from their logs.
POLL_SECONDS = 0.02
LOG_LINES_SHOWN = 15
LOG_LINE_LENGTH_SHOWN = 1_000  # A traceback in JSON is one line of any length.

PR_SET_PDEATHSIG = 1  # From linux/prctl.h.
LIBC = ctypes.CDLL(None)


class ServersError(Exception):
    """Raised when servers cannot be started or are not ours to control; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """How one server is run, and how to tell that it is ready."""

    executable: str
    arguments: tuple[str, ...]  # The first is the name it is called by.
    port: int
    directory: Path
    log: Path
    account: Account
    is_ready: Callable[[], bool] = lambda: True
    ready_line: bytes = b""  # What it writes into its log once it is ready, for what cannot be asked.
    environment: Mapping[str, str] = field(default_factory=dict)  # On top of the caller's own.


class ServerExecutor(Executor):
    """A process that mirakuru starts and waits for, and that the kernel ends with its parent."""

    def __init__(self, *, program: Program, log: BinaryIO) -> None:
        super().__init__(
            program.arguments,
            cwd=str(program.directory),
            timeout=START_TIMEOUT_SECONDS,
            sleep=POLL_SECONDS,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            popen_kwargs={
                "executable": program.executable,
                "user": program.account.uid,
                "group": program.account.gid,
                "extra_groups": program.account.extra_groups,
            },
        )
        self._program = program
        self._log_start = log.tell()

    @property
    def envvars(self) -> dict[str, str]:
        """Leave out mirakuru's mark: at exit it kills all whose mark contains our pid, other runs' servers too."""
        return {**os.environ, **self._program.environment}

    @property
    def _popen_kwargs(self) -> dict[str, Any]:
        return {**super()._popen_kwargs, "preexec_fn": partial(_begin_server, os.getpid())}

    def launch(self) -> None:
        """Start the process without waiting for it; ``start`` then waits."""
        SimpleExecutor.start(self)

    def pre_start_check(self) -> bool:
        """Look for no earlier server: the lock on the directory has settled that."""
        return False

    def after_start_check(self) -> bool:
        """Tell whether the server says that it is ready and answers as a client would see it."""
        return self._has_said_so() and self._program.is_ready()

    def _has_said_so(self) -> bool:
        with self._program.log.open("rb") as log:
            log.seek(self._log_start)
            return self._program.ready_line in log.read()


class Server:
    """One private server; a start after a stop or a kill finds the same port and the same data.

    Start it from the main thread: the kernel ties the server's life to the thread that made it, not to the process.
    What a server forks is its own: signals go to all of its process group.
    """

    def __init__(self, *, program: Program) -> None:
        self._program = program
        self._executor: ServerExecutor | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._program.log.stem

    @property
    def port(self) -> int:
        """The TCP port on the loopback address."""
        return self._program.port

    @property
    def pid(self) -> int:
        """The process id of the server itself; ServersError when it was not started or has been stopped."""
        return self._process().pid

    @property
    def is_running(self) -> bool:
        """Whether its process lives, ready or not."""
        return self._executor is not None and self._executor.running()

    def start(self) -> None:
        """Start the server, return once it answers; ServersError shows the end of its log when it does not."""
        if not self.is_running:
            self.launch()
            self.await_ready()

    def launch(self) -> None:
        """Start the server and return at once, so that others can start meanwhile; `await_ready` belongs to it."""
        if threading.current_thread() is not threading.main_thread():
            raise ServersError("start servers from the main thread: they end with the thread that started them")
        with self._program.log.open("ab") as log:
            self._executor = ServerExecutor(program=self._program, log=log)
            self._executor.launch()

    def await_ready(self) -> None:
        """Return once a launched server answers; ServersError shows the end of its log when it does not."""
        if self._executor is None:
            raise ServersError(f"{self.name} was not launched")
        try:
            self._executor.start()
        except ExecutorError as error:
            raise ServersError(f"{self.name} did not start:\n{self.log_end()}") from error

    def require_running(self) -> None:
        """Raise ServersError with the end of its log when it does not run, as after a crash."""
        if not self.is_running:
            raise ServersError(f"{self.name} has ended or never began:\n{self.log_end()}")

    def log_end(self) -> str:
        """Return the last lines of its log, for a message."""
        return end_of(self._program.log)

    def terminate(self) -> None:
        """Ask the server to end without waiting for it; `stop` belongs to it."""
        if self.is_running:
            self._process().terminate()
            self.resume()  # A paused server would not notice.

    def stop(self) -> None:
        """Ask the server to end and kill it if it does not; returns when it is gone."""
        self.terminate()
        if self.is_running:
            with suppress(subprocess.TimeoutExpired):
                self._process().wait(timeout=STOP_TIMEOUT_SECONDS)
        self.kill()

    def kill(self) -> None:
        """End the server by SIGKILL, as a crash would; returns when it is gone."""
        if self._executor is not None:
            self._executor.kill()
            self._executor = None

    def remove(self, name: str) -> None:
        """Remove a directory of the data of a server that does not run."""
        shutil.rmtree(self._program.directory / name)

    def restart(self) -> None:
        """Stop the server and start it again."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze the server: its connections stay open and nobody answers. Returns when it stands still."""
        os.killpg(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def resume(self) -> None:
        """Let a paused server go on."""
        os.killpg(self.pid, signal.SIGCONT)

    def _process(self) -> subprocess.Popen[Any]:
        if self._executor is None or self._executor.process is None:
            raise ServersError(f"{self.name} does not run")
        return self._executor.process


def executable(*names: str) -> str:
    """Return the path of the first program found, also where Debian keeps servers and a user's PATH does not look."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    for name in names:
        if found := shutil.which(name, path=path):
            return found
    raise ServersError(f"{' or '.join(names)} is not installed: run `make prepare`")


def free_port() -> int:
    """Return a port nobody listens on; drawn from the system, as parallel tests seed `random` alike."""
    for port in secrets.SystemRandom().sample(PORTS, k=PORTS_TRIED_MAX):
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            return port
    raise ServersError(f"no port of {HOST} between {PORTS.start} and {PORTS.stop} could be had")


def end_of(log: Path) -> str:
    """Return the last lines of a log, each cut to a length that can be read."""
    lines = log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
    return "\n".join(line[:LOG_LINE_LENGTH_SHOWN] for line in lines)


def end_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when the thread of the parent that made it dies, see prctl(2).

    A change of user clears that order and a fork does not hand it on.
    """
    if sys.platform == "linux":
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent_pid:  # The parent died before the order was given.
            os._exit(1)


def _begin_server(parent_pid: int) -> None:
    """Run in the new process before it becomes the server, after its change of user.

    The session of its own keeps Ctrl-C in the parent's terminal away from the server.
    """
    os.setsid()
    end_with_parent(parent_pid)
