"""The doctor: each thing that can be wrong is provoked on the real servers, and said with what to do."""

import json
import resource
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from django_celery_beat.models import PeriodicTask
from pytest_django import Settings
from redis import Redis

from actions.guard import guard
from benchmarks.servers import PrivateServers
from config.doctor import database
from config.doctor.clocks import Skew, examine_clocks
from config.doctor.database import connections_needed, examine_database, examine_migrations
from config.doctor.examination import examine, examine_incidents
from config.doctor.findings import Examiner, Finding, Verdict
from config.doctor.own_settings import examine_settings
from config.doctor.redis_servers import examine_broker_redis, examine_cache, examine_stock_redis
from config.doctor.system_checks import examine_checks
from config.doctor.workers import examine_beat, examine_workers
from config.errands import hasty_database
from seckill.incidents import Severity, open_incident
from tests.config.test_checks import execute, repeatable_read
from tests.config.test_health import standing_still
from tests.support.aliases import NOWHERE, point
from tests.support.dba import as_dba, server_variable, without_process_privilege
from tests.support.shop import open_sale

SOUND = {
    "METRICS_TOKEN": "metrics-0123456789abcdef0123456789abcdef",
    "ALERT_WEBHOOK_URL": "https://alerts.example/",
    "ALERT_WEBHOOK_SECRET": "webhook-0123456789abcdef0123456789abcdef",
    "SANDBOX": False,
    "PAYMENT_PROVIDERS": {"bank": "shop.Bank"},
}


@pytest.fixture(autouse=True)
def sound(settings: Settings) -> None:
    for name, value in SOUND.items():
        setattr(settings, name, value)


def look(examiner: Examiner) -> list[Finding]:
    """Examine over a connection of its own, as the doctor does."""
    with hasty_database():
        return list(examiner())


def bad(examiner: Examiner) -> list[tuple[Verdict, str]]:
    """What is not well; each says what to do."""
    found = [one for one in look(examiner) if one.verdict is not Verdict.OK]
    assert all(one.advice for one in found), found
    return [(one.verdict, one.what) for one in found]


@contextmanager
def redis_option(url: str, name: str, value: str) -> Iterator[None]:
    with Redis.from_url(url, protocol=2) as client:
        before: Any = client.config_get(name)
        client.config_set(name, value)
        try:
            yield
        finally:
            client.config_set(name, before[name.encode()].decode() if name.encode() in before else before[name])


def stock_url(settings: Settings) -> str:
    return str(settings.CACHES["stock"]["LOCATION"])


def cache_url(settings: Settings) -> str:
    return str(settings.CACHES["default"]["LOCATION"])


EXAMINERS: list[Examiner] = [
    examine_settings,
    examine_stock_redis,
    examine_cache,
    examine_broker_redis,
    examine_database,
    examine_migrations,
    examine_clocks,
    examine_incidents,
]


@pytest.mark.parametrize("examiner", EXAMINERS)
def test_the_servers_of_the_tests_are_well(examiner: Examiner) -> None:
    """The control of everything below."""
    assert bad(examiner) == []


# The Redis servers


def test_a_stock_redis_that_leaves_its_file_to_the_kernel(settings: Settings) -> None:
    with redis_option(stock_url(settings), "appendfsync", "no"):
        ((verdict, what),) = bad(examine_stock_redis)
    assert verdict is Verdict.FAIL
    assert what == "appendfsync is no: a power cut loses whatever the kernel has not written yet."


@pytest.mark.parametrize(("factor", "verdict"), [(1.2, Verdict.WARN), (1.02, Verdict.FAIL)])
def test_a_stock_redis_that_is_nearly_full(settings: Settings, factor: float, verdict: Verdict) -> None:
    with Redis.from_url(stock_url(settings), protocol=2) as client:
        info: Any = client.info("memory")
    with redis_option(stock_url(settings), "maxmemory", str(int(info["used_memory"] * factor))):
        ((found, what),) = bad(examine_stock_redis)
    assert found is verdict
    assert "of maxmemory" in what


def test_a_stock_redis_that_is_a_replica(settings: Settings) -> None:
    with Redis.from_url(stock_url(settings), protocol=2) as client:
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        try:
            ((verdict, what),) = bad(examine_stock_redis)
        finally:
            client.execute_command("REPLICAOF", "NO", "ONE")
    assert (verdict, what) == (Verdict.FAIL, "STOCK_REDIS_URL leads to a replica, which refuses every write.")


