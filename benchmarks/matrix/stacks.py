"""The stacks that the shop is tried on, and where their programs come from."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.debian import make_tree
from benchmarks.servers import ServersError
from benchmarks.servers.account import server_account
from benchmarks.servers.directory import home_directory
from benchmarks.servers.redis import PROGRAMS
from benchmarks.servers.stack import Command, Stack

DIRECTORY = Path("var/matrix")
# Debian stable has neither MySQL nor Valkey, and an older Redis; unstable has the newest of each.
RELEASE = "sid"
PACKAGES = ("mysql-server-core", "redis-server", "valkey-server")
NAMES = {"mariadb": "MariaDB", "mysql": "MySQL", "redis": "Redis", "valkey": "Valkey"}
DATABASE_PROGRAMS = {"mariadb": "mariadbd", "mysql": "mysqld"}


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A stack under the name it is called by on the command line and in the report."""

    name: str
    database: str
    store: str
    is_foreign: bool

    def stack(self) -> Stack:
        """Return the stack; the tree of its programs is made on first use."""
        tree = foreign_tree() if self.is_foreign else None
        return Stack(database=self.database, store=self.store, tree=tree)

    def environment(self, stack: Stack) -> dict[str, str]:
        """Return the variables that choose it."""
        return {"SERVERS": f"{self.database} {self.store}", **({"SERVERS_TREE": str(stack.tree)} if stack.tree else {})}


STACKS = (
    Tried(name="mariadb-redis", database="mariadb", store="redis", is_foreign=False),
    Tried(name="mysql-redis", database="mysql", store="redis", is_foreign=True),
    Tried(name="mysql-valkey", database="mysql", store="valkey", is_foreign=True),
)


def foreign_tree() -> Path:
    """Return the tree with the servers this machine does not have, where their user can reach it."""
    home = home_directory(directory=DIRECTORY.absolute() / "debian", account=server_account())
    tree = home / RELEASE
    make_tree(tree, release=RELEASE, packages=PACKAGES)
    return tree


def versions(stack: Stack) -> list[str]:
    """Return name and version of the database and of the store, as the programs tell them."""
    programs = {stack.database: (DATABASE_PROGRAMS[stack.database],), stack.store: PROGRAMS[stack.store]}
    return [f"{NAMES[kind]} {_version(stack.command(*names))}" for kind, names in programs.items()]


def _version(command: Command) -> str:
    said = subprocess.run(
        [*command.arguments, "--version"], executable=command.executable, capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"\d+\.\d+\.\d+", said)
    if found is None:
        raise ServersError(f"{command.arguments[-1]} does not tell its version: {said}")
    return found.group()
