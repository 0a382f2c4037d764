"""Start-up checks of the durable mode: the settings ask for what the stock Redis must be set up for."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.conf import settings
from django.core import checks

from seckill.errors import GateUnavailable
from seckill.gate.server import server_options

# A connection to the stock Redis is given up after a second; a WAIT must have ended by then.
WAIT_MS_MAX = 800
OPTIONS = ("appendfsync", "no-appendfsync-on-rewrite", "min-replicas-to-write")


@checks.register(checks.Tags.database)
def check_durability(databases: Sequence[str] | None, **_kwargs: Any) -> list[checks.CheckMessage]:
    """Where DURABLE is on, Redis syncs each write before it answers, and refuses writes that too few replicas get."""
    if not databases or not settings.DURABLE:
        return []
    try:
        options = server_options(settings.CACHES["stock"]["LOCATION"], *OPTIONS)
    except GateUnavailable as error:
        return [checks.Warning(f"The stock Redis cannot be asked: {error}", id="seckill.W001")]
    return [*_on_disk(options), *_on_replicas(options), *_unreadable(options)]


def _on_disk(options: Mapping[str, str]) -> Iterator[checks.CheckMessage]:
    policy = options.get("appendfsync", "always")
    if policy != "always":
        yield checks.Error(
            f"DURABLE is on, but a power cut of the stock Redis loses purchases: appendfsync is {policy}.",
            hint="CONFIG SET appendfsync always, and CONFIG REWRITE; or unset DURABLE.",
            id="seckill.E008",
        )
    if options.get("no-appendfsync-on-rewrite", "no") != "no":
        yield checks.Error(
            "DURABLE is on, but while the stock Redis rewrites its file it syncs nothing: no-appendfsync-on-rewrite.",
            hint="CONFIG SET no-appendfsync-on-rewrite no, and CONFIG REWRITE.",
            id="seckill.E009",
        )


def _on_replicas(options: Mapping[str, str]) -> Iterator[checks.CheckMessage]:
    wanted, told = settings.DURABLE_REPLICAS, options.get("min-replicas-to-write")
    if told is not None and int(told) < wanted:
        yield checks.Error(
            f"{wanted} replicas shall have each purchase, but the stock Redis takes writes that {told} have at least:"
            " when they are away, buyers hold units and are told to repeat until the sale is over.",
            hint=f"CONFIG SET min-replicas-to-write {wanted}, and CONFIG REWRITE.",
            id="seckill.E010",
        )
    if not 0 < settings.DURABLE_WAIT_MS <= WAIT_MS_MAX:
        yield checks.Error(
            f"DURABLE_WAIT_MS is {settings.DURABLE_WAIT_MS}: a connection is given up after a second.",
            hint=f"Set it to at most {WAIT_MS_MAX}.",
            id="seckill.E011",
        )


def _unreadable(options: Mapping[str, str]) -> Iterator[checks.CheckMessage]:
    if missing := [name for name in OPTIONS if name not in options]:
        yield checks.Warning(
            f"DURABLE is on, but the stock Redis does not tell its {', '.join(missing)}.",
            hint="Make sure by other means that it syncs each write before it answers.",
            id="seckill.W004",
        )
