"""Fixtures: a database and two Redis servers that are empty before each test."""

from collections.abc import Iterator
from functools import cache

import pytest
from django.conf import settings
from django.core.signals import setting_changed
from django.db import connection
from django.dispatch import receiver
from django.test.utils import setup_databases, teardown_databases
from django.utils import translation
from django_redis import get_redis_connection
from pytest_django.plugin import DjangoDbBlocker

from actions.models import ActionEntry
from benchmarks.servers import PrivateServers
from rest.memory import forget_everything
from rest.throttles import second_counts
from seckill.elsewhere import memory
from seckill.gate.connection import forget_connections
from seckill.shut import shut_items
from seckill.stop_file import stop_file
from tests.plugin import running_servers
from tests.support.broker import empty_queues
from tests.support.nodes import empty_stock

# Rows the migrations made; everything else is a test's own.
KEPT_TABLES = frozenset(
    {
        "django_migrations",
        "django_content_type",
        "auth_permission",
        "django_celery_beat_periodictask",
        "django_celery_beat_intervalschedule",
        "django_celery_beat_crontabschedule",
    }
)


@receiver(setting_changed)
def _connect_anew(*, setting: str, **_: object) -> None:
    """Leave a server that the settings do not name any more; django-redis does the same with its pools."""
    if setting == "CACHES":
        forget_connections()


# Modules of many small tests that are left to the whole suite, so that the quick one stays under a minute: the
# operators' pages, and what seldom changes and is thoroughly tried.
WHOLE_SUITE_ONLY = frozenset(
    {
        "test_admin",
        "test_admin_forms",
        "test_archive",
        "test_archive_command",
        "test_archive_faults",
        "test_attempts",
        "test_audit_pages",
        "test_big_numbers",
        "test_challenges",
        "test_checked_forms",
        "test_change_admin",
        "test_changeable",
        "test_doctor",
        "test_inbox",
        "test_item_actions",
        "test_item_file",
        "test_logs",
        "test_members",
        "test_money_admin",
        "test_monitor",
        "test_outage",
        "test_overview",
        "test_plan_checks",
        "test_rebuild_runs",
        "test_replay",
        "test_roles",
        "test_sale_pages",
        "test_sampling",
        "test_schema",
        "test_session_store",
        "test_stage_times",
        "test_throttles",
        "test_trouble",
        "test_whole_sale",
        "test_window_page",
    }
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what the whole suite alone runs, and refuse pytest-django's own mark.

    Its flush empties the kept tables too, and beat has no schedule afterwards.
    """
    for item in items:
        if item.path.stem in WHOLE_SUITE_ONLY:
            item.add_marker(pytest.mark.slow)
    if marked := [item.nodeid for item in items if item.get_closest_marker("django_db")]:
        raise pytest.UsageError(f"the stores are open to every test; take the mark django_db off {', '.join(marked)}")


@pytest.fixture(scope="session")
def servers() -> PrivateServers:
    """The private servers of this test process."""
    return running_servers()


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Make the test database by the migrations, on this process's own server."""
    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False, serialized_aliases=[])
        yield
        teardown_databases(made, verbosity=0)


@pytest.fixture(autouse=True)
def stores(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Open MySQL and both Redis servers to the test; empty them after it.

    Commits are real, threads see each other, and emptying is by DELETE: a TRUNCATE of every table
    would take longer than most tests.
    """
    with django_db_blocker.unblock():
        empty_stock()
        get_redis_connection("default").flushdb()
        empty_queues()
        second_counts.forget()
        shut_items.forget()
        memory.forget()
        translation.activate(settings.LANGUAGE_CODE)
        stop_file.forget()
        forget_everything()
        yield
        _empty_tables()


def _empty_tables() -> None:
    # A session that a slow test has lost, or one that a time-out has cut off in the middle of an answer, is not to be
    # the next test's.
    if connection.connection is not None and not connection.is_usable():
        connection.close()
    with connection.cursor() as cursor:
        # One look at all tables; most tests write to a handful.
        cursor.execute(_which_have_rows())
        filled = [table for (table,) in cursor.fetchall()]
        cursor.execute("SET FOREIGN_KEY_CHECKS = 0")
        for table in sorted(filled):
            # The action log's rows cannot be deleted; the whole table can.
            verb = "TRUNCATE" if table == ActionEntry._meta.db_table else "DELETE FROM"
            cursor.execute(f"{verb} `{table}`")
        cursor.execute("SET FOREIGN_KEY_CHECKS = 1")


@cache
def _which_have_rows() -> str:
    with connection.cursor() as cursor:
        tables = set(connection.introspection.table_names(cursor)) - KEPT_TABLES
    looks = [f"(SELECT '{table}' FROM `{table}` LIMIT 1)" for table in sorted(tables)]  # noqa: S608  as above
    return " UNION ALL ".join(looks)
