"""The whole examination: every part has its say, also where a server is dead: that is a finding, not the end."""

from collections.abc import Iterator, Sequence
from functools import partial

from config.doctor.clocks import examine_clocks
from config.doctor.database import examine_database, examine_migrations
from config.doctor.findings import Examiner, Finding, fail, warn
from config.doctor.own_settings import examine_settings
from config.doctor.redis_servers import examine_broker_redis, examine_cache, examine_stock_redis
from config.doctor.system_checks import examine_checks
from config.doctor.workers import examine_beat, examine_workers
from config.errands import hasty_database
from config.logs import without_secrets
from seckill.vital_signs import critical_incidents

DATABASE_SECONDS = 3
START = "Start it, or correct the address in the settings; then run the doctor again."


def examine(*, web_threads: int) -> list[Finding]:
    """Look at everything; each server that does not answer is waited for some seconds at most."""
    parts: Sequence[tuple[str, Examiner]] = (
        ("checks", examine_checks),
        ("settings", examine_settings),
        ("stock redis", examine_stock_redis),
        ("cache", examine_cache),
        ("broker", examine_broker_redis),
        ("database", examine_database),
        ("migrations", examine_migrations),
        ("clocks", examine_clocks),
        ("beat", examine_beat),
        ("workers", partial(examine_workers, web_threads=web_threads)),
        ("incidents", examine_incidents),
    )
    found: list[Finding] = []
    for topic, examiner in parts:
        with hasty_database(seconds=DATABASE_SECONDS):
            found += _guarded(topic, examiner)
    return found


def _guarded(topic: str, examiner: Examiner) -> list[Finding]:
    """Return what was found, and that the rest could not be looked at where something broke."""
    found: list[Finding] = []
    try:
        found.extend(examiner())
    except Exception as error:  # noqa: BLE001  isolation point: whatever is broken is what the doctor is asked about
        words = without_secrets(f"{type(error).__name__}: {error}")[:300]
        found.append(fail(topic, f"It cannot be examined: {words}", START))
    return found


def examine_incidents() -> Iterator[Finding]:
    """Whether something is wrong already."""
    if kinds := critical_incidents():
        yield warn("incidents", f"Critical and open: {', '.join(kinds)}.", "The admin says of each what can be done.")
