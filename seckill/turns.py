"""Turns: of several workers that would do the same piece of work, one does it and the others leave, or wait a while.

This only thins out duplicates. A connection that is killed loses its turn and learns it late, so no
law may depend on it: whoever works here is fenced by row locks, states and idempotent scripts.
"""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def only_one(*, work: str, wait_seconds: int = 0) -> Iterator[bool]:
    """Tell whether the work is ours for the length of the block; waits for it as long as is said.

    ``work`` is a short name (MySQL allows 64 characters in all), one for each piece that may run beside others.
    """
    database = zlib.crc32(str(connection.settings_dict["NAME"]).encode())  # names of locks are server-wide
    name = f"seckill:{database}:{work}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, %s)", [name, wait_seconds])
        is_mine = cursor.fetchone()[0] == 1
    try:
        yield is_mine
    finally:
        if is_mine and connection.connection is not None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT RELEASE_LOCK(%s)", [name])
