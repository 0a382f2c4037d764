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


@pytest.mark.slow
def test_forward_back_and_forward_again(empty_database: str) -> None:
    def manage(*arguments: str) -> None:
        environment = {**os.environ, "DATABASE_URL": empty_database}
        command = [sys.executable, "manage.py", *arguments]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, timeout=120)

    manage("migrate")
    made = tables()
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
    manage("migrate")
    assert tables() == made
