"""The files of processes that are gone: what they counted stays counted, in one file for all of them.

A worker that is replaced leaves its files behind, and a scrape reads every file. Counts of the dead are added up into
files of their own; what a gauge said of a live process is forgotten. A lock keeps the scrapes of a host from each
other; the files of the living are never touched.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector

LOCK = ".lock"
DEAD = "dead"


@contextmanager
def counted(directory: Path) -> Iterator[CollectorRegistry]:
    """Give a registry of what all processes of the directory have counted, for the length of the block."""
    with (directory / LOCK).open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _bury_the_dead(directory)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, path=str(directory))
        yield registry


def _bury_the_dead(directory: Path) -> None:
    for path in directory.glob("*_*.db"):
        kind, _, process = path.stem.rpartition("_")
        if not process.isdecimal() or _is_alive(int(process)):
            continue
        if kind.startswith("gauge"):
            path.unlink(missing_ok=True)
        else:
            _add_up(path, into=directory / f"{kind}_{DEAD}.db")


def _add_up(path: Path, *, into: Path) -> None:
    """Add the counts of a file to another's. Killed in between, it has not happened: the sums replace in one step."""
    unfinished = into.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    sums = MmapedDict(str(unfinished))
    try:
        for source in filter(Path.exists, (into, path)):
            for key, value, _, _ in MmapedDict.read_all_values_from_file(str(source)):
                sums.write_value(key, sums.read_value(key)[0] + value, 0.0)
    finally:
        sums.close()
    # Killed between these two, a count is doubled: there is no step that does both.
    unfinished.replace(into)
    path.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's, and alive
        pass
    return True
