"""One run of the tests on one stack, and what came of it."""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from benchmarks.debian import run_to_log
from benchmarks.servers.process import end_of

# What depends on neither server: the model of the protocol, and what a browser makes of a page.
LEFT_OUT = ("tests/model", "tests/browser", "tests/e2e")
# For a single test: what is measured here is not how fast this machine is today.
SECONDS_MAX = 900


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run of pytest has counted; ``failed`` are the names of tests, ``seconds`` the whole run."""

    tests: int
    passed: int
    skipped: int
    failed: Sequence[str]
    seconds: float
    status: int

    @property
    def is_good(self) -> bool:
        """Whether tests ran, and all that ran has passed."""
        return self.status == 0 and self.passed > 0 and not self.failed and not self.skipped


def run_suite(
    *, environment: Mapping[str, str], results: Path, log: Path, arguments: Sequence[str], tell: Callable[[str], None]
) -> Outcome:
    """Run the tests with a stack's variables; pytest's own words are in the log, its last line is told now and then."""
    results.unlink(missing_ok=True)
    ignored = [option for path in LEFT_OUT for option in ("--ignore", path)]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "2",
        f"--timeout={SECONDS_MAX}",
        *ignored,
        f"--junitxml={results}",
        *arguments,
    ]
    begun = time.monotonic()
    variables = {**os.environ, **environment}
    status = run_to_log(
        command, log=log, environment=variables, meanwhile=lambda: tell(end_of(log).rpartition("\n")[2])
    )
    return _read(results, seconds=time.monotonic() - begun, status=status)


def run_demo(*, environment: Mapping[str, str], log: Path) -> bool:
    """Let a whole shop sell out on a stack, with web server, worker and beat; tell whether every law held."""
    command = [sys.executable, "-m", "benchmarks.demo"]
    return run_to_log(command, log=log, environment={**os.environ, **environment}) == 0


def _read(results: Path, *, seconds: float, status: int) -> Outcome:
    cases = list(ET.parse(results).iter("testcase")) if results.exists() else []  # noqa: S314  pytest's own
    failed = [_name(case) for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    names = {_name(case) for case in cases}
    return Outcome(
        tests=len(names),
        passed=len(names) - len(set(failed)) - skipped,
        skipped=skipped,
        failed=sorted(set(failed)),
        seconds=round(seconds, 1),
        status=status,
    )


def _name(case: ET.Element) -> str:
    return f"{case.get('classname')}::{case.get('name')}"
