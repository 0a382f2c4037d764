"""The Redis servers: does the stock's keep what it is told, can it go on writing, who else lives there.

Whether it keeps an append-only file, evicts, is old enough or shared, ``config.checks`` says.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.core.cache import cache

from config.checks import REDIS_SCHEMES
from config.doctor.findings import Finding, fail, judge, ok, warn
from seckill.errors import GateUnavailable
from seckill.gate.server import Where, server_info, server_options, stock_servers

MEMORY_WARN, MEMORY_FAIL = 0.75, 0.9
# Without a limit of its own Redis may take no more than this of the machine: its forks copy what is written meanwhile.
UNLIMITED_WARN = 0.45
CLIENTS_WARN = 0.8
STOCK = "stock redis"


def examine_stock_redis() -> Iterator[Finding]:
    """Everything that INFO and CONFIG say about the server that decides, or about each that does."""
    servers = stock_servers()
    for name, where in servers:
        try:
            yield from _examine(STOCK + name, where)
        except GateUnavailable as error:
            if len(servers) == 1:
                raise
            advice = "Its share of the buckets cannot be sold: start it, or let a replica take over."
            yield fail(STOCK + name, f"This node cannot be asked: {error}", advice)


def _examine(topic: str, where: Where) -> Iterator[Finding]:
    info = server_info(where)
    # Valkey also tells the version of the Redis that it is compatible with.
    name = "Valkey" if "valkey_version" in info else "Redis"
    yield ok(topic, f"{name} {info.get(f'{name.lower()}_version', 'of an untold version')} answers")
    yield from _can_it_write(topic, info)
    options = server_options(where, "appendfsync", "save", "min-replicas-to-write")
    yield from _does_it_keep(info, options)
    if int(info.get("connected_slaves", 0)) > 0:
        yield _is_it_fenced(topic, options)
    yield _memory(topic, info)
    yield _clients(topic, info)


def _is_it_fenced(topic: str, options: Mapping[str, str]) -> Finding:
    """Where replicas may take over, a master that has lost them must stop: what it still sold would be lost."""
    if options.get("min-replicas-to-write", "1") != "0":
        return ok(topic, "it stops accepting when it has lost its replicas")
    what = "Cut off from its replicas it goes on accepting, and what it accepts then is lost when one takes over."
    return warn(topic, what, "CONFIG SET min-replicas-to-write 1 and min-replicas-max-lag 10, and CONFIG REWRITE.")


def _can_it_write(topic: str, info: Mapping[str, Any]) -> Iterator[Finding]:
    yield judge(
        topic=topic,
        is_well=info.get("role", "master") == "master",
        what="it is a master",
        else_what="STOCK_REDIS_URL leads to a replica, which refuses every write.",
        advice="Point it at the master, or at a proxy or Sentinel that knows it.",
    )
    broken = [
        name
        for name in ("aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status")
        if info.get(name, "ok") != "ok"
    ]
    yield judge(
        topic=topic,
        is_well=not broken,
        what="its last writes to the disk succeeded",
        else_what=f"It could not write to its disk: {', '.join(broken)}.",
        advice="Make room on the disk and look into Redis's log; until then it may refuse writes or forget.",
    )


def _does_it_keep(info: Mapping[str, Any], options: Mapping[str, str]) -> Iterator[Finding]:
    topic, policy = "persistence", options.get("appendfsync")
    if policy is None:
        advice = "Make sure by other means that it is everysec or always."
        yield warn(topic, "The stock Redis does not tell its appendfsync.", advice)
    else:
        yield judge(
            topic=topic,
            is_well=policy in {"everysec", "always"},
            what=f"appendfsync {policy}",
            else_what=f"appendfsync is {policy}: a power cut loses whatever the kernel has not written yet.",
            advice="CONFIG SET appendfsync everysec (or always), and CONFIG REWRITE.",
        )
    if int(info.get("aof_delayed_fsync", 0)) > 0:
        what = f"{info['aof_delayed_fsync']} times the disk was too slow for the append-only file, and Redis waited."
        yield warn(topic, what, "Give the stock Redis a disk of its own, or a faster one.")


def _memory(topic: str, info: Mapping[str, Any]) -> Finding:
    used, limit = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    whole = int(info.get("total_system_memory", 0))
    if not limit:
        share = used / whole if whole else 0.0
        what = f"{used / 2**20:,.0f} MB used, without a limit of its own, {share:.0%} of the machine's memory"
        advice = "Set maxmemory to what the machine can spare: the kernel kills what does not fit."
        return warn(topic, what, advice) if share > UNLIMITED_WARN else ok(topic, what)
    share = used / limit
    what = f"{share:.0%} of maxmemory ({limit / 2**20:,.0f} MB) used"
    advice = "Raise maxmemory before the next sale: a full Redis refuses purchases. A buyer takes about 0.5 kB."
    if share >= MEMORY_FAIL:
        return fail(topic, what, advice)
    return warn(topic, what, advice) if share >= MEMORY_WARN else ok(topic, what)


def _clients(topic: str, info: Mapping[str, Any]) -> Finding:
    now, most = int(info.get("connected_clients", 0)), int(info.get("maxclients", 10_000))
    what = f"{now:,} of {most:,} connections taken"
    advice = "Raise maxclients, or lower STOCK_REDIS_CONNECTIONS times the number of processes."
    return warn(topic, what, advice) if now > CLIENTS_WARN * most else ok(topic, what)


def examine_cache() -> Iterator[Finding]:
    """Cache and sessions: it answers, keeps what it is told, and throws no session away."""
    topic, key = "cache", "doctor"
    cache.set(key, "well", timeout=10)
    yield judge(
        topic=topic,
        is_well=cache.get(key) == "well",
        what="the cache keeps what it is told; sessions live there",
        else_what="The cache forgets at once what it is told: nobody stays logged in.",
        advice="Look at CACHE_REDIS_URL and at that server's memory.",
    )
    if "SENTINELS" in settings.CACHES["default"]["OPTIONS"]:
        yield ok(topic, "its master is found through Sentinels; ask each server itself for its memory")
        return
    info = server_info(settings.CACHES["default"]["LOCATION"])
    yield from _evicts(topic, info, "sessions: buyers are logged out in the rush")
    yield _memory(topic, info)


def examine_broker_redis() -> Iterator[Finding]:
    """The broker's server, where it is a Redis."""
    url = str(settings.CELERY_BROKER_URL)
    if not url.startswith(REDIS_SCHEMES):
        return
    try:
        info = server_info(url)
    except GateUnavailable as error:
        advice = "Purchases go on without it, settled by nobody: start it. BROKER_URL says where it is looked for."
        yield fail("broker", f"The broker cannot be asked: {error}", advice)
        return
    yield ok("broker", "the broker answers")
    yield from _evicts("broker", info, "messages: they are replaced a second later, and settlement stutters")


def _evicts(topic: str, info: Mapping[str, Any], what: str) -> Iterator[Finding]:
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        yield warn(topic, f"maxmemory-policy {policy} may throw away {what}.", "Set maxmemory-policy noeviction.")
