"""Clocks: this host's against Redis's and MySQL's, each measured by the quickest of some round trips.

Whether a window is open, Redis's clock says; when an order was made, this host's does; MySQL's ages its transactions.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from django.db import connection

from config.doctor.findings import Finding, fail, ok, warn
from seckill.gate.server import server_clock, stock_servers

LOOKS = 5
SKEW_WARN_SECONDS, SKEW_FAIL_SECONDS = 0.25, 2.0
ADVICE = "Run chrony or systemd-timesyncd on every host: an order's times, and who was first, depend on it."


@dataclass(frozen=True, kw_only=True)
class Skew:
    """How far another clock is ahead of this host's, give or take, in seconds."""

    ahead: float
    uncertainty: float

    @property
    def at_least(self) -> float:
        """What it is off by, at any rate."""
        return max(0.0, abs(self.ahead) - self.uncertainty)


def measure(ask: Callable[[], float]) -> Skew:
    """Take the other clock's time to be told in the middle of the round trip."""
    found = []
    for _ in range(LOOKS):
        sent = time.time()
        told = ask()
        back = time.time()
        found.append(Skew(ahead=told - (sent + back) / 2, uncertainty=(back - sent) / 2))
    return min(found, key=lambda skew: skew.uncertainty)


def examine_clocks() -> Iterator[Finding]:
    """Measure both, and every server where Redis is several."""
    for name, where in stock_servers():
        yield _finding(f"Redis{name}", measure(partial(server_clock, where)))
    yield _finding("MySQL", measure(_mysql_clock))


def _mysql_clock() -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT UNIX_TIMESTAMP(NOW(6))")
        return float(cursor.fetchone()[0])


def _finding(name: str, skew: Skew) -> Finding:
    off = f"{skew.ahead * 1000:+,.1f} ms (give or take {skew.uncertainty * 1000:.1f})"
    what = f"{name}'s clock is {off} from this host's"
    if skew.at_least >= SKEW_FAIL_SECONDS:
        return fail("clocks", what, ADVICE)
    return warn("clocks", what, ADVICE) if skew.at_least >= SKEW_WARN_SECONDS else ok("clocks", what)
