"""Run private servers from the command line: in the foreground until a signal, or around one command after ``--``."""

import argparse
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

from benchmarks.servers import PrivateServers, ServersError


def main() -> int:
    """Return the exit status: the command's own, 1 when the servers do not start, 128 + n after signal n."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.servers", description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path("var/dev/servers"), help="where the data stays")
    parser.add_argument("command", nargs="*", help="what to run; without it the servers' variables are printed")
    arguments = parser.parse_args()
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _leave)
    try:
        with PrivateServers(directory=arguments.directory) as servers:
            return _serve(environment=servers.environment(), command=arguments.command)
    except ServersError as error:
        print(error, file=sys.stderr)
        return 1


def _leave(signum: int, _frame: FrameType | None) -> NoReturn:
    """Turn a signal into an exit that still leaves the ``with`` blocks."""
    sys.exit(128 + signum)


def _serve(*, environment: dict[str, str], command: list[str]) -> int:
    """Run the command, or else print the variables for a shell to read and wait for a signal."""
    if command:
        return subprocess.run(command, env={**os.environ, **environment}, check=False).returncode
    for name, value in environment.items():
        print(f"export {name}={shlex.quote(value)}", flush=True)
    signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
