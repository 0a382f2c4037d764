"""Races for the last units over four buckets: all are sold, and nobody is sent away while one is left for him."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from random import Random

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.utils import timezone

from seckill import elsewhere, transfers, wakeups
from seckill import purchase as purchasing
from seckill.elsewhere import Seen
from seckill.errors import Busy, GateUnavailable, NotPreheated, PurchaseRefused
from seckill.gate import changing
from seckill.gathering import Want, gather
from seckill.models import ItemBucket, Reservation, SaleItem
from seckill.order_numbers import new_order_number
from seckill.purchase import purchase
from seckill.reconciliation import compare_now
from seckill.settlement import settle_bucket
from seckill.tickets import read_ticket, sign_ticket
from seckill.transfer_tables import Transfer
from seckill.wakeups import Note, Publisher, UnitsWanted
from tests.support.buckets import key_in, settle_all
from tests.support.shop import Shop, make_buyers, open_sale, ticket_of
from tests.support.threads import run_together

ROUNDS = 200
BUCKETS = 4
UNITS = 5
# Of twelve buyers nine want one unit and three want two: more than there are, and enough who take the last one.
WISHES = (1, 1, 1, 2) * 3
# As a page does, only that a test's second is shorter; so is whatever the shop does not repeat within one.
RETRY_SECONDS = 0.02
LEFT_SECONDS_MAX = 1.0
NO_END_SECONDS = 20.0


@dataclass(frozen=True, kw_only=True)
class Told:
    """How a buyer's purchase ended, when, and after how long."""

    units: int
    refusal: str
    at: float
    seconds: float


class Worker(Publisher):
    """The publisher as it is, with the work in place of a message: whoever asks for units has them brought."""

    def _publish(self, note: Note, cause: str) -> bool:
        del cause
        try:
            if isinstance(note, UnitsWanted):
                want = Want(bucket=note.bucket, item_id=note.item_id, units=note.units)
                gather(want=want, clock=timezone.now, stays=timedelta(seconds=2 * RETRY_SECONDS))
        except (GateUnavailable, NotPreheated):
            return True
        finally:
            connections.close_all()
        return True


@contextmanager
def worker() -> Iterator[None]:
    """Have units brought while purchases go on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elsewhere, "KEPT_SECONDS", elsewhere.KEPT_SECONDS * RETRY_SECONDS)
        patch.setattr(wakeups, "UNITS_SECONDS", wakeups.UNITS_SECONDS * RETRY_SECONDS)
        patch.setattr(wakeups, "request_units", Worker().request_units)
        yield


def buy_patiently(wish: tuple[str, int]) -> Told:
    """Buy as a page does: come again while the answer is that one should."""
    ticket, quantity = wish
    began = time.monotonic()
    while time.monotonic() - began < NO_END_SECONDS:
        try:
            purchase(ticket=ticket, quantity=quantity)
        except (Busy, GateUnavailable):
            time.sleep(RETRY_SECONDS)
            continue
        except PurchaseRefused as refusal:
            return _told(units=0, refusal=type(refusal).__name__, began=began)
        return _told(units=quantity, refusal="", began=began)
    raise AssertionError("a buyer was never told anything")


def _told(*, units: int, refusal: str, began: float) -> Told:
    now = time.monotonic()
    return Told(units=units, refusal=refusal, at=now, seconds=now - began)


def race(shop: Shop, rounds: int) -> list[list[Told]]:
    """Let twelve buyers race for each item's last units, one item after another."""
    told, dice = [], Random(4)  # noqa: S311  the same rounds each time
    buyers = make_buyers(len(WISHES))
    items = SaleItem.objects.select_related("pool__sale").filter(pool=shop.pool).order_by("pk")
    for number, item in enumerate(items[:rounds]):
        # Now all come to one bucket, now to two, three or all four: so units are where few or none ask for them.
        places = dice.sample(range(BUCKETS), 1 + number % BUCKETS)
        tickets = [_ticket(shop, item=item, buyer=buyer, place=dice.choice(places), number=number) for buyer in buyers]
        told.append(run_together(buy_patiently, list(zip(tickets, WISHES, strict=True))))
        if number % 20 == 0:
            settle_all(shop)
    return told