def test_a_stock_redis_that_is_nearly_out_of_connections(settings: Settings) -> None:
    with Redis.from_url(stock_url(settings), protocol=2) as client:
        info: Any = client.info("clients")
    with redis_option(stock_url(settings), "maxclients", str(info["connected_clients"] + 1)):
        ((verdict, what),) = bad(examine_stock_redis)
    assert verdict is Verdict.WARN
    assert "connections taken" in what


def test_a_managed_redis_that_does_not_tell(settings: Settings, servers: PrivateServers) -> None:
    with Redis.from_url(stock_url(settings), protocol=2) as client:
        client.execute_command("ACL", "SETUSER", "guest", "on", "nopass", "~*", "+@all", "-config")
        try:
            point(settings, "stock", f"redis://guest:x@127.0.0.1:{servers.stock_redis.port}/0")
            ((verdict, what),) = bad(examine_stock_redis)
        finally:
            client.execute_command("ACL", "DELUSER", "guest")
    assert (verdict, what) == (Verdict.WARN, "The stock Redis does not tell its appendfsync.")


def test_a_cache_that_evicts_sessions_and_messages(settings: Settings) -> None:
    with redis_option(cache_url(settings), "maxmemory-policy", "allkeys-lru"):
        assert [what for _, what in bad(examine_cache)] == [
            "maxmemory-policy allkeys-lru may throw away sessions: buyers are logged out in the rush."
        ]
        ((verdict, what),) = bad(examine_broker_redis)
    assert verdict is Verdict.WARN
    assert "may throw away messages" in what


def test_what_the_system_checks_find_is_a_finding(settings: Settings) -> None:
    """One rule in one place: persistence, eviction, sharing, character set, DEBUG, hosts, HTTPS, sandbox."""
    settings.DEBUG = True
    settings.ALLOWED_HOSTS = ["*"]
    settings.SANDBOX = True
    settings.CELERY_BROKER_URL = stock_url(settings)
    with redis_option(stock_url(settings), "appendonly", "no"):
        ids = {what.partition(":")[0]: verdict for verdict, what in bad(examine_checks)}
    wanted = {"seckill.E002", "seckill.E004", "security.W018", "accounts.E001", "orders.E001"}
    assert wanted <= set(ids)
    assert ids["seckill.E002"] is Verdict.FAIL
    assert ids["security.W018"] is Verdict.WARN


# The database


def test_commits_that_are_not_on_the_disk() -> None:
    with server_variable("innodb_flush_log_at_trx_commit", "2"):
        ((verdict, what),) = bad(examine_database)
    assert verdict is Verdict.FAIL
    assert what.startswith("innodb_flush_log_at_trx_commit is 2")


def test_a_database_that_is_read_only() -> None:
    with server_variable("read_only", "1"):
        ((verdict, what),) = bad(examine_database)
    assert (verdict, what) == (Verdict.FAIL, "The database is read-only: DATABASE_URL leads to a replica.")


def test_sessions_at_another_isolation() -> None:
    with repeatable_read():
        ((verdict, what),) = bad(examine_database)
    assert (verdict, what) == (Verdict.FAIL, "sessions run at REPEATABLE-READ")


def test_a_table_that_cannot_write_chinese() -> None:
    execute("CREATE TABLE odd (name VARCHAR(9)) CHARACTER SET latin1")
    try:
        ((verdict, what),) = bad(examine_database)
    finally:
        execute("DROP TABLE odd")
    assert (verdict, what) == (Verdict.FAIL, "Not utf8mb4: odd. Names in Chinese are refused or cut there.")


def test_a_database_that_would_let_the_log_be_changed() -> None:
    execute("DROP TRIGGER actions_actionentry_no_delete")
    try:
        ((verdict, what),) = bad(examine_database)
    finally:
        guard()
    assert (verdict, "actions_actionentry_no_delete" in what) == (Verdict.WARN, True)
    assert bad(examine_database) == []


def test_a_database_that_knows_no_time_zones(settings: Settings) -> None:
    settings.TIME_ZONE = "Asia/Shanghai"
    ((verdict, what),) = bad(examine_database)
    assert verdict is Verdict.FAIL
    assert what.startswith("The database does not know Asia/Shanghai")


def test_a_database_that_was_nearly_out_of_connections() -> None:
    with ExitStack() as open_ones:
        for _ in range(10):
            open_ones.enter_context(closing(as_dba()))
    with connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Max_used_connections'")
        used = int(cursor.fetchone()[1])
    with server_variable("max_connections", str(used + 1)):
        ((verdict, what),) = bad(examine_database)
    assert verdict is Verdict.WARN
    assert what == f"at most {used} of {used + 1} connections were taken since its start"


