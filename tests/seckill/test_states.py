"""Where a sale and a reservation may go, pair by pair, and the phase of a sale at every boundary."""

from datetime import UTC, datetime, timedelta

import pytest

from seckill.states import (
    RESERVATION_TRANSITIONS,
    SALE_TRANSITIONS,
    ReservationState,
    SalePhase,
    SaleState,
    sale_phase,
)

OPENS = datetime(2026, 6, 18, 10, 0, tzinfo=UTC)
CLOSES = datetime(2026, 6, 18, 12, 0, tzinfo=UTC)
TICK = timedelta(microseconds=1)

BOUNDARIES = {
    OPENS - TICK: SalePhase.PREHEATED,
    OPENS: SalePhase.LIVE,
    OPENS + TICK: SalePhase.LIVE,
    CLOSES - TICK: SalePhase.LIVE,
    CLOSES: SalePhase.ENDED,
    CLOSES + TICK: SalePhase.ENDED,
}


def test_a_sale_goes_only_where_the_table_says() -> None:
    """Forward step by step, or preheated at once; withdrawn back to draft; from archiving on no way back."""
    draft, scheduled, preheated, archiving, archived = SaleState
    assert {(a, b) for a, allowed in SALE_TRANSITIONS.items() for b in allowed} == {
        (draft, scheduled),
        (draft, preheated),
        (scheduled, draft),
        (scheduled, preheated),
        (preheated, draft),
        (preheated, archiving),
        (archiving, archived),
    }
    assert set(SALE_TRANSITIONS) == set(SaleState)


def test_a_reservation_has_one_fate() -> None:
    """Law 3: settled or refused for good; only what is settled can be returned, once."""
    settled, refused, returned = ReservationState
    assert {(a, b) for a, allowed in RESERVATION_TRANSITIONS.items() for b in allowed} == {(settled, returned)}
    assert set(RESERVATION_TRANSITIONS) == {settled, refused, returned}


@pytest.mark.parametrize("now", BOUNDARIES)
def test_a_preheated_sale_is_live_from_its_opening_until_before_its_end(now: datetime) -> None:
    """CASES 11: a call at exactly the end has one answer: too late."""
    assert sale_phase(state=SaleState.PREHEATED, opens_at=OPENS, closes_at=CLOSES, now=now) is BOUNDARIES[now]


@pytest.mark.parametrize("state", [state for state in SaleState if state is not SaleState.PREHEATED])
def test_any_other_sale_is_what_is_stored_whatever_the_time(state: SaleState) -> None:
    phases = {sale_phase(state=state, opens_at=OPENS, closes_at=CLOSES, now=now) for now in BOUNDARIES}
    assert phases == {SalePhase(state.value.lower())}
