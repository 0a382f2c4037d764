"""How the private MySQL is installed and run."""

import os
import shutil
from functools import partial
from pathlib import Path

from benchmarks.servers import database
from benchmarks.servers.account import Account
from benchmarks.servers.directory import write_private
from benchmarks.servers.process import HOST, Program, ServersError, free_port
from benchmarks.servers.stack import Command, Stack

# The tables' collation is the server's own, as with somebody who sets none.
OPTIONS = (
    *database.OPTIONS,
    # It insists on a socket: a name without a path lies in the data directory, and none is too long.
    "--socket=socket",
    "--mysqlx=OFF",
    "--secure-file-priv=NULL",
    "--innodb-redo-log-capacity=96M",
)

# It tells root's password to the log of the installation; nobody needs either. Who waits for whom stands in a schema
# of its own, which MariaDB does not have.
INIT_SQL = """ALTER USER 'root'@'localhost' ACCOUNT LOCK;
GRANT SELECT ON performance_schema.* TO 'seckill'@'{host}';
"""


def program(*, data: Path, account: Account, stack: Stack, password: str) -> Program:
    """Return the command for a MySQL with its files in `data`, where its system tables are made if need be."""
    command = _server(stack)
    tables = data / "tables"
    if not tables.exists():
        _install(tables, command=command, account=account)
    init = data.with_suffix(".sql")
    write_private(init, (database.INIT_SQL + INIT_SQL).format(host=HOST, password=password), account=account)
    port = free_port()
    files = (f"--datadir={tables}", f"--tmpdir={data}", f"--pid-file={data / 'pid'}", f"--init-file={init}")
    return Program(
        executable=command.executable,
        arguments=(*command.arguments, f"--port={port}", *files, *OPTIONS),
        port=port,
        directory=data,
        log=data.with_suffix(".log"),
        account=account,
        is_ready=partial(database.is_ready, port=port, password=password),
    )


def _server(stack: Stack) -> Command:
    """Return how every call of it begins: without option files, and with its messages and plugins found."""
    command = stack.command("mysqld")
    base = Path(stack.file("usr/share/mysql")).parent.parent
    return Command(executable=command.executable, arguments=(*command.arguments, "--no-defaults", f"--basedir={base}"))


def _install(tables: Path, *, command: Command, account: Account) -> None:
    """Make the system tables; the rename at the end tells whole ones from those of an interrupted run."""
    for leftover in tables.parent.glob(f"{tables.name}.*"):
        shutil.rmtree(leftover, ignore_errors=True)
    unfinished = tables.with_suffix(f".{os.getpid()}")
    done = account.run(
        [command.executable, *command.arguments[1:], f"--datadir={unfinished}", "--initialize"],
        directory=tables.parent,
    )
    if done.returncode != 0:
        raise ServersError(f"mysqld --initialize failed:\n{done.stdout}")
    unfinished.rename(tables)
