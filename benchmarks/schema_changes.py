"""Migrations that code of the release before can live with, while old and new processes run side by side.

A release first adds (expands); what no running code uses any more is taken away by a later one (contracts). A
migration that contracts says so with ``contract = "1.4.0"``, the release whose code was the first not to use it. What
cannot be read here says why old code runs with it: ``expands = "…"``. No database is connected to.
"""

import os
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import django
from django.db.migrations import Migration, operations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import NOT_PROVIDED, Field, ManyToManyField

ROOT = Path(__file__).resolve().parent.parent
# The last ones from before 1.0.0, when nobody had a shop to keep open.
BASELINE = {
    "accounts": "0004_roles",
    "actions": "0001_initial",
    "inventory": "0004_movement_indexes",
    "orders": "0006_honour_words",
    "seckill": "0022_desk_words",
}
# Old code neither notices these nor is refused anything because of them.
HARMLESS = (
    *(operations.CreateModel, operations.AddIndex, operations.RemoveIndex, operations.RenameIndex),
    *(operations.RemoveConstraint, operations.RunPython),
    *(operations.AlterModelOptions, operations.AlterModelManagers, operations.AlterModelTableComment),
)
# Old and new code run at once, and one of them asks for the name that is not there: no release can do this.
NEVER = (operations.RenameField, operations.RenameModel, operations.AlterModelTable)
CONTRACTS = (operations.RemoveField, operations.DeleteModel, operations.AddConstraint, operations.AlterUniqueTogether)
# Columns that hold whatever the narrower kind holds.
WIDER = {
    "PositiveSmallIntegerField": {"PositiveIntegerField", "PositiveBigIntegerField", "IntegerField", "BigIntegerField"},
    "SmallIntegerField": {"IntegerField", "BigIntegerField"},
    "PositiveIntegerField": {"PositiveBigIntegerField", "BigIntegerField"},
    "IntegerField": {"BigIntegerField"},
    "CharField": {"TextField"},
}
SIZES = ("max_length", "max_digits", "decimal_places")


def main() -> int:
    """Print what running code would stumble over; return the exit status."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    loader = MigrationLoader(None)
    found = [trouble for migration in since_baseline(loader) for trouble in troubles(migration, loader=loader)]
    print("\n".join(found) or "migrations: code of the release before runs with each of them")
    return 1 if found else 0


def since_baseline(loader: MigrationLoader) -> list[Migration]:
    """Return the shop's own migrations that are newer than the baseline, by number."""
    newer = [key for key in loader.disk_migrations if key[0] in BASELINE and key[1] > BASELINE[key[0]]]
    return [loader.disk_migrations[key] for key in sorted(newer)]


def troubles(migration: Migration, *, loader: MigrationLoader) -> Iterator[str]:
    """Say what is wrong with a migration, a line each."""
    state = loader.project_state((migration.app_label, migration.name), at_end=False)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    yield from judge(migration, state=state, version=version)


def judge(migration: Migration, *, state: ProjectState, version: str) -> Iterator[str]:
    """Say what is wrong with a migration that meets this state; `version` is the one that is being made."""
    name = f"{migration.app_label}.{migration.name}"
    contract = getattr(migration, "contract", None)
    if contract is not None and not _is_earlier(contract, version):
        yield f'{name}: contract = "{contract}" must name a release before {version} whose code does not use it'
    new: set[str] = set()
    for operation in migration.operations:
        yield from (
            f"{name}: {operation.describe()}: {why}"
            for why in _objections(operation, migration=migration, state=state, new=new)
        )
        operation.state_forwards(migration.app_label, state)


def _is_earlier(release: str, version: str) -> bool:
    first, second = ([int(part) for part in text.split(".") if part.isdecimal()] for text in (release, version))
    return re.fullmatch(r"\d+\.\d+\.\d+", release) is not None and first < second


def _objections(operation: Operation, *, migration: Migration, state: ProjectState, new: set[str]) -> Iterator[str]:
    """Say why code that knows the old tables would stumble; `new` are the tables of this very migration."""
    if isinstance(operation, operations.SeparateDatabaseAndState):
        for inner in operation.database_operations:
            yield from _objections(inner, migration=migration, state=state, new=new)
        return
    if isinstance(operation, operations.CreateModel):
        new.add(operation.name_lower)
    table = getattr(operation, "model_name_lower", getattr(operation, "name_lower", ""))
    if table in new or isinstance(operation, HARMLESS):
        return
    if isinstance(operation, NEVER):
        yield "one of the two releases asks for a name that is not there: add the new one, drop the old later"
    elif isinstance(operation, operations.AddField):
        yield from _added(operation.field)
    elif not hasattr(migration, "contract"):
        yield from _taken_away(operation, migration=migration, state=state)


def _added(field: Field) -> Iterator[str]:  # type: ignore[type-arg]
    if not (isinstance(field, ManyToManyField) or field.null or field.has_db_default()):
        yield "old code writes rows without it: null=True or db_default (Django drops a plain default again)"


def _taken_away(operation: Operation, *, migration: Migration, state: ProjectState) -> Iterator[str]:
    if isinstance(operation, operations.AlterField):
        before = state.models[migration.app_label, operation.model_name_lower].fields[operation.name]
        for why in _narrowed(before, operation.field):
            yield f"{why}: old code may write what it refuses; contract a release later"
    elif isinstance(operation, CONTRACTS):
        yield "running code may still use it, or write what it refuses: contract a release later"
    elif not getattr(migration, "expands", ""):
        yield 'it cannot be read here: say why old code runs with it, expands = "…"'


def _narrowed(before: Field, after: Field) -> Iterator[str]:  # type: ignore[type-arg]
    kinds = before.get_internal_type(), after.get_internal_type()
    if kinds[0] != kinds[1] and kinds[1] not in WIDER.get(kinds[0], ()):
        yield f"{kinds[0]} becomes {kinds[1]}"
    if before.null and not after.null:
        yield "NULL is allowed no more"
    if after.unique and not before.unique:
        yield "it becomes unique"
    if before.db_default is not NOT_PROVIDED and after.db_default is NOT_PROVIDED and not after.null:
        yield "its default in the database goes"
    if before.db_column != after.db_column:
        yield "its column gets another name"
    for size in SIZES:
        if (old := getattr(before, size, None)) is not None and (getattr(after, size, None) or old) < old:
            yield f"{size} shrinks"


if __name__ == "__main__":
    sys.exit(main())
