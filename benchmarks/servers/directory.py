"""The directory servers live in: held by one process, within reach of the servers' user, with its own secrets."""

import fcntl
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.servers.account import Account
from benchmarks.servers.process import ServersError


@dataclass(frozen=True, kw_only=True)
class Secrets:
    """What the servers and the shop of a directory keep from start to start."""

    database_password: str
    secret_key: str


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory for this process; the kernel lets go of it whichever way the process ends.

    ServersError names the process that holds it already.
    """
    path = directory.with_name(f"{directory.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("a+")
    except PermissionError as error:
        raise ServersError(f"{error}: run this as the user who made it, or remove it") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise ServersError(f"process {lock.read().strip()} runs servers in {directory}: stop it first") from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def home_directory(*, directory: Path, account: Account) -> Path:
    """Make `directory` one that the account can enter, if need be as a symlink to elsewhere; return the real one."""
    if directory.is_symlink() and not _is_ours(directory):
        directory.unlink()  # What it pointed to was cleaned away, and may be another user's by now.
    directory.mkdir(parents=True, exist_ok=True)
    home = directory.resolve()
    if account.uid is None:
        return home
    home.chmod(0o711)
    if account.can_enter(home):
        return home
    try:
        directory.rmdir()
    except OSError as error:
        raise ServersError(f"user {account.uid} cannot reach the servers' data in {directory}: remove it") from error
    directory.symlink_to(_temporary_directory(account))
    return directory.resolve()


def data_directory(path: Path, *, account: Account, is_fresh: bool) -> Path:
    """Make the directory one server writes in, emptied first if it shall be fresh; an earlier run's log goes anyway."""
    if is_fresh and path.exists():
        shutil.rmtree(path)
    path.with_suffix(".log").unlink(missing_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    account.own(path)
    return path


def kept_secrets(home: Path) -> Secrets:
    """Return the secrets of this directory, made on first use."""
    path = home / "secrets.json"
    if not path.exists():
        made = Secrets(database_password=secrets.token_urlsafe(24), secret_key=secrets.token_urlsafe(48))
        write_private(path, json.dumps(asdict(made)), account=Account())
    return Secrets(**json.loads(path.read_text()))


def write_private(path: Path, text: str, *, account: Account) -> None:
    """Write a file for the account's eyes only; a reader finds the old text or the new, never a part."""
    new = path.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text(text)
    account.own(new)
    new.replace(path)


def _is_ours(directory: Path) -> bool:
    return directory.exists() and directory.stat().st_uid == os.geteuid()


def _temporary_directory(account: Account) -> Path:
    directory = Path(tempfile.mkdtemp(prefix="seckill-servers-"))
    directory.chmod(0o711)
    if not account.can_enter(directory):
        raise ServersError(f"user {account.uid} cannot enter {directory}: set TMPDIR to a directory open to all")
    return directory