@pytest.mark.parametrize(("threads", "verdict"), [(8, Verdict.OK), (240, Verdict.FAIL)])
def test_more_threads_than_connections(threads: int, verdict: Verdict) -> None:
    """The servers of the tests take 300."""
    found = connections_needed(web_threads=threads, worker_processes=2)
    assert (found.verdict, found.what) == (
        verdict,
        f"{threads} web threads, 2 worker processes and some others want {threads + 7} of 300",
    )


def test_a_user_who_may_not_see_locks() -> None:
    with without_process_privilege():
        ((verdict, what),) = bad(examine_database)
    assert verdict is Verdict.WARN
    assert "may not see who waits for locks" in what


def test_a_mysql_whose_tables_of_locks_stay_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_is_mariadb", lambda: False)
    monkeypatch.setattr(database, "variables", lambda name: {name: "OFF"})
    found = database._locks()
    assert (found.verdict, found.what) == (
        Verdict.WARN,
        "performance_schema is off: an incident about a busy lock will name nobody.",
    )


def test_migrations_that_are_not_applied() -> None:
    recorder = MigrationRecorder(connection)
    name = max(name for app, name in recorder.applied_migrations() if app == "seckill")
    recorder.record_unapplied("seckill", name)
    try:
        ((verdict, what),) = bad(examine_migrations)
    finally:
        recorder.record_applied("seckill", name)
    assert (verdict, what) == (Verdict.FAIL, f"1 migrations are not applied: seckill.{name}")


# Clocks, beat, workers


@pytest.mark.parametrize(("seconds", "verdict"), [(0.6, Verdict.WARN), (-7, Verdict.FAIL)])
def test_a_host_whose_clock_is_wrong(seconds: float, verdict: Verdict) -> None:
    with time_machine.travel(datetime.now(UTC) + timedelta(seconds=seconds), tick=True):
        found = look(examine_clocks)
    assert [one.verdict for one in found] == [verdict, verdict]
    assert found[0].what.startswith(f"Redis's clock is {'-' if seconds > 0 else '+'}")


def test_a_skew_is_only_what_the_round_trip_does_not_explain() -> None:
    assert Skew(ahead=-0.5, uncertainty=0.4).at_least == pytest.approx(0.1)
    assert Skew(ahead=0.1, uncertainty=0.4).at_least == 0


@contextmanager
def beat_that_sent(*, seconds_ago: float | None) -> Iterator[None]:
    before = dict(PeriodicTask.objects.values_list("pk", "last_run_at"))
    at = None if seconds_ago is None else timezone.now() - timedelta(seconds=seconds_ago)
    PeriodicTask.objects.update(last_run_at=at)
    try:
        yield
    finally:
        for pk, last_run_at in before.items():
            PeriodicTask.objects.filter(pk=pk).update(last_run_at=last_run_at)


def test_beat_that_was_never_started() -> None:
    with beat_that_sent(seconds_ago=None):
        assert bad(examine_beat) == [(Verdict.FAIL, "Beat has never sent a task.")]


def test_beat_that_has_stopped() -> None:
    with beat_that_sent(seconds_ago=3_000):
        ((verdict, what),) = bad(examine_beat)
    assert verdict is Verdict.FAIL
    assert what.startswith("For up to 3,00")
    assert "seckill.sweep" in what or "orders." in what
    with beat_that_sent(seconds_ago=5):
        assert bad(examine_beat) == []


def test_a_task_that_was_switched_off() -> None:
    with beat_that_sent(seconds_ago=5):
        PeriodicTask.objects.filter(task="seckill.sweep").update(enabled=False)
        try:
            ((verdict, what),) = bad(examine_beat)
        finally:
            PeriodicTask.objects.filter(task="seckill.sweep").update(enabled=True)
    assert (verdict, what) == (Verdict.FAIL, "Not on the schedule, or switched off: seckill.sweep.")


def test_no_worker_for_any_queue() -> None:
    ((verdict, what),) = bad(lambda: examine_workers(web_threads=0))
    assert (verdict, what) == (Verdict.FAIL, "No worker answers for settle, sweep, slow, archive, alerts, money.")


# Settings


