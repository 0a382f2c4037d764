"""Which servers run: MariaDB or MySQL, Redis or Valkey, those of this machine or those of another system's tree."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks.servers.process import ServersError, executable

DATABASES = ("mariadb", "mysql")
STORES = ("redis", "valkey")


@dataclass(frozen=True, kw_only=True)
class Command:
    """How a program begins: the file the kernel is given, then what it is called by and what stands before options."""

    executable: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Stack:
    """The kinds of both servers, and the tree their programs are in; without a tree they are this machine's own.

    A program of a tree is run by the tree's own loader with the tree's own libraries. That takes no chroot: the
    servers see the same files and addresses, and belong to the same user, as this machine's do.
    """

    database: str = "mariadb"
    store: str = "redis"
    tree: Path | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read SERVERS, as in "mysql valkey", and SERVERS_TREE; ServersError when that names nothing we can run."""
        kinds = set(environ.get("SERVERS", "").split())
        if unknown := kinds - {*DATABASES, *STORES}:
            raise ServersError(
                f"SERVERS names {', '.join(sorted(unknown))}: {', '.join(DATABASES + STORES)} can be run"
            )
        tree = environ.get("SERVERS_TREE")
        return cls(
            database=_one_of(DATABASES, kinds),
            store=_one_of(STORES, kinds),
            tree=Path(tree).absolute() if tree else None,
        )

    def command(self, *names: str) -> Command:
        """Return how to run the first program of these names that is there; ServersError when none is."""
        if self.tree is None:
            found = executable(*names)
            return Command(executable=found, arguments=(str(Path(found).with_name(names[0])),))
        program = self.file(*(f"usr/*bin/{name}" for name in names))
        libraries = ":".join(str(path) for path in sorted(self.tree.glob("usr/lib/*-linux-gnu*")))
        loader = self.file("usr/lib64/ld-linux-*.so.*", "usr/lib/ld-linux-*.so.*")
        called = str(Path(program).with_name(names[0]))
        return Command(executable=loader, arguments=(loader, "--library-path", libraries, "--argv0", called, program))

    def file(self, *patterns: str) -> str:
        """Return the first file of the tree, or of this machine, that matches; ServersError when none does."""
        root = self.tree or Path("/")
        for pattern in patterns:
            if found := sorted(root.glob(pattern)):
                return str(found[0])
        raise ServersError(f"{root} has no {' and no '.join(patterns)}")


def _one_of(kinds: tuple[str, ...], named: set[str]) -> str:
    chosen = [kind for kind in kinds if kind in named]
    if len(chosen) > 1:
        raise ServersError(f"SERVERS names both {' and '.join(chosen)}: one of them runs")
    return chosen[0] if chosen else kinds[0]
