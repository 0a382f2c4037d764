"""Batches that kill their worker: made smaller until the killer stands alone and is parked (CASES 26)."""

import os
import signal
import time
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from seckill import attempts, settlement
from seckill.attempt_tables import SettleAttempt
from seckill.conf import Limits
from seckill.gate.connection import raw_client
from seckill.gate.entries import BadEntry, QueueEntry
from seckill.intake import take_in
from seckill.models import DeadLetter, Incident, Reservation
from seckill.rebuild import rebuild_bucket
from seckill.settlement import settle_bucket
from tests.support.die import die_in_a_fork
from tests.support.shop import Shop, buy, make_ticket, make_tickets, open_sale
from tests.support.state import assert_settled_state, numbers, sold_units
from tests.support.threads import run_together
from tests.support.unsafe import everybody

SECONDS_MAX = 10


def settle(shop: Shop) -> int:
    return settle_bucket(bucket=shop.bucket, clock=timezone.now).entries


def worker(shop: Shop) -> int:
    """Let a worker of its own settle; return how it ended. It waits until a dead one's lock is gone."""
    deadline = time.monotonic() + SECONDS_MAX
    before = numbers(shop).queue_length
    while True:
        code = die_in_a_fork(lambda: settle(shop))
        if code or numbers(shop).queue_length < before:
            return code
        assert time.monotonic() < deadline


def let_die(monkeypatch: pytest.MonkeyPatch, order_no: str) -> None:
    """Whoever takes in this order dies."""

    def deadly(*, entries: Sequence[QueueEntry | BadEntry], **others: Any) -> Any:
        if any(isinstance(entry, QueueEntry) and entry.order_no == order_no for entry in entries):
            os.kill(os.getpid(), signal.SIGKILL)
        return take_in(entries=entries, **others)

    monkeypatch.setattr(settlement, "take_in", deadly)


def deaths_until_quiet(shop: Shop, *, deaths_max: int = 40) -> int:
    deaths = 0
    while numbers(shop).queue_length:
        deaths += worker(shop) == -9
        assert deaths < deaths_max
    return deaths


def open_incidents() -> list[str]:
    return sorted(Incident.objects.filter(resolved_at=None).values_list("kind", flat=True))


def test_the_killer_is_parked_and_the_others_have_their_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    """CASES 26: 8 entries, the sixth kills: batches of 8, of 4, where four go well, of 2, of 1, where one does."""
    shop = open_sale(units=8)
    orders = [buy(ticket) for ticket in make_tickets(shop, 8)]
    let_die(monkeypatch, orders[5])
    deaths = deaths_until_quiet(shop)
    letter = DeadLetter.objects.get()
    assert (letter.fields["order"], letter.error) == (orders[5], "it killed its worker 3 times")
    # Three each with 8, 4, 2 and twice with 1; and one each after a batch that went well, which starts a new count.
    assert deaths == 17
    assert set(Reservation.objects.values_list("order_no", "state")) == {
        (number, "SETTLED") for number in orders if number != orders[5]
    }
    assert "dead_letter" in open_incidents()


def test_control_without_the_count_it_kills_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: whole batches only, and neither the killer nor anybody beside it ever gets an answer."""
    shop = open_sale(units=3)
    orders = [buy(ticket) for ticket in make_tickets(shop, 3)]
    let_die(monkeypatch, orders[1])
    monkeypatch.setattr(attempts, "DEATHS_MAX", 10**6)
    assert [worker(shop) for _ in range(10)] == [-9] * 10
    assert numbers(shop).queue_length == 3
    assert not Reservation.objects.exists()


def test_batches_grow_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight deaths for another reason than an entry: halved twice, and the first good run makes them whole."""
    monkeypatch.setattr(settlement, "LIMITS", Limits(batch_size=8))
    shop = open_sale(units=50)
    orders = [buy(ticket) for ticket in make_tickets(shop, 40)]
    with monkeypatch.context() as patch:
        let_die(patch, orders[0])
        assert [worker(shop) for _ in range(8)] == [-9] * 8
    row = SettleAttempt.objects.get()
    assert (row.size_max, row.deaths) == (2, 1)
    assert open_incidents() == ["worker_killed"]
    assert settle(shop) == 40
    row.refresh_from_db()
    assert (row.size_max, row.deaths, row.token) == (8, 0, "")
    assert open_incidents() == []
    assert_settled_state(shop, sold=40)