@pytest.mark.parametrize(
    ("values", "verdict", "what"),
    [
        ({"METRICS_TOKEN": "changeme"}, Verdict.FAIL, "METRICS_TOKEN is one that everybody knows."),
        ({"METRICS_TOKEN": "short"}, Verdict.FAIL, "METRICS_TOKEN has fewer than 32 characters."),
        ({"METRICS_TOKEN": SOUND["ALERT_WEBHOOK_SECRET"]}, Verdict.FAIL, "METRICS_TOKEN = ALERT_WEBHOOK_SECRET"),
        ({"SECRET_KEY_FALLBACKS": ["an old one"]}, Verdict.WARN, "SECRET_KEY_FALLBACKS still accepts"),
        ({"METRICS_TOKEN": ""}, Verdict.WARN, "/metrics is shut"),
        ({"METRICS_ADDRESSES": ["0.0.0.0/0"]}, Verdict.FAIL, "METRICS_ADDRESSES lets everybody read /metrics."),
        ({"ALERT_WEBHOOK_URL": "", "ADMINS": []}, Verdict.FAIL, "Nobody is told of incidents"),
        ({"PAYMENT_PROVIDERS": {}}, Verdict.FAIL, "Nobody can pay"),
    ],
)
def test_settings_that_ought_not_to_be(settings: Settings, values: dict[str, Any], verdict: Verdict, what: str) -> None:
    for name, value in values.items():
        setattr(settings, name, value)
    ((found, words),) = bad(examine_settings)
    assert found is verdict
    assert what in words


def test_no_secret_is_told(settings: Settings) -> None:
    settings.METRICS_TOKEN = settings.SECRET_KEY
    told = json.dumps([one.what + one.advice for one in look(examine_settings)])
    assert "SECRET_KEY = METRICS_TOKEN" in told
    assert settings.SECRET_KEY not in told


@pytest.mark.parametrize(("files", "verdict"), [(2_000, Verdict.WARN), (900, Verdict.FAIL)])
def test_few_open_files(files: int, verdict: Verdict) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    try:
        ((found, what),) = bad(examine_settings)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found is verdict
    assert f"{files:,} open files at most" in what


def test_a_stop_file_that_was_forgotten(settings: Settings, tmp_path: Path) -> None:
    settings.STOP_FILE = str(tmp_path / "stop")
    assert bad(examine_settings) == []
    (tmp_path / "stop").touch()
    assert bad(examine_settings) == [(Verdict.WARN, f"{tmp_path}/stop is there: every sale is stopped on this host.")]


def test_no_common_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR")
    ((verdict, what),) = bad(examine_settings)
    assert verdict is Verdict.FAIL
    assert what.startswith("Every process counts for itself")


# All of it


def test_something_is_wrong_already() -> None:
    shop = open_sale()
    open_incident(kind="queue_forked", severity=Severity.CRITICAL, bucket=shop.bucket, detail="", now=timezone.now())
    assert bad(examine_incidents) == [(Verdict.WARN, "Critical and open: queue_forked.")]


@contextmanager
def database_gone() -> Iterator[None]:
    before = connection.settings_dict["PORT"]
    connection.settings_dict["PORT"] = "1"
    try:
        yield
    finally:
        connection.settings_dict["PORT"] = before


@pytest.mark.slow
def test_dead_servers_are_findings(settings: Settings) -> None:
    point(settings, "stock", NOWHERE)
    point(settings, "default", NOWHERE)
    settings.CELERY_BROKER_URL = NOWHERE
    with database_gone():
        found = examine(web_threads=8)
    failed = {one.topic for one in found if one.verdict is Verdict.FAIL}
    assert {"stock redis", "cache", "broker", "database", "migrations", "clocks", "beat", "workers"} <= failed
    assert all(one.advice for one in found if one.verdict is Verdict.FAIL)


def run(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("doctor", *arguments, stdout=out)
    except SystemExit as leaving:
        return int(str(leaving.code)), out.getvalue()
    return 0, out.getvalue()


@pytest.mark.slow
def test_the_command_says_it_in_a_table_and_as_json() -> None:
    """Nothing runs here but the servers: beat and workers are missing, and the status says so."""
    status, text = run("--bad")
    assert status == 1
    assert "No worker answers for settle" in " ".join(text.split())
    assert "→ celery -A config worker -Q" in " ".join(text.split())
    status, text = run("--json")
    told = json.loads(text)
    assert status == 1
    assert told["failures"] == sum(one["verdict"] == "fail" for one in told["findings"]) > 0
    assert {"topic", "verdict", "what", "advice"} == set(told["findings"][0])


@pytest.mark.slow
def test_servers_that_stand_still_are_findings_too(servers: PrivateServers) -> None:
    began = time.monotonic()
    with standing_still(servers.database, servers.stock_redis, servers.cache_redis):
        found = examine(web_threads=0)
    assert time.monotonic() - began < 40
    failed = {one.topic for one in found if one.verdict is Verdict.FAIL}
    assert {"stock redis", "cache", "broker", "database", "migrations", "clocks", "beat", "workers"} <= failed
