"""The database: does it keep what it commits, does it speak Chinese, does it know time zones, has it room for us.

Its character set, strictness and the isolation that is asked for, ``config.checks`` says.
"""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from actions.guard import missing
from config.doctor.findings import Finding, fail, judge, ok, warn
from seckill.lock_watch import can_see_waits

TOPIC = "database"
MARIADB_MIN, MYSQL_MIN = (10, 6), (8, 0, 16)
CONNECTIONS_WARN = 0.8
READ_COMMITTED = "READ-COMMITTED"


def examine_database() -> Iterator[Finding]:
    """Everything that its variables say."""
    yield _version()
    yield from _durability()
    yield _isolation()
    yield _collations()
    yield _time_zones()
    yield _connections()
    yield _locks()
    yield _triggers()


def examine_migrations() -> Iterator[Finding]:
    """Whether the tables are those of this code."""
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    names = ", ".join(f"{migration.app_label}.{migration.name}" for migration, _ in missing[:5])
    yield judge(
        topic="migrations",
        is_well=not missing,
        what="all migrations are applied",
        else_what=f"{len(missing)} migrations are not applied: {names}",
        advice="Run manage.py migrate before the new code serves anybody.",
    )


def variables(*names: str) -> dict[str, str]:
    """Return variables of the server; those it does not have are left out."""
    marks = ", ".join(["%s"] * len(names))
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW VARIABLES WHERE Variable_name IN ({marks})", names)
        return {name.lower(): value for name, value in cursor.fetchall()}


def _is_mariadb() -> bool:
    return bool(getattr(connection, "mysql_is_mariadb", False))


def _version() -> Finding:
    version: tuple[int, ...] = connection.mysql_version  # type: ignore[attr-defined]
    name, least = ("MariaDB", MARIADB_MIN) if _is_mariadb() else ("MySQL", MYSQL_MIN)
    what = f"{name} {'.'.join(map(str, version))}"
    advice = f"Use {name} {'.'.join(map(str, least))} or newer: older ones ignore constraints or cannot skip locks."
    return judge(topic=TOPIC, is_well=tuple(version) >= least, what=what, advice=advice)


def _durability() -> Iterator[Finding]:
    told = variables("innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "read_only")
    flush = told.get("innodb_flush_log_at_trx_commit")
    yield judge(
        topic=TOPIC,
        is_well=flush == "1",
        what="every commit is on the disk",
        else_what=f"innodb_flush_log_at_trx_commit is {flush}: a power cut forgets orders that buyers were told of.",
        advice="Set it to 1.",
    )
    if told.get("log_bin") == "ON" and told.get("sync_binlog") != "1":
        what = f"sync_binlog is {told.get('sync_binlog')}: after a power cut a replica may lack commits."
        yield warn(TOPIC, what, "Set it to 1.")
    if told.get("read_only", "OFF") not in {"OFF", "0"}:
        yield fail(TOPIC, "The database is read-only: DATABASE_URL leads to a replica.", "Point it at the primary.")


def _isolation() -> Finding:
    name = "tx_isolation" if _is_mariadb() and not variables("transaction_isolation") else "transaction_isolation"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT @@SESSION.{name}")
        found = cursor.fetchone()[0]
    return judge(
        topic=TOPIC,
        is_well=found == READ_COMMITTED,
        what=f"sessions run at {found}",
        advice="Something between the shop and the database sets it: settlement needs READ COMMITTED.",
    )


def _collations() -> Finding:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"
            " AND table_type = 'BASE TABLE' AND table_collation NOT LIKE 'utf8mb4%%' ORDER BY table_name LIMIT 5"
        )
        odd = [row[0] for row in cursor.fetchall()]
    return judge(
        topic=TOPIC,
        is_well=not odd,
        what="every table is utf8mb4",
        else_what=f"Not utf8mb4: {', '.join(odd)}. Names in Chinese are refused or cut there.",
        advice="ALTER TABLE ... CONVERT TO CHARACTER SET utf8mb4, while no sale runs.",
    )


def _time_zones() -> Finding:
    topic, zone = "time zones", settings.TIME_ZONE
    if zone == "UTC":
        return ok(topic, "the shop's zone is UTC, for which the database needs no tables")
    with connection.cursor() as cursor:
        cursor.execute("SELECT CONVERT_TZ('2026-01-01 00:00:00', 'UTC', %s)", [zone])
        is_known = cursor.fetchone()[0] is not None
    return judge(
        topic=topic,
        is_well=is_known,
        what=f"the database knows {zone}",
        else_what=f"The database does not know {zone}: lists by day stay empty or fail.",
        advice="mysql_tzinfo_to_sql /usr/share/zoneinfo | mysql -u root mysql (mariadb-tzinfo-to-sql likewise)",
    )


def _connections() -> Finding:
    with connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Max_used_connections'")
        row: Any = cursor.fetchone()
    used, most = int(row[1]) if row else 0, int(variables("max_connections")["max_connections"])
    what = f"at most {used} of {most} connections were taken since its start"
    advice = "Raise max_connections: each thread of a web process and each process of a worker wants one."
    return warn(TOPIC, what, advice) if used > CONNECTIONS_WARN * most else ok(TOPIC, what)


def connections_needed(*, web_threads: int, worker_processes: int) -> Finding:
    """Compare what web and workers may want with what there is; beat, doctor and a person want some as well."""
    needed, most = web_threads + worker_processes + 5, int(variables("max_connections")["max_connections"])
    what = f"{web_threads} web threads, {worker_processes} worker processes and some others want {needed} of {most}"
    advice = "Raise max_connections above that with room to spare, or run fewer processes."
    return judge(topic=TOPIC, is_well=needed <= CONNECTIONS_WARN * most, what=what, advice=advice)


def _locks() -> Finding:
    what = "This user may not see who waits for locks: an incident about a busy lock will name nobody."
    advice = "GRANT PROCESS ON *.* TO the shop's user (MySQL 8: and SELECT ON performance_schema.*)."
    # Small managed MySQL servers have it off; the tables are there then, and empty. MariaDB does without.
    if not _is_mariadb() and variables("performance_schema").get("performance_schema") == "OFF":
        what = "performance_schema is off: an incident about a busy lock will name nobody."
        return warn(TOPIC, what, "Start MySQL with performance_schema=ON.")
    return ok(TOPIC, "it tells who keeps a lock") if can_see_waits() else warn(TOPIC, what, advice)


def _triggers() -> Finding:
    """What the log's own app makes after each migrate, if the server lets it."""
    gone = missing()
    what = f"Triggers are missing, so that the database would let the action log be changed: {', '.join(gone)}"
    advice = (
        "Run manage.py migrate with a user who may create triggers (with a binary log: SUPER, or"
        " log_bin_trust_function_creators=1 meanwhile)."
    )
    return warn(TOPIC, what, advice) if gone else ok(TOPIC, "it refuses to change the action log")
