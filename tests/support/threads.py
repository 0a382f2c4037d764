"""Threads that start together, and give their database connections back."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connections

A = TypeVar("A")
R = TypeVar("R")


def run_together(function: Callable[[A], R], arguments: Iterable[A]) -> list[R]:
    """Call ``function`` once per argument, each in a thread of its own, released by one barrier.

    Returns the results in the order of the arguments; raises what the first failing one raised.
    """
    listed = list(arguments)
    barrier = threading.Barrier(len(listed))

    def run(argument: A) -> R:
        barrier.wait()
        try:
            return function(argument)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(max_workers=len(listed)) as pool:
        return list(pool.map(run, listed))


def kill_connection(connection_id: int) -> None:
    """Kill a MySQL connection of the same user."""
    with connections["default"].cursor() as cursor:
        cursor.execute(f"KILL CONNECTION {int(connection_id)}")
