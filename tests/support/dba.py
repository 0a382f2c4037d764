"""The private database's administrator: sets what the shop's own user may not, for the length of a block."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import MySQLdb  # type: ignore[import-untyped]  # mysqlclient ships no types.
from django.db import connection


def as_dba() -> Any:
    """Return a connection of the administrator's."""
    shop = connection.settings_dict
    return MySQLdb.connect(host=shop["HOST"], port=int(shop["PORT"]), user="dba", password=shop["PASSWORD"])


def run_as_dba(statement: str) -> Any:
    """Run a statement; return its first row."""
    with closing(as_dba()) as dba, dba.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()


@contextmanager
def server_variable(name: str, value: str) -> Iterator[None]:
    """Set a global variable, and back."""
    (before,) = run_as_dba(f"SELECT @@GLOBAL.{name}")
    run_as_dba(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        run_as_dba(f"SET GLOBAL {name} = {before!r}")


@contextmanager
def without_process_privilege() -> Iterator[None]:
    """Take the right to see other sessions from the shop's user, and give it back."""
    user = f"'{connection.settings_dict['USER']}'@'127.0.0.1'"
    run_as_dba(f"REVOKE PROCESS ON *.* FROM {user}")
    try:
        yield
    finally:
        run_as_dba(f"GRANT PROCESS ON *.* TO {user}")
