"""Races at the gate and through to MySQL; each has a control that swaps in the unsafe version and oversells."""

from collections import Counter

import pytest
from django.utils import timezone

from seckill.settlement import settle_bucket
from tests.support.shop import Shop, buy, make_buyers, make_tickets, open_sale, ticket_of
from tests.support.state import assert_settled_state
from tests.support.threads import run_together
from tests.support.unsafe import unsafe_gate

BUYERS = 500


def settle(shop: Shop) -> None:
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


def is_order(answer: str) -> bool:
    return "-" in answer


def test_500_buyers_for_one_unit() -> None:
    """CASES 1: exactly one of 500 gets it, the others are told so, both stores end at the same numbers."""
    shop = open_sale(units=1)
    answers = run_together(buy, make_tickets(shop, BUYERS))
    settle(shop)
    assert sum(is_order(answer) for answer in answers) == 1
    assert Counter(a for a in answers if not is_order(a)) == {"SoldOut": BUYERS - 1}
    assert_settled_state(shop, sold=1)


@pytest.mark.slow
def test_500_buyers_for_ten_units_with_mixed_quantities() -> None:
    """CASES 1: all ten units go, to buyers of one to three; no unit is left that somebody could have had."""
    shop = open_sale(units=10, limit=3)
    tickets = make_tickets(shop, BUYERS)
    wishes = [(ticket, n % 3 + 1) for n, ticket in enumerate(tickets)]
    answers = run_together(lambda wish: buy(*wish), wishes)
    settle(shop)
    sold = sum(quantity for (_, quantity), answer in zip(wishes, answers, strict=True) if is_order(answer))
    assert sold == 10
    assert {a for a in answers if not is_order(a)} <= {"SoldOut", "NotEnoughLeft"}
    assert_settled_state(shop, sold=10)


def test_one_buyer_20_times_at_once() -> None:
    """CASES 2, 39: twenty clicks and twenty tickets of one buyer are one order; the rest stays for others."""
    shop = open_sale(units=5)
    (buyer,) = make_buyers(1)
    same = ticket_of(shop, buyer)
    answers = run_together(buy, [same] * 20)
    assert len(set(answers)) == 1
    assert is_order(answers[0])
    others = run_together(buy, [ticket_of(shop, buyer) for _ in range(20)])
    assert set(others) == {"LimitReached"}
    assert all(is_order(buy(ticket)) for ticket in make_tickets(shop, 4))
    settle(shop)
    assert_settled_state(shop, sold=5)


@pytest.mark.slow
@pytest.mark.parametrize(("units", "quantities", "limit"), [(1, (1,), 1), (10, (1, 2, 3), 3)])
def test_control_check_then_decrement_oversells(
    units: int, quantities: tuple[int, ...], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the two races above: the same race on a gate that checks and writes in two calls."""
    shop = open_sale(units=units, limit=limit)
    tickets = make_tickets(shop, BUYERS)
    unsafe_gate(monkeypatch, racers=BUYERS)
    wishes = [(ticket, quantities[n % len(quantities)]) for n, ticket in enumerate(tickets)]
    answers = run_together(lambda wish: buy(*wish), wishes)
    sold = sum(quantity for (_, quantity), answer in zip(wishes, answers, strict=True) if is_order(answer))
    assert sold > units


def test_control_check_then_decrement_gives_one_buyer_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the double click: without the script one buyer gets more than his limit."""
    shop = open_sale(units=20)
    (buyer,) = make_buyers(1)
    tickets = [ticket_of(shop, buyer) for _ in range(20)]
    unsafe_gate(monkeypatch, racers=20)
    answers = run_together(buy, tickets)
    assert sum(is_order(answer) for answer in answers) > 1