def _ticket(shop: Shop, *, item: SaleItem, buyer: User, place: int, number: int) -> str:
    key = key_in(shop, place, after=number * 1_000 + buyer.pk)
    return sign_ticket(order_no=new_order_number(shop.buckets[place]), item=item, buyer_id=buyer.pk, key=key)


def seconds_left_for_others(of_round: list[Told], wishes: Sequence[int]) -> float:
    """For how long a unit that a refused buyer could have had was still sold to others after he was sent away."""
    most = 0.0
    for one, wish in zip(of_round, wishes, strict=True):
        later = sorted((other for other in of_round if other.units and other.at > one.at), key=lambda told: told.at)
        if not one.units and sum(other.units for other in later) >= wish:
            most = max(most, later[-1].at - one.at)
    return most


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_last_units_over_four_buckets_are_sold_exactly() -> None:
    """200 rounds: sold is allocated; nobody is sent away while a unit is left for him longer than a second."""
    shop = open_sale(units=UNITS, items=ROUNDS, limit=2, buckets=BUCKETS)
    with worker():
        told = race(shop, ROUNDS)
    settle_all(shop)
    sums = [sum(one.units for one in of_round) for of_round in told]
    assert sums == [UNITS] * ROUNDS
    assert {one.refusal for of_round in told for one in of_round if not one.units} <= {"SoldOut", "NotEnoughLeft"}
    assert max(seconds_left_for_others(of_round, WISHES) for of_round in told) < LEFT_SECONDS_MAX
    longest = max(one.seconds for of_round in told for one in of_round)
    assert Reservation.objects.exclude(state="SETTLED").count() == 0
    for item in shop.items:
        rows = list(ItemBucket.objects.filter(item=item))
        assert (sum(row.allocated for row in rows), sum(row.sold for row in rows)) == (UNITS, UNITS)
    for bucket in shop.buckets:
        assert {balance.drift for balance in compare_now(bucket=bucket).items} == {0}
    moved = Transfer.objects.filter(state="DONE").count()
    logging.getLogger(__name__).warning("%s transfers, the longest wait %.3f s", moved, longest)
    assert moved > ROUNDS


@pytest.mark.slow
def test_control_a_bucket_that_speaks_for_itself_sends_buyers_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: an empty bucket says that nothing is left, and units stay where nobody asks for them."""
    monkeypatch.setattr(purchasing, "units_of_item", lambda **_: Seen(units=0, is_fresh=False))
    shop = open_sale(units=UNITS, items=20, limit=2, buckets=BUCKETS)
    with worker():
        told = race(shop, 20)
    assert sum(one.units for of_round in told for one in of_round) < 20 * UNITS


@pytest.mark.slow
def test_control_to_give_before_mysql_has_moved_sells_phantoms(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the order of steps: what was given first is sold before MySQL stands for it, and refused."""
    shop = open_sale(units=2, buckets=2)
    give = transfers._give

    def give_first(row: Transfer) -> int:
        taken = changing.take(
            bucket=transfers._donor(row),
            epoch=row.donor_epoch,
            number=row.donor_adj_no,
            item_id=row.item_id,
            units=row.units_wanted,
        )
        row.units_moved = taken
        give(row)
        for ticket in tickets:
            purchase(ticket=ticket, quantity=1)
        settle_bucket(bucket=shop.buckets[1], clock=timezone.now)
        row.units_moved = 0
        return taken

    buyers = iter(make_buyers(200))
    tickets: list[str] = []
    while len(tickets) < 2:
        ticket = ticket_of(shop, next(buyers))
        if f"-{1}-" in read_ticket(ticket).order_no:
            tickets.append(ticket)
    monkeypatch.setattr(transfers, "_take", give_first)
    transfers.transfer(
        item_id=shop.item.pk, donor=shop.buckets[0], receiver=shop.buckets[1], units=1, clock=timezone.now
    )
    assert Reservation.objects.filter(reason="phantom").count() == 1
