"""What a rush is told and what it tells: plain data that travels as JSON between two processes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self


class Habit(StrEnum):
    """How a buyer behaves at the opening."""

    PLAIN = "plain"
    CLICKS_TWICE = "clicks_twice"
    COMES_EARLY = "comes_early"
    SENDS_NONSENSE = "sends_nonsense"


class End(StrEnum):
    """How it ended for a buyer, as far as the shop told him."""

    CONFIRMED = "confirmed"
    REFUSED = "refused"  # Accepted at first, then told a reason why there is no order.
    RETURNED = "returned"
    TURNED_AWAY = "turned_away"  # Never accepted; the reason is the shop's code.
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class Shopper:
    """A logged-in buyer: the cookies of a session and the habit to play."""

    buyer_id: int
    session: str
    csrf: str
    habit: Habit = Habit.PLAIN


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A rush: who buys what, where and when.

    `opens_at` is in seconds since 1970 by the shop's clock. `reaction_seconds` is what the slowest buyer takes to
    click after the opening; with 0 all click at that instant. All of them share at most `connections_max` connections.
    """

    url: str
    item_id: int
    opens_at: float
    shoppers: tuple[Shopper, ...]
    reaction_seconds: float = 0.0
    connections_max: int = 256

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        shoppers = tuple(Shopper(**{**shopper, "habit": Habit(shopper["habit"])}) for shopper in body["shoppers"])
        return cls(**{**body, "shoppers": shoppers})

    def to_json(self) -> dict[str, Any]:
        """Return plain data; it holds session keys, so it belongs into no file."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Counts of a rush under way. `answers` are those to purchase calls."""

    tickets: int = 0
    answers: int = 0
    accepted: int = 0
    turned_away: int = 0
    ended: int = 0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one buyer was told in the end. `order_no` is his ticket's, "" if he never had one.

    `was_forgotten`: after his purchase was accepted, a poll told him that there is no trace of it.
    """

    buyer_id: int
    order_no: str
    was_accepted: bool
    end: End
    reason: str = ""
    was_forgotten: bool = False


@dataclass(frozen=True, kw_only=True)
class Result:
    """A finished rush.

    Latencies are of all purchase calls answered after the opening, from the click to the answer, in milliseconds,
    sorted; a wait for one of the shared connections is part of it. `answers` counts the answers to purchase calls by
    code, `accepted` and the problem codes; what got no answer is counted as `no_answer`. The instants are in seconds
    since 1970, None when there was no such answer. `trouble_at` is of the last purchase call after the opening that had
    no answer or a 5xx one, `well_again_at` of the first answer after it.
    """

    outcomes: tuple[Outcome, ...]
    latencies_ms: tuple[float, ...]
    answers: Mapping[str, int]
    last_answer_at: float | None
    last_accepted_at: float | None
    last_ticket_at: float | None
    trouble_at: float | None
    well_again_at: float | None

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Self:
        """Read what `to_json` wrote."""
        outcomes = tuple(Outcome(**{**outcome, "end": End(outcome["end"])}) for outcome in body["outcomes"])
        return cls(**{**body, "outcomes": outcomes, "latencies_ms": tuple(body["latencies_ms"])})

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)
