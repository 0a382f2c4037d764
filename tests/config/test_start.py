"""Starting for real, each time in a process of its own: sound settings start, others stop with a message."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from benchmarks.servers import PrivateServers
from seckill.gate.connection import raw_client
from tests.plugin import ROOT

pytestmark = pytest.mark.slow

PYTHON = sys.executable
MANAGE = (PYTHON, "manage.py")
LOAD_WEB = (PYTHON, "-c", "import config.asgi; print('loaded')")
CIPHER = "import django; django.setup(); from django.db import connection as c; k = c.cursor();"
ASK_CIPHER = (PYTHON, "-c", CIPHER + "k.execute(\"SHOW STATUS LIKE 'Ssl_cipher'\"); print(k.fetchone())")
START_WORKER = (PYTHON, "-m", "celery", "-A", "config", "worker", "--pool", "solo", "--queues", "nothing")
SECONDS_MAX = 20


def start(command: tuple[str, ...], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        env={"PATH": str(Path(PYTHON).parent), **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )


@pytest.fixture
def evicting() -> Iterator[None]:
    """A stock Redis that may evict stock."""
    raw_client().config_set("maxmemory-policy", "allkeys-lru")
    yield
    raw_client().config_set("maxmemory-policy", "noeviction")


def test_the_address_of_the_database_may_ask_for_encryption(servers: PrivateServers) -> None:
    """MySQL makes itself a certificate at its first start, MariaDB 10 does not; one of another authority is refused."""
    environment = {**servers.environment(), "DJANGO_SETTINGS_MODULE": "config.settings"}
    address = environment["DATABASE_URL"]
    assert start(ASK_CIPHER, environment).stdout == "('Ssl_cipher', '')\n"
    encrypted = start(ASK_CIPHER, {**environment, "DATABASE_URL": f"{address}?ssl_mode=REQUIRED"})
    assert ("TLS_" in encrypted.stdout) is not connection.mysql_is_mariadb  # type: ignore[attr-defined]
    foreign = {
        "DATABASE_URL": f"{address}?ssl_mode=VERIFY_IDENTITY",
        "DATABASE_CA": "/etc/ssl/certs/ca-certificates.crt",
    }
    refused = start(ASK_CIPHER, {**environment, **foreign})
    assert (refused.returncode, refused.stdout) == (1, "")


@pytest.mark.parametrize("name", ["SECRET_KEY", "DATABASE_URL", "STOCK_REDIS_URL", "CACHE_REDIS_URL"])
def test_a_missing_setting_is_named(name: str, servers: PrivateServers) -> None:
    environment = servers.environment()
    del environment[name]
    done = start((*MANAGE, "check"), environment)
    assert done.returncode != 0
    assert f"Set the {name} environment variable" in done.stderr


def test_an_empty_secret_is_a_missing_one(servers: PrivateServers) -> None:
    """An orchestrator that passes on a variable it does not have passes on an empty one."""
    done = start(LOAD_WEB, {**servers.environment(), "SECRET_KEY": ""})
    assert done.returncode != 0
    assert "SECRET_KEY" in done.stderr


def test_the_settings_for_production_pass_every_check(servers: PrivateServers) -> None:
    command = (*MANAGE, "check", "--deploy", "--fail-level", "WARNING", "--database", "default")
    done = start(command, {**servers.environment(), "HTTPS": "1", "PUBLIC_URL": "https://shop.example"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "no issues" in done.stdout


def test_a_sandbox_fails_the_check_for_production(servers: PrivateServers) -> None:
    done = start((*MANAGE, "check", "--deploy"), {**servers.environment(), "HTTPS": "1", "SANDBOX": "1"})
    assert done.returncode == 1
    assert "(orders.E001) The sandbox payment provider is on" in done.stderr


@pytest.mark.usefixtures("evicting")
def test_the_check_command_names_what_is_unsound(servers: PrivateServers) -> None:
    done = start((*MANAGE, "check", "--database", "default"), servers.environment())
    assert done.returncode == 1
    assert "(seckill.E001) The stock Redis may evict stock: maxmemory-policy is allkeys-lru." in done.stderr


def test_the_web_process_loads_on_sound_servers(servers: PrivateServers) -> None:
    done = start(LOAD_WEB, servers.environment())
    assert (done.returncode, done.stdout) == (0, "loaded\n")


@pytest.mark.usefixtures("evicting")
def test_the_web_process_refuses_to_load_on_a_redis_that_evicts(servers: PrivateServers) -> None:
    done = start(LOAD_WEB, servers.environment())
    assert done.returncode != 0
    assert done.stdout == ""
    assert "ImproperlyConfigured" in done.stderr
    assert "maxmemory-policy is allkeys-lru" in done.stderr


@pytest.mark.usefixtures("evicting")
def test_a_worker_refuses_to_start_on_a_redis_that_evicts(servers: PrivateServers) -> None:
    """A worker that only complained and worked on would time out here."""
    done = start(START_WORKER, servers.environment())
    assert done.returncode != 0
    assert "maxmemory-policy is allkeys-lru" in done.stderr
