"""Known vulnerabilities of what is pinned, asked of the advisory database by pip-audit. Ends with 1 if there are any.

Where the database cannot be reached, nothing is known and the check goes on; it says so where nobody can overlook it.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# The one file of the shop's own; the other two hold it or stand beside it.
FILES = ("requirements-dev.txt", "requirements-rehearsal.txt")
# What the database is tried with: if it does not know Django, it knows nothing.
PROBE = "django"
PROBE_TIMEOUT_SECONDS = 20
TIMEOUT_SECONDS = 120
SOCKET_TIMEOUT_SECONDS = 8
# Advisory: why it does not concern the shop. Each line wants a date to look again.
ACCEPTED: dict[str, str] = {}


class Unreachable(Exception):
    """Raised when the database did not answer, or answered that it knows none of the packages."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What the database said: a line per vulnerability, and the packages it does not know."""

    vulnerable: Sequence[str]
    unknown: Sequence[str]
    packages: int


def main() -> int:
    """Ask, print, and return the exit status."""
    try:
        with tempfile.TemporaryDirectory() as place:
            probe = Path(place) / "probe.txt"
            probe.write_text(pin_of(PROBE, (ROOT / FILES[0]).read_text()))
            ask([probe], timeout_seconds=PROBE_TIMEOUT_SECONDS)
        findings = ask([ROOT / name for name in FILES], timeout_seconds=TIMEOUT_SECONDS)
    except Unreachable as reason:
        print(banner(str(reason)), file=sys.stderr)
        return 0
    print(f"pip-audit: {findings.packages} packages, {len(findings.vulnerable)} vulnerabilities")
    for line in (*findings.vulnerable, *(f"not known to the database: {name}" for name in findings.unknown)):
        print(f"pip-audit: {line}", file=sys.stderr)
    return 1 if findings.vulnerable else 0


def pin_of(name: str, locked: str) -> str:
    """Cut a package with its hashes out of a lock file."""
    lines = iter(locked.splitlines())
    for line in lines:
        if line.startswith(f"{name}=="):
            return "\n".join([line, *_continued(line, lines)]) + "\n"
    raise LookupError(f"{name} is not pinned")


def _continued(line: str, lines: Iterator[str]) -> Iterator[str]:
    while line.endswith("\\"):
        line = next(lines)
        yield line


def ask(files: Sequence[Path], *, timeout_seconds: int) -> Findings:
    """Have pip-audit ask for what the files pin; Unreachable: there was no answer to build on."""
    named = [word for file in files for word in ("--requirement", str(file))]
    command = [
        *(sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--progress-spinner=off"),
        *(f"--timeout={SOCKET_TIMEOUT_SECONDS}", "--format=json", *named),
    ]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=timeout_seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise Unreachable(f"no answer within {timeout_seconds} seconds") from error
    try:
        return read(json.loads(ran.stdout))
    except ValueError as error:
        raise Unreachable(ran.stderr.strip()[-500:] or "pip-audit said nothing") from error


def read(report: dict[str, Any]) -> Findings:
    """Read pip-audit's report; Unreachable: every package was skipped."""
    asked = report["dependencies"]
    unknown = [package["name"] for package in asked if "skip_reason" in package]
    if len(unknown) == len(asked):
        raise Unreachable("the database that this machine reaches knows none of the packages")
    vulnerable = [
        f"{package['name']} {package['version']}: {found['id']}, mended in {', '.join(found['fix_versions']) or 'none'}"
        for package in asked
        for found in package.get("vulns", ())
        if not ACCEPTED.keys() & {found["id"], *found.get("aliases", ())}
    ]
    return Findings(vulnerable=vulnerable, unknown=unknown, packages=len(asked))


def banner(reason: str) -> str:
    """Say so that it is seen between the lines of other checks."""
    rule = "!" * 100
    return f"{rule}\nNOT AUDITED. Whether a pinned package has a known vulnerability was NOT checked:\n{reason}\n{rule}"


if __name__ == "__main__":
    sys.exit(main())
