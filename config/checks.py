"""Start-up checks of what correctness depends on: Redis persistence and eviction, charset, isolation.

They carry Django's ``database`` tag, so ordinary commands do not need the servers;
``manage.py check --database default`` and the start of every web process and worker run them.
"""

import logging
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection

from config.durable_checks import check_durability
from seckill.errors import GateUnavailable
from seckill.gate.server import ServerFacts, server_facts, stock_servers

logger = logging.getLogger(__name__)

REDIS_VERSION_MIN = (7, 0)
REDIS_SCHEMES = ("redis://", "rediss://", "unix://")


@checks.register(checks.Tags.database)
def check_stock_redis(databases: Sequence[str] | None, **_kwargs: Any) -> list[checks.CheckMessage]:
    """The stock Redis must keep what it is told: AOF on, nothing evicted, not shared with the cache."""
    if not databases:
        return []
    try:
        servers = stock_servers()
    except GateUnavailable as error:
        return [checks.Warning(f"The stock Redis cannot be asked: {error}", id="seckill.W001")]
    found: list[checks.CheckMessage] = []
    for name, where in servers:
        try:
            facts = server_facts(where)
        except GateUnavailable as error:
            found.append(checks.Warning(f"The stock Redis{name} cannot be asked: {error}", id="seckill.W001"))
            continue
        found += [*_stock_redis_errors(facts, name=name), *_sharing_errors(facts), *_unreadable(facts, name=name)]
    return found


def _stock_redis_errors(facts: ServerFacts, *, name: str) -> list[checks.CheckMessage]:
    found: list[checks.CheckMessage] = []
    if facts.eviction_policy not in {None, "noeviction"}:
        found.append(
            checks.Error(
                f"The stock Redis{name} may evict stock: maxmemory-policy is {facts.eviction_policy}.",
                hint="Set maxmemory-policy noeviction and give cache and sessions a server of their own.",
                id="seckill.E001",
            )
        )
    if facts.is_aof_on is False:
        found.append(
            checks.Error(
                f"The stock Redis{name} forgets at a restart: its append-only file is off.",
                hint="Set appendonly yes, appendfsync everysec (or always).",
                id="seckill.E002",
            )
        )
    if facts.version is not None and facts.version < REDIS_VERSION_MIN:
        found.append(
            checks.Error(
                f"Redis {'.'.join(map(str, facts.version))}{name and f' at{name}'} is older than 7.0.",
                hint="Use Redis 7.0 or newer, or a Valkey.",
                id="seckill.E003",
            )
        )
    return found


def _sharing_errors(stock: ServerFacts) -> list[checks.CheckMessage]:
    """Compare the stock server's run id with those of cache and broker, each asked on its own."""
    found: list[checks.CheckMessage] = []
    urls = {"broker": settings.CELERY_BROKER_URL}
    if "SENTINELS" not in settings.CACHES["default"]["OPTIONS"]:
        urls["cache"] = settings.CACHES["default"]["LOCATION"]
    for name, url in urls.items():
        if not url.startswith(REDIS_SCHEMES):
            continue
        try:
            other = server_facts(url)
        except GateUnavailable as error:
            found.append(checks.Warning(f"The {name}'s Redis cannot be asked: {error}", id="seckill.W001"))
            continue
        if stock.run_id is not None and stock.run_id == other.run_id:
            found.append(
                checks.Error(
                    f"Stock and {name} share one Redis server.",
                    hint="Point CACHE_REDIS_URL and BROKER_URL at another server than STOCK_REDIS_URL.",
                    id="seckill.E004",
                )
            )
    return found


def _unreadable(facts: ServerFacts, *, name: str) -> list[checks.CheckMessage]:
    missing = [name for name, value in vars(facts).items() if value is None]
    if not missing:
        return []
    return [
        checks.Warning(
            f"The stock Redis{name} does not tell its {', '.join(missing)}.",
            hint="Make sure by other means that AOF is on and nothing is evicted.",
            id="seckill.W002",
        )
    ]


