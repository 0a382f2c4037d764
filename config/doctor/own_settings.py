"""What the settings say, and this process's own limits; no server is asked."""

import resource
from collections import defaultdict
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from config.doctor.findings import Finding, fail, judge, ok, warn
from metrics.directory import directory

SECRET_LENGTH_MIN = 32
# What stands in examples and drafts.
KNOWN_SECRETS = frozenset({"unused", "secret", "changeme", "change-me", "password", "test", "dev", "insecure"})
# A web process has a file for each connection of a buyer.
OPEN_FILES_MIN, OPEN_FILES_WANTED = 1_024, 4_096
COUNT_FILES_MAX = 500


def examine_settings() -> Iterator[Finding]:
    """Secrets, metrics, who is told of incidents, how buyers pay."""
    yield from _secrets()
    yield from _metrics()
    yield from _people()
    yield _open_files()
    yield from _stopped()


def _secrets() -> Iterator[Finding]:
    found = _all_secrets()
    weak = [name for name, value in found.items() if value.lower() in KNOWN_SECRETS or "django-insecure" in value]
    short = [n for n, value in found.items() if n.isupper() and len(value) < SECRET_LENGTH_MIN and n not in weak]
    by_value: dict[str, list[str]] = defaultdict(list)
    for name, value in found.items():
        by_value[value].append(name)
    shared = [" = ".join(names) for names in by_value.values() if len(names) > 1]
    advice = "Make a new one: python -c 'import secrets; print(secrets.token_urlsafe(48))'"
    if weak:
        yield fail("secrets", f"{', '.join(weak)} is one that everybody knows.", advice)
    if short:
        yield fail("secrets", f"{', '.join(short)} has fewer than {SECRET_LENGTH_MIN} characters.", advice)
    if shared:
        what = f"The same secret in two places, and whoever has one has both: {'; '.join(shared)}."
        yield fail("secrets", what, advice)
    if settings.SECRET_KEY_FALLBACKS:
        what = "SECRET_KEY_FALLBACKS still accepts what older keys have signed."
        yield warn("secrets", what, "Unset it once no ticket and no session of the old key is alive.")
    if not (weak or short or shared):
        yield ok("secrets", f"{len(found)} secrets, long, each of its own")


def _all_secrets() -> dict[str, str]:
    """Every secret by its name; those within URLs by the name of the URL."""
    named = {
        "SECRET_KEY": settings.SECRET_KEY,
        "METRICS_TOKEN": settings.METRICS_TOKEN,
        "ALERT_WEBHOOK_SECRET": settings.ALERT_WEBHOOK_SECRET,
        "SANDBOX_SECRET": settings.SANDBOX_SECRET if settings.SANDBOX else "",
        "password in DATABASE_URL": settings.DATABASES["default"].get("PASSWORD") or "",
        "password in STOCK_REDIS_URL": urlsplit(settings.CACHES["stock"]["LOCATION"]).password or "",
    }
    # Cache and broker often are one server: one password.
    for name, url in (("CACHE_REDIS_URL", settings.CACHES["default"]["LOCATION"]), ("BROKER_URL", _broker_url())):
        password = urlsplit(url).password or ""
        if password not in named.values():
            named[f"password in {name}"] = password
    return {name: value for name, value in named.items() if value}


def _broker_url() -> str:
    return str(settings.CELERY_BROKER_URL)


def _metrics() -> Iterator[Finding]:
    topic = "metrics"
    everywhere = [network for network in settings.METRICS_ADDRESSES if ip_network(network).prefixlen == 0]
    if everywhere:
        yield fail(topic, "METRICS_ADDRESSES lets everybody read /metrics.", "Name the addresses of your Prometheus.")
    elif settings.METRICS_TOKEN or settings.METRICS_ADDRESSES:
        yield ok(topic, f"/metrics is open with {'a token' if settings.METRICS_TOKEN else 'an address'} only")
    else:
        yield warn(topic, "/metrics is shut: nobody watches this shop.", "Set METRICS_TOKEN, and see deploy/.")
    path = directory()
    if path is None:
        what = "Every process counts for itself: /metrics tells of the one that happens to answer."
        yield fail(topic, what, "Set PROMETHEUS_MULTIPROC_DIR to a directory that all processes of the host may write.")
    elif (files := sum(1 for _ in path.glob("*.db"))) > COUNT_FILES_MAX:
        advice = "Ask /metrics now and then, which adds up what dead processes have left, or empty it at a restart."
        yield warn(topic, f"{path} holds {files} files of counts.", advice)
    else:
        yield ok(topic, f"processes of this host count in {path}")


def _people() -> Iterator[Finding]:
    is_told = bool(settings.ADMINS or settings.ALERT_WEBHOOK_URL or settings.ALERT_HOOKS)
    yield judge(
        topic="alerts",
        is_well=is_told,
        what="somebody is told of incidents",
        else_what="Nobody is told of incidents: they wait in the admin for somebody to look.",
        advice="Set ADMINS, ALERT_WEBHOOK_URL or ALERT_HOOKS.",
    )
    yield judge(
        topic="payment",
        is_well=bool(settings.PAYMENT_PROVIDERS),
        what=f"buyers pay with {', '.join(settings.PAYMENT_PROVIDERS)}",
        else_what="Nobody can pay: there is no payment provider.",
        advice="Name one in PAYMENT_PROVIDERS.",
    )


def _stopped() -> Iterator[Finding]:
    if settings.STOP_FILE and Path(settings.STOP_FILE).exists():
        what = f"{settings.STOP_FILE} is there: every sale is stopped on this host."
        yield warn("stop file", what, "Remove it, on every web host, when sales shall go on.")


def _open_files() -> Finding:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_endless = soft == resource.RLIM_INFINITY
    what = "no limit" if is_endless else f"{soft:,} open files at most, for what is started as this was"
    advice = "Raise it for web and workers: LimitNOFILE=65536 in the unit, or ulimit -n."
    if is_endless or soft >= OPEN_FILES_WANTED:
        return ok("open files", what)
    return warn("open files", what, advice) if soft >= OPEN_FILES_MIN else fail("open files", what, advice)
