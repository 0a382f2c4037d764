"""What a Redis server was asked, command by command, as its MONITOR tells."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from django.conf import settings
from redis import Redis


@contextmanager
def commands_of(alias: str) -> Iterator[list[tuple[str, ...]]]:
    """Collect all commands the server of a cache alias gets during the block, those inside scripts included.

    Each is its name in capitals and its arguments; the list is filled when the block ends.
    """
    commands: list[tuple[str, ...]] = []
    end = uuid4().hex
    url = settings.CACHES[alias]["LOCATION"]
    with Redis.from_url(url, protocol=2, decode_responses=True) as client, client.monitor() as monitor:
        yield commands
        client.echo(end)
        while end not in (words := str(monitor.next_command()["command"]).split(" ")):
            commands.append((words[0].upper(), *words[1:]))
