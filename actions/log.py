"""Writes the action log.

A change that is one transaction is told by ``record`` inside it: both are there or neither. What reaches Redis
stands in ``recorded``, which writes a row before and one after; a row BEGUN without another one is an action whose
end nobody saw.
"""

import getpass
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model

from actions.models import REASON_LENGTH_MAX, TEXT_LENGTH_MAX, ActionEntry, Channel, Stage

Facts = dict[str, Any]

# Never told, whoever reads: not even as what it was before.
SECRETS = frozenset({"password", "last_login"})
# Of rows that refer to many others, so many are named.
MANY_MAX = 500
encoder = DjangoJSONEncoder()


@dataclass(frozen=True)
class Who:
    """Somebody who acts: an account, or a command and who runs it."""

    account_id: int | None
    name: str
    channel: Channel
    request_id: str = ""
    address: str = ""


@dataclass(frozen=True)
class Deed:
    """What somebody does to which thing, and why."""

    by: Who
    what: str
    table: str
    key: str
    thing: str = ""
    reason: str = ""
    attempt: str = field(default_factory=lambda: uuid.uuid4().hex)


def deed_on(row: Model, *, by: Who, what: str, reason: str = "") -> Deed:
    """What somebody does to a row."""
    return Deed(by=by, what=what, table=row._meta.label_lower, key=str(row.pk), thing=str(row), reason=reason)  # noqa: SLF001


def of_command(name: str) -> Who:
    """Who runs a management command: the command's name, and the user of the operating system."""
    return Who(account_id=None, name=f"manage.py {name} ({getpass.getuser()})", channel=Channel.COMMAND)


def record(
    *,
    deed: Deed,
    now: datetime,
    stage: Stage = Stage.DONE,
    before: Facts | None = None,
    after: Facts | None = None,
    note: str = "",
) -> None:
    """Write a row, in the caller's transaction if there is one."""
    ActionEntry.objects.create(
        at=now,
        attempt=deed.attempt,
        stage=stage,
        channel=deed.by.channel,
        account_id=deed.by.account_id,
        who=deed.by.name[:150],
        what=deed.what[:64],
        table=deed.table[:64],
        key=deed.key[:64],
        thing=deed.thing[:TEXT_LENGTH_MAX],
        before=before or {},
        after=after or {},
        reason=deed.reason[:REASON_LENGTH_MAX],
        note=note[:TEXT_LENGTH_MAX],
        request_id=deed.by.request_id[:64],
        address=deed.by.address[:45],
    )


@contextmanager
def recorded(*, deed: Deed, see: Callable[[], Facts], clock: Callable[[], datetime]) -> Iterator[None]:
    """Write a row before an action and one after it, with what ``see`` sees then; also when the action raises."""
    before = see()
    record(deed=deed, now=clock(), stage=Stage.BEGUN, before=before)
    try:
        yield
    except Exception as error:
        note = str(error) or type(error).__name__
        record(deed=deed, now=clock(), stage=Stage.FAILED, before=before, after=see(), note=note)
        raise
    record(deed=deed, now=clock(), before=before, after=see())


def seen(row: Model) -> Callable[[], Facts]:
    """Look a row up anew, for ``recorded``; nothing where it is gone."""

    def see() -> Facts:
        fresh = type(row)._base_manager.filter(pk=row.pk).first()  # noqa: SLF001  Django's own way past filters
        return {} if fresh is None else facts(fresh)

    return see


def facts(row: Model) -> Facts:
    """The columns of a row, and the numbers of the rows it is tied to, as JSON has them."""
    opts = row._meta  # noqa: SLF001
    told = {f.attname: _plain(f.value_from_object(row)) for f in opts.concrete_fields if f.name not in SECRETS}
    if row.pk is not None:
        for relation in opts.many_to_many:
            keys = getattr(row, relation.name).order_by("pk").values_list("pk", flat=True)[:MANY_MAX]
            told[relation.name] = list(keys)
    return told


def differences(before: Facts, after: Facts) -> tuple[Facts, Facts]:
    """What changed, as it was and as it is."""
    names = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    old = {name: before[name] for name in sorted(names) if name in before}
    return old, {name: after[name] for name in sorted(names) if name in after}


def _plain(value: object) -> Any:
    return value if value is None or isinstance(value, bool | int | str) else _told(value)


def _told(value: object) -> str:
    try:
        return str(encoder.default(value))
    except TypeError:
        return str(value)
