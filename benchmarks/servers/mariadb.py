"""How the private MariaDB is installed and run."""

import os
import shutil
from functools import partial
from pathlib import Path

import MySQLdb  # type: ignore[import-untyped]  # mysqlclient ships no types.

from benchmarks.servers.account import Account
from benchmarks.servers.directory import write_private
from benchmarks.servers.process import HOST, Program, ServersError, executable, free_port

OPTIONS = (
    # Nothing here uses the Unix socket: without one no path is too long for it, and root cannot log in at all.
    "--socket=",
    f"--bind-address={HOST}",
    "--skip-name-resolve",
    "--skip-log-bin",
    "--character-set-server=utf8mb4",
    "--collation-server=utf8mb4_unicode_ci",
    "--innodb-flush-log-at-trx-commit=1",
    "--innodb-buffer-pool-size=256M",
    "--innodb-log-file-size=48M",
    "--max-connections=300",
)

# The socket method gives root no password that would do over TCP; --force does without a host name that resolves.
INSTALL_OPTIONS = (
    "--auth-root-authentication-method=socket",
    "--auth-root-socket-user=root",
    "--skip-test-db",
    "--force",
)

# Run at each start, one statement a line; the dba is there for tests that set what the shop's user may not.
# Django names its test databases test_seckill, test_seckill_gw0 and so on.
INIT_SQL = r"""CREATE DATABASE IF NOT EXISTS `seckill` CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;
CREATE USER IF NOT EXISTS 'seckill'@'{host}' IDENTIFIED BY '{password}';
ALTER USER 'seckill'@'{host}' IDENTIFIED BY '{password}';
GRANT ALL PRIVILEGES ON `seckill`.* TO 'seckill'@'{host}';
GRANT ALL PRIVILEGES ON `test\_seckill%`.* TO 'seckill'@'{host}';
GRANT PROCESS ON *.* TO 'seckill'@'{host}';
CREATE USER IF NOT EXISTS 'dba'@'{host}' IDENTIFIED BY '{password}';
ALTER USER 'dba'@'{host}' IDENTIFIED BY '{password}';
GRANT ALL PRIVILEGES ON *.* TO 'dba'@'{host}' WITH GRANT OPTION;
"""


def program(*, data: Path, account: Account, password: str) -> Program:
    """Return the command for a MariaDB with its files in `data`, where its system tables are made if need be."""
    tables = data / "tables"
    if not tables.exists():
        _install(tables, account=account)
    init = data.with_suffix(".sql")
    write_private(init, INIT_SQL.format(host=HOST, password=password), account=account)
    port = free_port()
    binary = executable("mariadbd")
    files = (f"--datadir={tables}", f"--tmpdir={data}", f"--pid-file={data / 'pid'}", f"--init-file={init}")
    return Program(
        executable=binary,
        arguments=(binary, "--no-defaults", f"--port={port}", *files, *OPTIONS),
        port=port,
        directory=data,
        log=data.with_suffix(".log"),
        account=account,
        is_ready=partial(_is_ready, port=port, password=password),
    )


def url(*, port: int, password: str) -> str:
    """Return the URL of the shop's database as django-environ reads it."""
    return f"mysql://seckill:{password}@{HOST}:{port}/seckill"


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


def _is_ready(*, port: int, password: str) -> bool:
    """Tell whether the shop's user can open the shop's database."""
    try:
        connection = MySQLdb.connect(
            host=HOST, port=port, user="seckill", password=password, database="seckill", connect_timeout=1
        )
    except MySQLdb.OperationalError:
        return False
    connection.close()
    return True
