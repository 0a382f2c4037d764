"""The README's two commands on a machine that has nothing: ``make test-fresh``; the result: ``var/fresh/report.json``.

The machine is a bare Debian in a directory: git, make and certificates besides what every Debian has, no Python, no
locale, no sudo, no init system, nothing of this machine but its network. The project comes there as a clone.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.debian import APART, make_tree, run_to_log
from benchmarks.screen import Screen
from benchmarks.servers.process import end_of
from benchmarks.stage import run_on_stage

DIRECTORY = Path("var/fresh")
RELEASES = ("bookworm", "trixie")  # Debian 12 and 13.
PACKAGES = ("git", "make", "ca-certificates")

# How this machine reaches the package registries: files that are copied, variables that are passed on.
NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf")
NETWORK_VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CERT")
CERTIFICATES = "usr/local/share/ca-certificates"
# Where the superuser of a Debian is at home.
HOME = "/root"
CLONE = f"{HOME}/seckill"
VARIABLES = {"HOME": HOME, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM": "dumb"}

# Run as the first process of its own: what it mounts and starts ends with it.
INSIDE = """set -e
mount -t proc proc "$1/proc"
mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
exec chroot "$@"
"""


def main() -> int:
    """Run what the command line chooses; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fresh", description=__doc__)
    parser.add_argument("--release", action="append", choices=RELEASES, help=f"({RELEASES[0]}); may be given again")
    parser.add_argument("--only", action="append", help="a command instead of the README's, such as 'make demo'")
    parser.add_argument("--keep", action="store_true", help="leave the machine there afterwards, to look around")
    arguments = parser.parse_args()
    releases, commands = arguments.release or RELEASES[:1], arguments.only or commands_of_the_readme()
    return run_on_stage(
        "fresh machine", lambda screen: _run(screen, releases=releases, commands=commands, is_kept=arguments.keep)
    )


def commands_of_the_readme() -> list[str]:
    """The commands in the first block of the README, without what is said of them."""
    block = re.search(r"^```sh\n(.*?)^```", Path("README.md").read_text(), re.MULTILINE | re.DOTALL)
    return [line.partition("#")[0].strip() for line in block.group(1).splitlines()] if block else []


def _run(screen: Screen, *, releases: Sequence[str], commands: Sequence[str], is_kept: bool) -> int:
    report: dict[str, dict[str, float]] = {}
    status = 0
    for release in releases:
        with _machine(screen, release=release, is_kept=is_kept) as machine:
            seconds = report[release] = {}
            for command in [f"git clone --quiet {CLONE}.bundle {CLONE}", *commands]:
                begun = time.monotonic()
                log = DIRECTORY / f"{release}-{command.replace(' ', '-').partition('---')[0]}.log"
                status = _run_inside(screen, machine=machine, command=command, log=log)
                seconds[command] = round(time.monotonic() - begun, 1)
                if status != 0:
                    screen.line(f"{command} ended with {status} on {release}:\n{end_of(log)}")
                    break
                screen.line(f"{command} took {seconds[command]:.0f} s: {end_of(log).rpartition(chr(10))[2]}")
        (DIRECTORY / "report.json").write_text(json.dumps({"status": status, "seconds": report}, indent=2) + "\n")
        if status != 0:
            return 1
    return 0


@contextmanager
def _machine(screen: Screen, *, release: str, is_kept: bool) -> Iterator[Path]:
    """Make a bare machine with the project as a bundle in root's home; the next one begins from the same."""
    bare, machine = (DIRECTORY / f"{release}{suffix}" for suffix in ("-bare", ""))
    try:
        with screen.step(f"Making a bare {release}"):
            make_tree(bare.absolute(), release=release, packages=PACKAGES)
            _remove(machine)
            subprocess.run(["cp", "--archive", "--reflink=auto", bare, machine], check=True)
            _connect(machine)
            bundle = machine / f"{CLONE}.bundle".removeprefix("/")
            subprocess.run(["git", "bundle", "create", "--quiet", bundle, "HEAD"], check=True)
        yield machine
    finally:
        if not is_kept:
            _remove(machine)


def _connect(machine: Path) -> None:
    """Let it reach the registries as this machine does."""
    for name in NETWORK_FILES:
        if Path(name).exists():
            shutil.copy(name, machine / name.removeprefix("/"))
    if Path("/", CERTIFICATES).exists():
        shutil.copytree(Path("/", CERTIFICATES), machine / CERTIFICATES, dirs_exist_ok=True)
    subprocess.run(["chroot", machine, "update-ca-certificates"], check=True, capture_output=True)


def _run_inside(screen: Screen, *, machine: Path, command: str, log: Path) -> int:
    """Run a command in root's home, or in the clone once it is there, as on a machine of its own."""
    home = CLONE if (machine / CLONE.removeprefix("/")).exists() else HOME
    passed = {name: os.environ[name] for name in NETWORK_VARIABLES if name in os.environ}
    variables = [f"{name}={value}" for name, value in {**VARIABLES, **passed}.items()]
    inside = ["env", "-i", *variables, "bash", "-c", f"cd {home} && {command}"]
    screen.line(f"{command}; tail -f {log} tells more")
    return run_to_log(
        [*APART, "--pid", "bash", "-c", INSIDE, "inside", str(machine.absolute()), *inside],
        log=log,
        meanwhile=lambda: screen.line(end_of(log).rpartition("\n")[2]),
    )


def _remove(machine: Path) -> None:
    """Nothing is mounted there: mounts are of a namespace that has ended."""
    if machine.exists():
        shutil.rmtree(machine)


if __name__ == "__main__":
    sys.exit(main())