@checks.register(checks.Tags.database)
def check_database(databases: Sequence[str] | None, **_kwargs: Any) -> list[checks.CheckMessage]:
    """The database must be utf8mb4, READ COMMITTED and strict."""
    if not databases:
        return []
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT default_character_set_name FROM information_schema.schemata WHERE schema_name = DATABASE()"
            )
            row = cursor.fetchone()
            charset = row[0] if row else None
            cursor.execute("SELECT @@sql_mode")
            sql_mode = cursor.fetchone()[0]
    except DatabaseError as error:
        return [checks.Warning(f"The database cannot be asked: {error}", id="seckill.W003")]
    found: list[checks.CheckMessage] = []
    if charset != "utf8mb4":
        found.append(
            checks.Error(
                f"The database's character set is {charset}: names in Chinese would be refused or cut.",
                hint="ALTER DATABASE ... CHARACTER SET utf8mb4, before the first migration.",
                id="seckill.E005",
            )
        )
    if "STRICT_TRANS_TABLES" not in sql_mode and "STRICT_ALL_TABLES" not in sql_mode:
        found.append(
            checks.Error(
                "The database cuts values silently: sql_mode is not strict.",
                hint="Let nothing change the sql_mode that the settings set for each session.",
                id="seckill.E006",
            )
        )
    if settings.DATABASES["default"]["OPTIONS"].get("isolation_level") != "read committed":
        found.append(
            checks.Error(
                "The isolation level must be read committed.",
                hint="Leave isolation_level in DATABASES as it is.",
                id="seckill.E007",
            )
        )
    return found


@checks.register(checks.Tags.security, deploy=True)
def check_no_sandbox(app_configs: object, **_kwargs: Any) -> list[checks.CheckMessage]:
    """Where orders are real nobody may pay with a click."""
    del app_configs
    if not settings.SANDBOX:
        return []
    return [
        checks.Error(
            "The sandbox payment provider is on: anybody pays for anything without money.",
            hint="Unset SANDBOX, and name real providers in PAYMENT_PROVIDERS.",
            id="orders.E001",
        )
    ]


@checks.register(checks.Tags.security, deploy=True)
def check_proxies(app_configs: object, **_kwargs: Any) -> list[checks.CheckMessage]:
    """Behind a proxy the buyers' addresses must be told apart."""
    del app_configs
    if settings.SECURE_PROXY_SSL_HEADER is None or settings.TRUSTED_PROXIES > 0:
        return []
    return [
        checks.Error(
            "Every buyer has the proxy's address: all are counted as one, and one rival locks anybody out.",
            hint="Set TRUSTED_PROXIES to how many proxies of the shop's own append to X-Forwarded-For.",
            id="rest.E001",
        )
    ]


@checks.register(checks.Tags.security, deploy=True)
def check_own_names(app_configs: object, **_kwargs: Any) -> list[checks.CheckMessage]:
    """Links in mails and to payment providers must lead here."""
    del app_configs
    found: list[checks.CheckMessage] = []
    if "*" in settings.ALLOWED_HOSTS:
        found.append(
            checks.Error(
                "ALLOWED_HOSTS takes any name: links for a new password go wherever an attacker wants.",
                hint="List the shop's own names.",
                id="accounts.E001",
            )
        )
    if settings.IS_HTTPS and not settings.PUBLIC_URL.startswith("https://"):
        found.append(
            checks.Error(
                f"PUBLIC_URL is {settings.PUBLIC_URL}: payment providers send buyers there.",
                hint="Set PUBLIC_URL to the https:// address where browsers reach the shop.",
                id="orders.E002",
            )
        )
    return found


def require_sound_servers() -> None:
    """Log warnings and raise ``ImproperlyConfigured`` for errors of the checks above, unless DEBUG is on."""
    messages = [
        *check_stock_redis(databases=["default"]),
        *check_durability(databases=["default"]),
        *check_database(databases=["default"]),
    ]
    for message in messages:
        logger.warning("start-up check: %s", message)
    errors = [str(message) for message in messages if message.level >= checks.ERROR]
    if errors and not settings.DEBUG:
        raise ImproperlyConfigured("\n".join(errors))
