"""Threads that start together, and give their connections back."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from django.db import connection, connections, transaction
from django.db.models import Model, QuerySet

from seckill.gate import connection as gate_connection

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
            _hang_up()

    with ThreadPoolExecutor(max_workers=len(listed)) as pool:
        return list(pool.map(run, listed))


def _hang_up() -> None:
    """Close this thread's connection to the stock: it would stay open for long, and a crowd has hundreds."""
    if gate_connection._own.connection is not None:
        gate_connection._own.connection.disconnect()
    gate_connection.forget_connections()


@contextmanager
def holding(rows: QuerySet[Model]) -> Iterator[None]:
    """Have another session keep locks on rows, for which this thread's session waits a second and no longer."""
    is_locked, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                list(rows.select_for_update())
                is_locked.set()
                is_over.wait(timeout=30)
        finally:
            connections.close_all()

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert is_locked.wait(timeout=30)
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        yield
    finally:
        is_over.set()
        holder.join()
        connection.close()


def kill_connection(connection_id: int) -> None:
    """Kill a MySQL connection of the same user."""
    with connections["default"].cursor() as cursor:
        cursor.execute(f"KILL CONNECTION {int(connection_id)}")
