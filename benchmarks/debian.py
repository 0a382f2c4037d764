"""Trees of other Debian releases, for servers or a bare machine that this one is not; made by debootstrap, as root.

Nothing of this machine is changed: what debootstrap mounts it mounts in a namespace of its own, which the kernel ends
with it, however that happens.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.servers import ServersError
from benchmarks.servers.process import end_of, executable

# Run in front of a command: mounts of its own, and the kernel kills it with whoever began it.
APART = ("unshare", "--mount", "--propagation", "private", "--fork", "--kill-child")

MEANWHILE_SECONDS = 30
LEAVE_SECONDS = 10


def make_tree(tree: Path, *, release: str, packages: Sequence[str]) -> None:
    """Make a small system of the release with these packages, unless it is there; half a one is begun anew.

    ServersError: not root, no debootstrap, or it failed, with the end of its log, which stays beside the tree.
    """
    if tree.exists():
        return
    if os.geteuid() != 0:
        raise ServersError("debootstrap makes trees as root only: run this as root")
    unfinished, log = tree.with_name(f"{tree.name}.new"), tree.with_name(f"{tree.name}.log")
    shutil.rmtree(unfinished, ignore_errors=True)
    tree.parent.mkdir(parents=True, exist_ok=True)
    command = [executable("debootstrap"), "--variant=minbase", f"--include={','.join(packages)}", release]
    if run_to_log([*APART, *command, str(unfinished), *mirror()], log=log) != 0:
        raise ServersError(f"debootstrap failed:\n{end_of(log)}")
    unfinished.rename(tree)


def mirror() -> list[str]:
    """Where this machine has its own packages from, or nothing, for debootstrap to use Debian's own."""
    command = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Label: Debian"]
    sites = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return sites[:1]


def run_to_log(
    command: Sequence[str],
    *,
    log: Path,
    environment: dict[str, str] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> int:
    """Run a command to its end, all that it says into a log; return its status. Interrupted, it ends all of it.

    ``meanwhile`` is called every half minute.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        try:
            return _wait(process, meanwhile)
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=LEAVE_SECONDS)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise


def _wait(process: subprocess.Popen[bytes], meanwhile: Callable[[], None]) -> int:
    while True:
        try:
            return process.wait(timeout=MEANWHILE_SECONDS)
        except subprocess.TimeoutExpired:
            meanwhile()
