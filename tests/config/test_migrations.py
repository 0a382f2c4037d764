"""Migrations go forward and all the way back, on a database of their own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.db import connection

ROOT = Path(__file__).resolve().parent.parent.parent
APPS = ("accounts", "actions", "inventory", "orders", "seckill")
NAME = "test_seckill_migrations"


@pytest.fixture
def empty_database(stores: None) -> Iterator[str]:
    """An empty database beside the test's own; its URL."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {NAME}")
        cursor.execute(f"CREATE DATABASE {NAME} CHARACTER SET utf8mb4")
    base, _, _ = os.environ["DATABASE_URL"].rpartition("/")
    yield f"{base}/{NAME}"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {NAME}")


def tables() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = %s", [NAME])
        return {name for (name,) in cursor.fetchall() if name.partition("_")[0] in APPS}


def scheduled() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT task FROM {NAME}.django_celery_beat_periodictask ORDER BY task")  # noqa: S608
        return [task for (task,) in cursor.fetchall() if not task.startswith("celery.")]


def granted() -> dict[str, set[str]]:
    """What the groups may do."""
    found: dict[str, set[str]] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT g.name, p.codename FROM {NAME}.auth_group g"  # noqa: S608
            f" JOIN {NAME}.auth_group_permissions t ON t.group_id = g.id"
            f" JOIN {NAME}.auth_permission p ON p.id = t.permission_id"
        )
        for group, codename in cursor.fetchall():
            found.setdefault(group, set()).add(codename)
    return found


@pytest.mark.slow
def test_forward_back_and_forward_again(empty_database: str) -> None:
    def manage(*arguments: str) -> None:
        environment = {**os.environ, "DATABASE_URL": empty_database}
        command = [sys.executable, "manage.py", *arguments]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, timeout=120)

    manage("migrate")
    made = tables()
    roles = granted()
    assert set(roles) == {"operator", "approver", "auditor"}
    assert "view_actionentry" in roles["auditor"]
    assert {name for name in roles["auditor"] if not name.startswith("view_")} == set()
    assert "change_saleitem" in roles["operator"]
    assert "approve_itemadjustment" in roles["approver"]
    assert made == {model._meta.db_table for app in APPS for model in apps.get_app_config(app).get_models()}
    assert scheduled() == [
        "accounts.forget_tokens",
        "orders.ask_due",
        "orders.deliver_sandbox",
        "orders.expire",
        "orders.refund_due",
        "seckill.archive_due",
        "seckill.deliver_alerts",
        "seckill.follow_up",
        "seckill.honour",
        "seckill.preheat_due",
        "seckill.reconcile",
        "seckill.return_closed",
        "seckill.sample",
        "seckill.sweep",
    ]
    manage("migrate", "inventory", "zero")
    manage("migrate", "accounts", "zero")
    manage("migrate", "actions", "zero")
    assert tables() == set()
    assert scheduled() == []
    assert granted() == {}
    manage("migrate")
    assert granted() == roles
    assert tables() == made
