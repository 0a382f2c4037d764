"""Which faults there are, whom they hit, and what each may bring about without a law being broken."""

from dataclasses import dataclass
from enum import StrEnum

from benchmarks.allowance import NOTHING, Allowance


class Target(StrEnum):
    """The part of the shop that is hit."""

    WEB = "web"
    WORKER = "worker"
    BEAT = "beat"
    BROKER = "broker"
    STOCK_REDIS = "stock Redis"
    MYSQL = "MySQL"


class Kind(StrEnum):
    """What happens to it."""

    KILL = "SIGKILL"
    STALL = "SIGSTOP 5 s"
    RESTART = "restart"
    STALL_WITH_LOCK = "SIGSTOP 5 s with the lock"
    POWER_CUT = "power cut"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One row of the matrix."""

    target: Target
    kind: Kind

    def __str__(self) -> str:
        return f"{self.target} {self.kind}"


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large each rush is; the slowest buyer clicks `reaction_seconds` after the opening."""

    units: int
    buyers: int
    reaction_seconds: float


FULL = Size(units=300, buyers=1_200, reaction_seconds=6.0)
# What CI has time for.
SMALL = Size(units=40, buyers=200, reaction_seconds=2.0)

MATRIX = (
    *(Fault(target=target, kind=kind) for target in Target for kind in (Kind.KILL, Kind.STALL, Kind.RESTART)),
    Fault(target=Target.WORKER, kind=Kind.STALL_WITH_LOCK),
    Fault(target=Target.STOCK_REDIS, kind=Kind.POWER_CUT),
)

# A Redis that came back under another run id must be noticed, rebuilt, and the incident closed.
NOTICED_LOSS = frozenset({"redis_lost"})


def allowance_of(fault: Fault, *, buyers: int) -> Allowance:
    """Return what may happen: only a Redis that is cut off or killed may forget a purchase it had accepted."""
    if fault.target is not Target.STOCK_REDIS or fault.kind is Kind.STALL:
        return NOTHING
    may_forget = fault.kind in {Kind.KILL, Kind.POWER_CUT}
    return Allowance(incidents=NOTICED_LOSS, forgotten_max=buyers if may_forget else 0)
