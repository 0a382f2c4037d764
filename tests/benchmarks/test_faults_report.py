"""The rows of the fault matrix: a part that does not come back, or buyers left waiting, make a row bad."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks.faults.matrix import Fault, Kind, Target
from benchmarks.faults.report import Row, make_row
from benchmarks.faults.strike import Strike
from benchmarks.plan import End, Outcome, Result
from benchmarks.verdict import Books

STRUCK_AT = 100.0
WAITS = Outcome(buyer_id=1, order_no="1-0-a", was_accepted=True, end=End.FAILED, reason="no answer")


def row(**changes: Any) -> Row:
    """A good row: back after 1 s, the last call in trouble after 1.5 s, answered after 1.7 s, healed after 2 s."""
    told: dict[str, Any] = {
        "back_at": 101.0,
        "trouble_at": 101.5,
        "well_again_at": 101.7,
        "healed_at": 102.0,
        "queued": 0,
        "outcomes": (),
        "broken": [],
    } | changes
    return make_row(
        fault=Fault(target=Target.WEB, kind=Kind.KILL),
        strike=cast("Strike", SimpleNamespace(struck_at=STRUCK_AT, back_at=told["back_at"])),
        healed_at=told["healed_at"],
        queued=told["queued"],
        result=Result(
            outcomes=told["outcomes"],
            latencies_ms=(),
            answers={"no_answer": 3, "accepted": 5},
            last_answer_at=None,
            last_accepted_at=None,
            last_ticket_at=None,
            trouble_at=told["trouble_at"],
            well_again_at=told["well_again_at"],
        ),
        books=cast(
            "Books",
            SimpleNamespace(oversold=0, duplicate_orders=0, owners={}, incidents=[], law_7=SimpleNamespace(drift=0)),
        ),
        broken=told["broken"],
    )


def test_a_row_counts_from_the_blow() -> None:
    good = row()
    assert (good.away_seconds, good.answered_seconds, good.heal_seconds) == (1.0, 1.7, 2.0)
    assert (good.is_good, good.calls_in_trouble, good.stuck) == (True, 3, 0)


def test_trouble_before_the_blow_is_not_the_faults() -> None:
    assert row(trouble_at=99.0, well_again_at=99.5).answered_seconds == 0.0


@pytest.mark.parametrize("missing", ["back_at", "healed_at", "well_again_at"])
def test_what_never_came_back_never_healed(missing: str) -> None:
    bad = row(**{missing: None})
    assert bad.heal_seconds is None
    assert not bad.is_good


def test_waiting_buyers_and_entries_are_stuck_and_lost() -> None:
    bad = row(outcomes=(WAITS,), queued=2, broken=["No definite end for 1 buyer: no answer."])
    assert (bad.stuck, bad.lost_orders, bad.is_good) == (3, 1, False)
