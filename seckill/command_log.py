"""The action log of the management commands: what somebody at a shell does to a sale, a pool or a letter."""

from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from django.db import DatabaseError
from django.db.models import Model
from django.utils import timezone

from actions.log import Deed, of_command, record, recorded, seen
from seckill.models import SalePool

ALL = "all"


def add_reason(parser: ArgumentParser) -> None:
    """Let whoever runs a command say why; a script that cannot is not kept from it."""
    parser.add_argument("--reason", default="", help="why; stands in the action log with who, what and when")


def recorded_command(
    *, command: str, table: type[Model], key: int | str, reason: str, detail: str = ""
) -> AbstractContextManager[None]:
    """Write the action log before and after what a command does to a row, or to all of them."""
    label = table._meta.label_lower  # noqa: SLF001  Django's documented way to the name
    deed = Deed(
        by=of_command(command),
        what=f"seckill.{command}",
        table=label,
        key=str(key),
        thing=f"{label} {key} {detail}".strip(),
        reason=reason,
    )
    see = dict if key == ALL else seen(table(pk=key))
    return recorded(deed=deed, see=see, clock=timezone.now)


@contextmanager
def recorded_pools(*, command: str, pool_ids: frozenset[int] | None, reason: str) -> Iterator[None]:
    """Write the action log before and after what a command does to some pools, or once for all of them."""
    with ExitStack() as log:
        for key in sorted(pool_ids) if pool_ids else [ALL]:
            log.enter_context(recorded_command(command=command, table=SalePool, key=key, reason=reason))
        yield


def told_if_possible(*, command: str, pool_ids: frozenset[int] | None, reason: str, note: str) -> bool:
    """Write the action log after the deed and tell whether MySQL took it; for what must work without MySQL."""
    key = ", ".join(map(str, sorted(pool_ids))) if pool_ids else ALL
    deed = Deed(
        by=of_command(command),
        what=f"seckill.{command}",
        table="seckill.salepool",
        key=key,
        thing=f"pools {key}",
        reason=reason,
    )
    try:
        record(deed=deed, now=timezone.now(), note=note)
    except DatabaseError:
        return False
    return True
