"""One turn of wrk, and what it says."""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.servers import ServersError
from benchmarks.servers.process import executable

PURCHASES = "benchmarks/purchase.lua"
POLLS = "benchmarks/polls.lua"
PATIENCE_SECONDS = 60
_MILLISECONDS = {"us": 0.001, "ms": 1.0, "s": 1_000.0, "m": 60_000.0}


@dataclass(frozen=True, kw_only=True)
class Load:
    """What a turn of wrk has seen: `lost` are calls that failed on the way or took longer than two seconds."""

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    not_2xx: int
    lost: int

    @property
    def per_second(self) -> float:
        """Answers a second, whatever they said."""
        return self.requests / self.seconds


def load(
    url: str, *, seconds: int, connections: int, script: str = "", variables: Mapping[str, str] | None = None
) -> Load:
    """Send calls on so many connections for so long, each as soon as the last is answered.

    ServersError when wrk says what cannot be read.
    """
    command = [executable("wrk"), "-t1", f"-c{connections}", f"-d{seconds}s", "--latency"]
    command += ["-s", script] if script else []
    done = subprocess.run(
        [*command, url],
        env={**os.environ, **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds + PATIENCE_SECONDS,
    )
    if done.returncode:
        raise ServersError(f"wrk has failed:\n{done.stdout}{done.stderr}")
    return read(done.stdout)


def read(said: str) -> Load:
    """Read what wrk has printed. ServersError when it is not what wrk prints."""
    head = re.search(r"(\d+) requests in\s+([\d.]+)(us|ms|s|m),", said)
    times = re.findall(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s|m)\s*$", said, re.MULTILINE)
    parts = {part: float(value) * _MILLISECONDS[unit] for part, value, unit in times}
    if head is None or len(parts) != 2:
        raise ServersError(f"wrk says what cannot be read:\n{said}")
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", said)
    return Load(
        requests=int(head[1]),
        seconds=float(head[2]) * _MILLISECONDS[head[3]] / 1_000,
        p50_ms=parts["50"],
        p99_ms=parts["99"],
        not_2xx=int(refused[1]) if refused else 0,
        lost=sum(map(int, errors.groups())) if errors else 0,
    )


def tickets(path: Path, *, delay_ms: float = 0, attempt: int = 1) -> dict[str, str]:
    """Return the variables that tell the scripts which tickets to send, and how long to wait between two calls."""
    return {"TICKETS": str(path), "DELAY_MS": f"{delay_ms:g}", "ATTEMPT": str(attempt)}
