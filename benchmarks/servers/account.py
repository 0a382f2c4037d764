"""The user the servers run as."""

import os
import pwd
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Account:
    """The user the servers run as; without ids it is the caller."""

    uid: int | None = None
    gid: int | None = None

    @property
    def extra_groups(self) -> list[int] | None:
        """None of the caller's groups for another user; None leaves the caller with them."""
        return None if self.uid is None else []

    def own(self, path: Path) -> None:
        """Give the file or directory to this user."""
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)

    def can_enter(self, directory: Path) -> bool:
        """Ask the kernel, as this user: the modes, owners and ACLs of all parents count."""
        return self.run(["test", "-x", str(directory)], directory=Path("/")).returncode == 0

    def run(self, command: list[str], *, directory: Path) -> subprocess.CompletedProcess[str]:
        """Run a command to its end as this user, in `directory`, with its temporary files there.

        If this process is interrupted meanwhile, the command and all it has started are killed.
        """
        process = subprocess.Popen(
            command,
            user=self.uid,
            group=self.gid,
            extra_groups=self.extra_groups,
            cwd=directory,
            env={**os.environ, "TMPDIR": str(directory)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        with process:
            try:
                output, _ = process.communicate()
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(command, process.returncode, output)


def server_account() -> Account:
    """Return nobody for root, as MariaDB refuses to run as root; anyone else runs servers as themselves."""
    if os.geteuid() != 0:
        return Account()
    nobody = pwd.getpwnam("nobody")
    return Account(uid=nobody.pw_uid, gid=nobody.pw_gid)