def test_an_exception_is_no_death(monkeypatch: pytest.MonkeyPatch) -> None:
    """CASES 26: a task that always raises stops its bucket, and nothing is halved or parked for it."""
    shop = open_sale(units=3)
    buy(make_ticket(shop))

    def fail(**_: object) -> None:
        raise OperationalError(1054, "Unknown column")

    with monkeypatch.context() as patch:
        patch.setattr(settlement, "take_in", fail)
        for _ in range(5):
            with pytest.raises(OperationalError):
                settle(shop)
    row = SettleAttempt.objects.get()
    assert (row.deaths, row.token, row.size_max) == (0, "", Limits().batch_size)
    assert settle(shop) == 1
    assert_settled_state(shop, sold=1)


def test_deaths_before_another_head_are_not_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that loses a worker now and then parks nobody: each death was at other entries."""
    shop = open_sale(units=5)
    for ticket in make_tickets(shop, 5):
        order_no = buy(ticket)
        with monkeypatch.context() as patch:
            let_die(patch, order_no)
            assert worker(shop) == -9
        gate_settle_without_attempts(shop, monkeypatch)
    assert SettleAttempt.objects.get().deaths == 0
    assert not DeadLetter.objects.exists()
    assert_settled_state(shop, sold=5)


def gate_settle_without_attempts(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settle as a worker does whose count nobody has written down."""
    with monkeypatch.context() as patch:
        patch.setattr(settlement, "_look", lambda _bucket: attempts.Waiting())
        settle(shop)


def test_an_empty_queue_writes_nothing() -> None:
    shop = open_sale()
    assert settle(shop) == 0
    assert not SettleAttempt.objects.exists()


def test_what_mysql_knows_is_confirmed_and_never_parked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed three times between the commit and Redis: the order stands (law 3), so no letter may be made of it."""
    shop = open_sale(units=3)
    buy(make_ticket(shop))

    def die(**_: object) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    with monkeypatch.context() as patch:
        patch.setattr(settlement, "_tell_redis", die)
        assert [die_until_minus_9(shop) for _ in range(3)] == [-9] * 3
    assert settle(shop) == 1
    assert not DeadLetter.objects.exists()
    assert_settled_state(shop, sold=1)


def die_until_minus_9(shop: Shop) -> int:
    deadline = time.monotonic() + SECONDS_MAX
    while die_in_a_fork(lambda: settle(shop)) != -9:
        assert time.monotonic() < deadline
    return -9


def test_two_workers_without_the_thinning_park_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes the other for dead, and progress clears them of it."""
    shop = open_sale(units=60)
    for ticket in make_tickets(shop, 60):
        buy(ticket)

    monkeypatch.setattr(settlement, "only_one", everybody)
    monkeypatch.setattr(settlement, "LIMITS", Limits(batch_size=4))
    run_together(lambda _: settle(shop), range(4))
    settle(shop)
    assert not DeadLetter.objects.exists()
    assert_settled_state(shop, sold=60)


def test_one_entry_parked_by_settlement_and_by_a_rebuild_is_one_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parked and committed, but not yet taken out of the queue, when a rebuild drains it."""
    shop = open_sale(units=3)
    raw_client().xadd(shop.bucket.keys[4], {"order": "x"})
    with monkeypatch.context() as patch:
        patch.setattr(settlement, "_tell_redis", lambda **_: 0)
        settle(shop)
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert DeadLetter.objects.get().epoch == 1


def test_the_same_stream_id_after_a_rebuild_is_another_letter() -> None:
    """A new stream may give an old id again; its entry must not be taken for the old one and dropped unseen."""
    shop = open_sale(units=3)
    raw_client().xadd(shop.bucket.keys[4], {"order": "x"}, id="5-5")
    settle(shop)
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    raw_client().xadd(shop.bucket.keys[4], {"order": "y"}, id="5-5")
    settle(shop)
    assert sorted(DeadLetter.objects.values_list("epoch", "fields__order")) == [(1, "x"), (2, "y")]
    assert sold_units(shop) == 0
