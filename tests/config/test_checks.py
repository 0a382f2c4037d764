"""Unsound servers stop the start in production with a message that says what to do; what cannot be read warns."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from pytest_django import Settings
from redis import Redis
from redis.connection import Connection

from benchmarks.servers import PrivateServers
from config.checks import (
    check_database,
    check_no_sandbox,
    check_own_names,
    check_proxies,
    check_stock_redis,
    require_sound_servers,
)
from config.durable_checks import check_durability
from seckill.errors import GateUnavailable
from seckill.gate import server
from seckill.gate.connection import raw_client
from seckill.gate.rehearsal import rehearse
from tests.support.aliases import NOWHERE, point

ALL = ["default"]

Setter = Callable[[str, str], None]


@pytest.fixture
def set_option() -> Iterator[Setter]:
    """Sets an option of the stock Redis until the end of the test."""
    client = raw_client()
    before: dict[str, str] = {}

    def set_one(name: str, value: str) -> None:
        before.setdefault(name, client.config_get(name)[name])
        client.config_set(name, value)

    yield set_one
    for name, value in before.items():
        client.config_set(name, value)


@pytest.fixture
def guest() -> Iterator[str]:
    """The name of a Redis user who may do anything but ask for INFO."""
    client = raw_client()
    client.execute_command("ACL", "SETUSER", "guest", "on", "nopass", "~*", "+@all", "-info")
    yield "guest"
    client.execute_command("ACL", "DELUSER", "guest")


def execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


@contextmanager
def database_in_latin1() -> Iterator[None]:
    name = connection.settings_dict["NAME"]
    execute(f"ALTER DATABASE `{name}` CHARACTER SET latin1")
    try:
        yield
    finally:
        execute(f"ALTER DATABASE `{name}` CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci")


@contextmanager
def session_not_strict() -> Iterator[None]:
    execute("SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'")
    try:
        yield
    finally:
        connection.close()


@contextmanager
def repeatable_read() -> Iterator[None]:
    options = connection.settings_dict["OPTIONS"]
    before = options["isolation_level"]
    options["isolation_level"] = "repeatable read"
    try:
        yield
    finally:
        options["isolation_level"] = before


class ReticentConnection(Connection):
    """A connection to the real Redis whose INFO is shortened to what a managed one may tell."""

    untold: tuple[bytes, ...] = ()

    def read_response(self, *args: Any, **kwargs: Any) -> Any:
        """Return the reply without the lines that are not told."""
        reply = super().read_response(*args, **kwargs)
        if isinstance(reply, bytes):
            return b"\r\n".join(line for line in reply.split(b"\r\n") if not line.startswith(self.untold))
        return reply


class NamelessConnection(ReticentConnection):
    """One whose server does not even tell its run id."""

    untold = (b"run_id:",)


class ReticentRedis(Redis):
    """A client with such connections."""

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Redis:
        """Connect as the real client does."""
        return super().from_url(url, connection_class=ReticentConnection, **options)


def ids() -> list[str | None]:
    """The checks that complain."""
    return [message.id for message in [*check_stock_redis(databases=ALL), *check_database(databases=ALL)]]


def stop_message() -> str:
    """Start as production does; return why it does not."""
    with pytest.raises(ImproperlyConfigured) as caught:
        require_sound_servers()
    return str(caught.value)


def test_the_servers_of_the_tests_are_sound() -> None:
    """The control of everything below."""
    assert ids() == []
    require_sound_servers()


def test_a_redis_that_evicts(set_option: Setter) -> None:
    """CASES 17: allkeys-lru drops stock without any error."""
    set_option("maxmemory-policy", "allkeys-lru")
    assert "maxmemory-policy is allkeys-lru" in stop_message()
    assert "Set maxmemory-policy noeviction" in stop_message()
    assert ids() == ["seckill.E001"]


def test_a_redis_without_its_append_only_file(set_option: Setter) -> None:
    set_option("appendonly", "no")
    assert "its append-only file is off" in stop_message()
    assert "Set appendonly yes" in stop_message()
    assert ids() == ["seckill.E002"]


def test_stock_and_cache_on_one_server(settings: Settings) -> None:
    """Another database of the same server is the same memory, and the same FLUSHALL."""
    point(settings, "default", settings.CACHES["stock"]["LOCATION"].removesuffix("/0") + "/1")
    assert "Stock and cache share one Redis server" in stop_message()
    assert "Point CACHE_REDIS_URL and BROKER_URL at another server" in stop_message()
    assert ids() == ["seckill.E004"]


def test_stock_and_broker_on_one_server(settings: Settings) -> None:
    settings.CELERY_BROKER_URL = settings.CACHES["stock"]["LOCATION"]
    assert "Stock and broker share one Redis server" in stop_message()
    assert ids() == ["seckill.E004"]


def test_a_broker_that_is_no_redis_is_not_asked(settings: Settings) -> None:
    settings.CELERY_BROKER_URL = "amqp://127.0.0.1:1//"
    assert ids() == []


@pytest.mark.parametrize(
    ("unsound", "message", "check_id"),
    [
        (database_in_latin1, "The database's character set is latin1", "seckill.E005"),
        (session_not_strict, "The database cuts values silently: sql_mode is not strict", "seckill.E006"),
        (repeatable_read, "The isolation level must be read committed", "seckill.E007"),
    ],
)
def test_an_unsound_database(unsound: Callable[[], AbstractContextManager[None]], message: str, check_id: str) -> None:
    """CASES 36 and 37: names cut, values cut, rows that another transaction wrote not seen."""
    with unsound():
        found, stopped = ids(), stop_message()
    assert found == [check_id]
    assert message in stopped
    assert ids() == []


def test_several_faults_are_told_at_once(set_option: Setter) -> None:
    set_option("maxmemory-policy", "volatile-ttl")
    set_option("appendonly", "no")
    assert "volatile-ttl" in stop_message()
    assert "append-only" in stop_message()


def test_debug_lets_it_pass_with_a_warning(
    set_option: Setter, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    set_option("maxmemory-policy", "allkeys-lru")
    settings.DEBUG = True
    require_sound_servers()
    assert "maxmemory-policy is allkeys-lru" in caplog.text


@pytest.mark.parametrize(
    ("untold", "named"),
    [
        ((b"redis_version:", b"maxmemory_policy:", b"aof_enabled:"), "version, eviction_policy, is_aof_on"),
        ((b"run_id:",), "run_id"),
    ],
)
def test_a_managed_redis_that_does_not_tell_only_warns(
    untold: tuple[bytes, ...], named: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ReticentConnection, "untold", untold)
    monkeypatch.setattr(server, "Redis", ReticentRedis)
    require_sound_servers()
    assert ids() == ["seckill.W002"]
    assert f"The stock Redis does not tell its {named}." in caplog.text


def test_a_redis_that_does_not_tell_who_it_is_sells_nothing(settings: Settings, servers: PrivateServers) -> None:
    """Law 8: without a run id a restart could not be noticed; so it is an outage, and its reason is told."""
    url = f"redis://127.0.0.1:{servers.stock_redis.port}/3"
    point(settings, "stock", url, connection_class=NamelessConnection)
    with pytest.raises(GateUnavailable, match="does not tell its run id"):
        rehearse()


def test_a_managed_redis_that_forbids_the_question_only_warns(
    settings: Settings, servers: PrivateServers, caplog: pytest.LogCaptureFixture, guest: str
) -> None:
    point(settings, "stock", f"redis://{guest}:x@127.0.0.1:{servers.stock_redis.port}/0")
    require_sound_servers()
    assert ids() == ["seckill.W001"]
    assert "Redis cannot be asked" in caplog.text


@pytest.mark.parametrize("alias", ["stock", "default"])
def test_a_redis_that_is_away_only_warns(settings: Settings, alias: str, caplog: pytest.LogCaptureFixture) -> None:
    """It may come back; what then sells is checked by the gate."""
    point(settings, alias, NOWHERE)
    require_sound_servers()
    assert ids() == ["seckill.W001"]
    assert "Redis cannot be asked" in caplog.text


def test_a_broker_that_is_away_only_warns(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    settings.CELERY_BROKER_URL = NOWHERE
    require_sound_servers()
    assert ids() == ["seckill.W001"]
    assert "The broker's Redis cannot be asked" in caplog.text


def test_a_database_that_is_away_only_warns(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    connection.close()
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "PORT", 1)
        require_sound_servers()
        assert ids() == ["seckill.W003"]
    assert "The database cannot be asked" in caplog.text


def test_ordinary_commands_ask_no_server() -> None:
    assert check_stock_redis(databases=None) == []
    assert check_database(databases=None) == []


def test_a_sandbox_is_no_provider_for_production(settings: Settings) -> None:
    settings.SANDBOX = False
    assert check_no_sandbox(None) == []
    settings.SANDBOX = True
    assert [message.id for message in check_no_sandbox(None)] == ["orders.E001"]


def test_a_proxy_must_not_stand_for_all_buyers(settings: Settings) -> None:
    assert check_proxies(None) == []
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.TRUSTED_PROXIES = 0
    assert [message.id for message in check_proxies(None)] == ["rest.E001"]
    settings.TRUSTED_PROXIES = 1
    assert check_proxies(None) == []


def test_links_lead_to_the_shop(settings: Settings) -> None:
    settings.IS_HTTPS, settings.PUBLIC_URL, settings.ALLOWED_HOSTS = True, "https://shop.example", ["shop.example"]
    assert check_own_names(None) == []
    settings.PUBLIC_URL, settings.ALLOWED_HOSTS = "http://127.0.0.1:8000", ["*"]
    assert [message.id for message in check_own_names(None)] == ["accounts.E001", "orders.E002"]


SOUND = {"appendfsync": "always", "no-appendfsync-on-rewrite": "no", "min-replicas-to-write": "1"}


@pytest.mark.parametrize(
    ("name", "value", "wait_ms", "found"),
    [
        ("appendfsync", "always", 200, []),
        ("appendfsync", "everysec", 200, ["seckill.E008"]),
        ("no-appendfsync-on-rewrite", "yes", 200, ["seckill.E009"]),
        ("min-replicas-to-write", "0", 200, ["seckill.E010"]),
        ("appendfsync", "always", 1_000, ["seckill.E011"]),
    ],
)
def test_durable_mode_wants_a_server_that_is(
    settings: Settings, set_option: Setter, name: str, value: str, wait_ms: int, found: list[str]
) -> None:
    for option, sound in SOUND.items():
        set_option(option, sound)
    set_option(name, value)
    assert check_durability(databases=ALL) == []
    settings.DURABLE, settings.DURABLE_REPLICAS, settings.DURABLE_WAIT_MS = True, 1, wait_ms
    assert [message.id for message in check_durability(databases=ALL)] == found


def test_durable_mode_where_the_server_tells_nothing(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.DURABLE = True
    monkeypatch.setattr("config.durable_checks.server_options", lambda *_: {})
    assert [message.id for message in check_durability(databases=ALL)] == ["seckill.W004"]
    monkeypatch.undo()
    point(settings, "stock", NOWHERE)
    assert [message.id for message in check_durability(databases=ALL)] == ["seckill.W001"]
    assert check_durability(databases=None) == []
