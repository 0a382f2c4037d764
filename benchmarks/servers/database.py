"""What the private MariaDB and the private MySQL have in common: accounts, address and how to see that it is ready."""

import MySQLdb  # type: ignore[import-untyped]  # mysqlclient ships no types.

from benchmarks.servers.process import HOST

# Run at each start, one statement a line. A database has the server's character set and collation; the dba is there
# for tests that set what the shop's user may not. Django calls its test databases test_seckill, test_seckill_gw0, ...
INIT_SQL = r"""CREATE DATABASE IF NOT EXISTS `seckill`;
CREATE USER IF NOT EXISTS 'seckill'@'{host}' IDENTIFIED BY '{password}';
ALTER USER 'seckill'@'{host}' IDENTIFIED BY '{password}';
GRANT ALL PRIVILEGES ON `seckill`.* TO 'seckill'@'{host}';
GRANT ALL PRIVILEGES ON `test\_seckill%`.* TO 'seckill'@'{host}';
GRANT PROCESS ON *.* TO 'seckill'@'{host}';
CREATE USER IF NOT EXISTS 'dba'@'{host}' IDENTIFIED BY '{password}';
ALTER USER 'dba'@'{host}' IDENTIFIED BY '{password}';
GRANT ALL PRIVILEGES ON *.* TO 'dba'@'{host}' WITH GRANT OPTION;
"""

# What either is started with. Nobody logs in through the Unix socket.
OPTIONS = (
    f"--bind-address={HOST}",
    "--skip-name-resolve",
    "--skip-log-bin",
    "--character-set-server=utf8mb4",
    "--innodb-flush-log-at-trx-commit=1",
    "--innodb-buffer-pool-size=256M",
    "--max-connections=300",
)


def url(*, port: int, password: str) -> str:
    """Return the URL of the shop's database as django-environ reads it."""
    return f"mysql://seckill:{password}@{HOST}:{port}/seckill"


def is_ready(*, port: int, password: str) -> bool:
    """Tell whether the shop's user can open the shop's database."""
    try:
        connection = MySQLdb.connect(
            host=HOST, port=port, user="seckill", password=password, database="seckill", connect_timeout=1
        )
    except MySQLdb.OperationalError:
        return False
    connection.close()
    return True
