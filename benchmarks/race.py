"""Runs a rush as a child process and passes on what it tells."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from benchmarks.plan import Plan, Progress, Result
from benchmarks.servers.process import ServersError, end_of
from benchmarks.shop import ROOT


def run_rush(plan: Plan, *, log: Path, on_progress: Callable[[Progress], None]) -> Result:
    """Run the plan to its end; `on_progress` is called some twenty times a second, from this thread.

    ServersError with the end of `log` when the process fails. It never outlives this call or this process.
    """
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.rush", str(os.getpid())],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            # Away from the terminal's Ctrl-C: whoever started it decides when it ends.
            start_new_session=True,
        )
    with process:
        try:
            result = _listen(process, plan=plan, on_progress=on_progress)
        finally:
            process.kill()
    if result is None:
        raise ServersError(f"the buyers' process failed:\n{end_of(log)}")
    return result


def _listen(process: subprocess.Popen[str], *, plan: Plan, on_progress: Callable[[Progress], None]) -> Result | None:
    """Hand over the plan and read line by line; None when it ends without a result."""
    stdin, stdout = _pipes(process)
    with suppress(BrokenPipeError), stdin:  # It died early: what it wrote until then tells more.
        json.dump(plan.to_json(), stdin)
    for line in stdout:
        told: dict[str, Any] = json.loads(line)
        if "result" in told:
            return Result.from_json(told["result"])
        on_progress(Progress(**told["progress"]))
    return None


def _pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018  both were asked for
    return process.stdin, process.stdout
