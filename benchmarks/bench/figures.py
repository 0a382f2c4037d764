"""Figures: what was measured, how often, and what it says beside another."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from typing import Any


class Kind(StrEnum):
    """What a rate counts; rates of different kinds are never put into one ratio, but where the ratio says so."""

    ACCEPTED = "purchases accepted/s"
    SOLD_OUT = "sold-out answers/s"
    POLLED = "polls/s"
    ANSWERED = "bare answers/s"
    WRITTEN = "purchases accepted and written/s"
    SETTLED = "orders settled/s"
    SECONDS = "s"
    MILLISECONDS = "ms"
    BYTES = "bytes"
    MEGABYTES = "MB"
    MICROSECONDS = "us of CPU"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One turn: its figure, of how many calls or rows it was made, and how long those took.

    `not_2xx` are answers outside 200..299, `wrong` those that ought not to have come, `lost` calls without an answer.
    """

    value: float
    count: int
    p50_ms: float | None = None
    p99_ms: float | None = None
    not_2xx: int = 0
    wrong: int = 0
    lost: int = 0
    details: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """The turns of one thing measured; `value` is their median."""

    part: str
    name: str
    kind: Kind
    samples: Sequence[Sample]
    note: str = ""

    @property
    def value(self) -> float:
        """Median of the turns."""
        return median(sample.value for sample in self.samples)

    @property
    def p50_ms(self) -> float | None:
        """Median of the turns' p50, None where nothing was timed."""
        return _median(sample.p50_ms for sample in self.samples)

    @property
    def p99_ms(self) -> float | None:
        """Median of the turns' p99, None where nothing was timed."""
        return _median(sample.p99_ms for sample in self.samples)

    def total(self, name: str) -> int:
        """Sum of one of the counts over all turns."""
        return sum(getattr(sample, name) for sample in self.samples)

    def to_json(self) -> dict[str, Any]:
        """Return plain data, each turn included."""
        details = {name: median(s.details[name] for s in self.samples) for name in self.samples[0].details}
        return {
            "part": self.part,
            "name": self.name,
            "unit": self.kind.value,
            "value": round(self.value, 3),
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
            **{name: self.total(name) for name in ("count", "not_2xx", "wrong", "lost")},
            "turns": [round(sample.value, 3) for sample in self.samples],
            "turns_p99_ms": [sample.p99_ms for sample in self.samples],
            "details": {name: round(value, 3) for name, value in details.items()},
            "note": self.note,
        }


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A figure to reach: at least or at most so much of `value`."""

    part: str
    name: str
    value: float
    least: float | None = None
    most: float | None = None

    @property
    def is_reached(self) -> bool:
        """Whether it is."""
        return (self.least is None or self.value >= self.least) and (self.most is None or self.value <= self.most)

    @property
    def wanted(self) -> str:
        """The bound as a reader would write it."""
        return f"≥ {self.least:,g}" if self.least is not None else f"≤ {self.most:,g}"

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        told = {"part": self.part, "name": self.name, "value": round(self.value, 3)}
        return {**told, "wanted": self.wanted, "is_reached": self.is_reached}


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What a part of a run has found."""

    figures: Sequence[Figure] = ()
    goals: Sequence[Goal] = ()

    def __add__(self, other: "Findings") -> "Findings":
        return Findings(figures=[*self.figures, *other.figures], goals=[*self.goals, *other.goals])


def by_turns(
    turns: Mapping[str, Callable[[], Sample]], *, rounds: int, before_round: Callable[[int], None]
) -> dict[str, list[Sample]]:
    """Take each turn once a round; who begins changes, so that no drift of the machine favours one."""
    names = list(turns)
    found: dict[str, list[Sample]] = {name: [] for name in names}
    for number in range(rounds):
        before_round(number + 1)
        first = number % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(turns[name]())
    return found


def ratio(one: Sequence[Sample], other: Sequence[Sample]) -> float:
    """How many times the other's figure one has, round by round; the median of the rounds.

    Whatever else the machine does falls on both of a round.
    """
    return median(a.value / b.value if b.value else 0.0 for a, b in zip(one, other, strict=True))


def _median(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return round(median(known), 3) if known else None
