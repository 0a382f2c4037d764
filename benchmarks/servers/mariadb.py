"""How the private MariaDB is installed and run."""

import os
import shutil
from functools import partial
from pathlib import Path

from benchmarks.servers import database
from benchmarks.servers.account import Account
from benchmarks.servers.directory import write_private
from benchmarks.servers.process import HOST, Program, ServersError, executable, free_port
from benchmarks.servers.stack import Stack

OPTIONS = (
    *database.OPTIONS,
    # Without a socket no path is too long for it, and root cannot log in at all.
    "--socket=",
    "--collation-server=utf8mb4_unicode_ci",
    "--innodb-log-file-size=48M",
)

# The socket method gives root no password that would do over TCP; --force does without a host name that resolves.
INSTALL_OPTIONS = (
    "--auth-root-authentication-method=socket",
    "--auth-root-socket-user=root",
    "--skip-test-db",
    "--force",
)


def program(*, data: Path, account: Account, stack: Stack, password: str) -> Program:
    """Return the command for a MariaDB with its files in `data`, where its system tables are made if need be."""
    tables = data / "tables"
    if not tables.exists():
        _install(tables, account=account)
    init = data.with_suffix(".sql")
    write_private(init, database.INIT_SQL.format(host=HOST, password=password), account=account)
    port = free_port()
    command = stack.command("mariadbd")
    files = (f"--datadir={tables}", f"--tmpdir={data}", f"--pid-file={data / 'pid'}", f"--init-file={init}")
    return Program(
        executable=command.executable,
        arguments=(*command.arguments, "--no-defaults", f"--port={port}", *files, *OPTIONS),
        port=port,
        directory=data,
        log=data.with_suffix(".log"),
        account=account,
        is_ready=partial(database.is_ready, port=port, password=password),
    )


def _install(tables: Path, *, account: Account) -> None:
    """Make the system tables; the rename at the end tells whole ones from those of an interrupted run.

    The installer of a killed run may write on for a second, hence a name of our own and no complaint about its files.
    """
    for leftover in tables.parent.glob(f"{tables.name}.*"):
        shutil.rmtree(leftover, ignore_errors=True)
    unfinished = tables.with_suffix(f".{os.getpid()}")
    # Without defaults, as with the server: no option file of this machine shall have a say.
    command = [executable("mariadb-install-db"), "--no-defaults", f"--datadir={unfinished}", *OPTIONS, *INSTALL_OPTIONS]
    done = account.run(command, directory=tables.parent)
    if done.returncode != 0:
        raise ServersError(f"mariadb-install-db failed:\n{done.stdout}")
    unfinished.rename(tables)
