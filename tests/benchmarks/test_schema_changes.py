"""Migrations since the baseline leave old code running; each kind that would not is refused, and named."""

from typing import Any

import pytest
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ModelState, ProjectState

from benchmarks import schema_changes
from benchmarks.schema_changes import judge, since_baseline, troubles

VERSION = "1.4.0"


def table() -> ProjectState:
    state = ProjectState()
    fields: list[tuple[str, models.Field[Any, Any]]] = [
        ("id", models.BigAutoField(primary_key=True)),
        ("note", models.CharField(max_length=40, null=True)),
        ("units", models.PositiveIntegerField()),
        ("state", models.CharField(max_length=10, db_default="NEW")),
    ]
    state.add_model(ModelState("shop", "Thing", fields))
    return state


def found(*operations: Any, **marks: str) -> list[str]:
    """What is said of a migration with these operations."""
    migration = type("Migration", (migrations.Migration,), {"operations": operations})("0022_change", "shop")
    for name, value in marks.items():
        setattr(migration, name, value)
    return list(judge(migration, state=table(), version=VERSION))


ADD_WITH_DEFAULT = migrations.AddField("thing", "size", models.IntegerField(default=0))
REMOVE = migrations.RemoveField("thing", "note")
RENAME = migrations.RenameField("thing", "note", "remark")
SQL = migrations.RunSQL("SELECT 1")
UNIQUE = migrations.AddConstraint("thing", models.UniqueConstraint(fields=["units"], name="thing_units_once"))
CREATE = migrations.CreateModel("Part", [("id", models.BigAutoField(primary_key=True))])

BAD = {
    "a column that old code does not fill": ADD_WITH_DEFAULT,
    "a column gone": REMOVE,
    "a table gone": migrations.DeleteModel("Thing"),
    "a column renamed": RENAME,
    "a model renamed": migrations.RenameModel("Thing", "Item"),
    "a table renamed": migrations.AlterModelTable("thing", "other"),
    "NULL refused": migrations.AlterField("thing", "note", models.CharField(max_length=40, default="")),
    "text cut off": migrations.AlterField("thing", "note", models.CharField(max_length=20, null=True)),
    "another type": migrations.AlterField("thing", "units", models.CharField(max_length=20)),
    "a double refused": migrations.AlterField("thing", "units", models.PositiveIntegerField(unique=True)),
    "no default any more": migrations.AlterField("thing", "state", models.CharField(max_length=10)),
    "another column": migrations.AlterField("thing", "units", models.PositiveIntegerField(db_column="n")),
    "a rule for old rows": UNIQUE,
    "what nobody can read": SQL,
    "hidden in another operation": migrations.SeparateDatabaseAndState(database_operations=[REMOVE]),
}
GOOD = {
    "a table": CREATE,
    "a column that may be empty": migrations.AddField("thing", "size", models.IntegerField(null=True)),
    "a column that the database fills": migrations.AddField("thing", "size", models.IntegerField(db_default=0)),
    "a wider column": migrations.AlterField("thing", "units", models.PositiveBigIntegerField()),
    "a longer text": migrations.AlterField("thing", "note", models.CharField(max_length=80, null=True)),
    "another word": migrations.AlterField("thing", "units", models.PositiveIntegerField("units")),
    "an index": migrations.AddIndex("thing", models.Index(fields=["units"], name="thing_units")),
    "data": migrations.RunPython(migrations.RunPython.noop),
    "only what Django believes": migrations.SeparateDatabaseAndState(state_operations=[REMOVE]),
}


@pytest.mark.parametrize("operation", BAD.values(), ids=BAD)
def test_what_running_code_would_stumble_over_is_refused(operation: Any) -> None:
    (line,) = found(operation)
    assert line.startswith("shop.0022_change: ")


@pytest.mark.parametrize("operation", GOOD.values(), ids=GOOD)
def test_what_only_adds_passes(operation: Any) -> None:
    assert found(operation) == []


def test_a_table_of_the_same_migration_may_be_given_anything() -> None:
    assert found(CREATE, migrations.AddField("part", "size", models.IntegerField(default=0))) == []


def test_a_later_release_may_take_away_what_an_earlier_one_has_stopped_using() -> None:
    assert found(REMOVE, UNIQUE, contract="1.3.0") == []
    assert len(found(REMOVE, contract="1.4.0")) == 1
    assert len(found(REMOVE, contract="soon")) == 1
    assert len(found(RENAME, contract="1.3.0")) == 1
    assert len(found(ADD_WITH_DEFAULT, contract="1.3.0")) == 1


def test_what_cannot_be_read_says_why_old_code_runs_with_it() -> None:
    assert found(SQL, expands="it reads and changes nothing") == []
    assert len(found(REMOVE, expands="trust me")) == 1


def test_the_shops_own_migrations_pass() -> None:
    loader = MigrationLoader(None)
    assert [line for migration in since_baseline(loader) for line in troubles(migration, loader=loader)] == []


def test_control_one_from_before_the_baseline_would_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(schema_changes.BASELINE, "seckill", "0020_transfers")
    loader = MigrationLoader(None)
    migration = loader.disk_migrations["seckill", "0021_transfer_units_asked"]
    assert migration in since_baseline(loader)
    (line,) = troubles(migration, loader=loader)
    assert "units_asked" in line
