"""Which servers the tests and the benchmarks run on is chosen by two variables, and a wrong choice is told."""

from pathlib import Path

import pytest

from benchmarks.servers import ServersError
from benchmarks.servers.stack import Stack


@pytest.mark.parametrize(
    ("named", "database", "store"),
    [
        ("", "mariadb", "redis"),
        ("mysql", "mysql", "redis"),
        ("valkey", "mariadb", "valkey"),
        ("valkey mysql", "mysql", "valkey"),
    ],
)
def test_what_is_not_named_is_mariadb_and_redis(named: str, database: str, store: str) -> None:
    stack = Stack.from_environment({"SERVERS": named})
    assert (stack.database, stack.store, stack.tree) == (database, store, None)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("mysql postgresql", "SERVERS names postgresql: mariadb, mysql, redis, valkey can be run"),
        ("mysql mariadb", "SERVERS names both mariadb and mysql: one of them runs"),
    ],
)
def test_a_choice_that_cannot_be_run_is_told(named: str, message: str) -> None:
    with pytest.raises(ServersError) as caught:
        Stack.from_environment({"SERVERS": named})
    assert str(caught.value) == message


def test_a_program_of_a_tree_runs_by_the_loader_and_the_libraries_of_the_tree(tmp_path: Path) -> None:
    for name in ("usr/sbin/mysqld", "usr/lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu/libc.so.6"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    stack = Stack.from_environment({"SERVERS": "mysql", "SERVERS_TREE": str(tmp_path)})
    command = stack.command("mysqld")
    loader, program = f"{tmp_path}/usr/lib64/ld-linux-x86-64.so.2", f"{tmp_path}/usr/sbin/mysqld"
    assert command.executable == loader
    assert command.arguments == (
        loader,
        "--library-path",
        f"{tmp_path}/usr/lib/x86_64-linux-gnu",
        "--argv0",
        program,
        program,
    )
    with pytest.raises(ServersError, match="has no usr/\\*bin/valkey-server"):
        stack.command("valkey-server")
