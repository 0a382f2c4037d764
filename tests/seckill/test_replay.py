"""Deciding dead letters: replayed or refused, once, by somebody with the right, and the books are balanced after it."""

import os
import signal
from datetime import timedelta
from functools import partial
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from orders.models import Order
from seckill import replay
from seckill.archive_begin import Accepted
from seckill.attempt_tables import SettleAttempt
from seckill.errors import DecisionRefused, GateUnavailable
from seckill.gate import archiving, parked
from seckill.gate.connection import raw_client
from seckill.gate.parked import RequeueCode
from seckill.models import Bucket, DeadLetter, FlashSale, Incident, Reservation, SaleItem
from seckill.polling import purchase_status
from seckill.rebuild import rebuild_bucket
from seckill.reconciliation import Verdict as Found
from seckill.reconciliation import reconcile_bucket
from seckill.repair import reconcile_and_repair
from seckill.replay import Verdict, decide_letter, take_up_decisions
from seckill.settlement import settle_bucket
from seckill.sweep import examine
from seckill.tasks import sweep_buckets
from seckill.tickets import sign_ticket
from tests.support.archive import archive, assert_archived, end
from tests.support.die import die_in_a_fork
from tests.support.shop import Shop, buy, make_buyers, make_tickets, open_sale, ticket_of
from tests.support.state import assert_settled_state, numbers, sold_units
from tests.support.threads import holding, run_together

Decision = DeadLetter.Decision


def settle(shop: Shop) -> int:
    return settle_bucket(bucket=shop.bucket, clock=timezone.now).entries


def park_one(shop: Shop, buyer: User) -> DeadLetter:
    """Let a buyer buy, and park the reservation as one that has killed its workers."""
    buy(ticket_of(shop, buyer))
    ((stream_id, _),) = raw_client().xrange(shop.bucket.keys[4])
    SettleAttempt.objects.update_or_create(
        pool=shop.pool,
        bucket_no=0,
        defaults={
            "token": "dead",
            "head": stream_id.decode(),
            "deaths": 2,
            "size_max": 1,
            "started_at": timezone.now(),
        },
    )
    assert settle(shop) == 1
    return DeadLetter.objects.latest("pk")


def decide(letter: DeadLetter, decision: DeadLetter.Decision, *, actor_id: int | None = None) -> None:
    verdict = Verdict(letter_id=letter.pk, decision=decision, actor_id=actor_id, reason="the buyer has called")
    decide_letter(verdict=verdict, clock=timezone.now)


def repair_the_leak(shop: Shop) -> None:
    """Let the minutely reconciliation prove the parked unit missing, and give it back."""
    for minutes in (0, 1):
        at = timezone.now() + timedelta(minutes=minutes)
        reconcile_and_repair(bucket=shop.bucket, clock=lambda at=at: at)  # type: ignore[misc]


def status_of(letter: DeadLetter) -> tuple[str, str]:
    told = purchase_status(order_no=letter.fields["order"], buyer_id=int(letter.fields["buyer"]))
    return told.state.value, told.reason


def assert_decided(letter: DeadLetter, decision: str) -> None:
    letter.refresh_from_db()
    assert letter.decision == decision
    assert letter.concluded_at is not None
    assert not Incident.objects.filter(kind="dead_letter", resolved_at=None).exists()


def assert_balanced(shop: Shop) -> None:
    report = reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    assert (report.verdict, report.explanation) == (Found.BALANCED, "")


def test_replayed_it_becomes_an_order_as_any_other() -> None:
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    assert status_of(letter) == ("queued", "")
    decide(letter, Decision.REPLAY)
    assert numbers(shop).queue_length == 1
    assert settle(shop) == 1
    assert status_of(letter) == ("confirmed", "")
    assert_decided(letter, "REPLAY")
    repair_the_leak(shop)
    assert_settled_state(shop, sold=1)


@pytest.mark.parametrize("decision", list(Decision))
def test_after_its_unit_came_back(decision: DeadLetter.Decision) -> None:
    """Decided an hour later: the leak was repaired, so a replay takes a unit and a refusal gives none back."""
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    repair_the_leak(shop)
    assert numbers(shop).left == {shop.item.pk: 3}
    decide(letter, decision)
    settle(shop)
    assert_decided(letter, decision)
    assert_balanced(shop)
    assert_settled_state_but_tombstones(shop, sold=1 if decision is Decision.REPLAY else 0)


def assert_settled_state_but_tombstones(shop: Shop, *, sold: int) -> None:
    assert sold_units(shop) == sold
    assert numbers(shop).left == {shop.item.pk: shop.item.units - sold}
    assert numbers(shop).queued == {shop.item.pk: 0}
    assert Order.objects.count() == sold


def test_a_unit_that_somebody_else_has_by_now_is_not_sold_twice() -> None:
    """Law 1: its unit came back and was bought; the replay is refused in words, the letter still to be decided."""
    shop = open_sale(units=1)
    first, second = make_buyers(2)
    letter = park_one(shop, first)
    repair_the_leak(shop)
    assert "-" in buy(ticket_of(shop, second))
    with pytest.raises(DecisionRefused, match="no unit left"):
        decide(letter, Decision.REPLAY)
    letter.refresh_from_db()
    assert (letter.decision, letter.decided_at, letter.concluded_at) == ("", None, None)
    settle(shop)
    assert sold_units(shop) == 1
    decide(letter, Decision.REFUSE)
    assert status_of(letter) == ("refused", "invalid")
    assert_balanced(shop)


def test_refused_its_buyer_is_told_and_may_buy_again() -> None:
    """Law 3: the tombstone is there; law 4: nothing came back twice."""
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    assert buy(ticket_of(shop, buyer)) == "LimitReached"
    operator = User.objects.create_superuser("operator")
    decide(letter, Decision.REFUSE, actor_id=operator.pk)
    assert status_of(letter) == ("refused", "invalid")
    assert_decided(letter, "REFUSE")
    assert (letter.decided_by, letter.decision_reason) == (operator, "the buyer has called")
    assert Reservation.objects.get().units_owed == 0
    assert "-" in buy(ticket_of(shop, buyer))
    settle(shop)
    repair_the_leak(shop)
    assert_balanced(shop)
    assert_settled_state_but_tombstones(shop, sold=1)


@pytest.mark.parametrize("decision", list(Decision))
def test_after_a_rebuild(decision: DeadLetter.Decision) -> None:
    """Mark, receipt and counter are gone; a replay writes them anew, a refusal leaves Redis alone."""
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert status_of(letter) == ("not_reserved", "")
    decide(letter, decision)
    settle(shop)
    assert status_of(letter)[0] == ("confirmed" if decision is Decision.REPLAY else "refused")
    assert_decided(letter, decision)
    assert_balanced(shop)
    assert_settled_state_but_tombstones(shop, sold=1 if decision is Decision.REPLAY else 0)


@pytest.mark.parametrize("words", ["has its fate already: settled", "used this order number"])
def test_an_order_number_that_was_used_again_is_not_replayed(words: str) -> None:
    """Law 3: after a rebuild the buyer may use his ticket again, and did."""
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert buy(ticket_again(shop, letter)) == letter.fields["order"]
    if "settled" in words:
        settle(shop)
    with pytest.raises(DecisionRefused, match=words):
        decide(letter, Decision.REPLAY)
    settle(shop)
    decide(letter, Decision.REFUSE)
    assert status_of(letter) == ("confirmed", "")
    assert_decided(letter, "REFUSE")
    assert_settled_state(shop, sold=1)


def ticket_again(shop: Shop, letter: DeadLetter) -> str:
    """The same ticket once more."""
    item = SaleItem.objects.select_related("pool__sale").get(pk=shop.item.pk)
    return sign_ticket(
        order_no=letter.fields["order"], item=item, buyer_id=int(letter.fields["buyer"]), key=letter.fields["key"]
    )


def test_a_limit_that_is_reached_by_now_bars_the_replay() -> None:
    """Law 2: after a rebuild the buyer has bought with another ticket."""
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert "-" in buy(ticket_of(shop, buyer))
    with pytest.raises(DecisionRefused, match="as many as one may have"):
        decide(letter, Decision.REPLAY)
    settle(shop)
    assert_settled_state(shop, sold=1)


@pytest.mark.parametrize("decision", list(Decision))
@pytest.mark.parametrize("moment", ["before the script", "after the script"])
def test_killed_in_between_it_is_taken_up_once(
    decision: DeadLetter.Decision, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decision is committed; the sweep carries it out, or sees that it was."""
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    name = "requeue" if decision is Decision.REPLAY else "conclude"
    original = getattr(parked, name)

    def deadly(**arguments: Any) -> Any:
        if moment == "after the script":
            original(**arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(parked, name, deadly)
        assert die_in_a_fork(lambda: decide(letter, decision)) == -9
    later = timezone.now() + timedelta(seconds=6)
    assert take_up_decisions(clock=timezone.now) == 0
    assert take_up_decisions(clock=lambda: later) == 1
    assert take_up_decisions(clock=lambda: later) == 0
    assert numbers(shop).queue_length == (1 if decision is Decision.REPLAY else 0)
    settle(shop)
    assert_decided(letter, decision)
    repair_the_leak(shop)
    assert_balanced(shop)
    assert_settled_state_but_tombstones(shop, sold=1 if decision is Decision.REPLAY else 0)


def test_a_redis_that_is_away_is_told_later(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    raw_client().hset(shop.bucket.keys[1], "frozen", "token")
    with pytest.raises(GateUnavailable):
        decide(letter, Decision.REPLAY)
    raw_client().hdel(shop.bucket.keys[1], "frozen")
    DeadLetter.objects.update(decided_at=timezone.now() - timedelta(seconds=6))
    sweep_buckets()
    assert settle(shop) == 1
    assert_decided(letter, "REPLAY")


def test_four_at_once_are_one_replay() -> None:
    shop = open_sale(units=9)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)

    def attempt(_: int) -> str:
        try:
            decide(letter, Decision.REPLAY)
        except DecisionRefused as refusal:
            return str(refusal)
        return "replayed"

    assert sorted(run_together(attempt, range(4))) == ["it was decided already: replayed"] * 3 + ["replayed"]
    assert numbers(shop).queue_length == 1
    settle(shop)
    repair_the_leak(shop)
    assert_settled_state(shop, sold=1)


def test_control_without_the_letter_s_number_it_is_queued_twice() -> None:
    """The control: a script that does not know what it has done already takes a second unit for one order."""
    shop = open_sale(units=9)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    entry = replay._entry_of(letter)
    assert entry is not None
    for unsafe_number in (10**6, 10**6 + 1):
        parked.requeue(bucket=shop.bucket, letter_id=unsafe_number, parked_epoch=letter.epoch, entry=entry)
    assert numbers(shop).queue_length == 2
    assert numbers(shop).left == {shop.item.pk: 6}
    with pytest.raises(GateUnavailable):
        settle(shop)
    assert examine(bucket=shop.bucket) != ""


def test_the_same_letter_is_queued_once() -> None:
    shop = open_sale(units=9)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    entry = replay._entry_of(letter)
    assert entry is not None
    again = partial(parked.requeue, bucket=shop.bucket, letter_id=letter.pk, parked_epoch=letter.epoch, entry=entry)
    codes = [again() for _ in range(2)]
    assert codes == [RequeueCode.QUEUED, RequeueCode.QUEUED_BEFORE]


def test_parked_but_still_in_the_queue_when_it_is_refused() -> None:
    """Whoever parked it died before it was dropped: the refusal takes it out, and nothing is counted twice."""
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    raw_client().xadd(shop.bucket.keys[4], letter.fields, id="99999999999999-0")
    DeadLetter.objects.update(stream_id="99999999999999-0")
    decide(letter, Decision.REFUSE)
    assert numbers(shop).queue_length == 0
    settle(shop)
    assert examine(bucket=shop.bucket) == ""
    repair_the_leak(shop)
    assert_balanced(shop)


def test_what_cannot_be_read_can_only_be_refused_and_its_buyer_is_told() -> None:
    """The ticket says whose it was."""
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    order_no = buy(ticket_of(shop, buyer))
    ((stream_id, fields),) = raw_client().xrange(shop.bucket.keys[4])
    raw_client().xdel(shop.bucket.keys[4], stream_id)
    raw_client().xadd(shop.bucket.keys[4], {**fields, b"quantity": b"one"})
    settle(shop)
    letter = DeadLetter.objects.get()
    with pytest.raises(DecisionRefused, match="cannot be read"):
        decide(letter, Decision.REPLAY)
    decide(letter, Decision.REFUSE)
    assert status_of(letter) == ("refused", "invalid")
    assert (Reservation.objects.get().order_no, Reservation.objects.get().epoch) == (order_no, 0)
    assert_decided(letter, "REFUSE")


def test_what_belongs_to_nobody_is_only_marked() -> None:
    """Hand-made entries: no order number to close; the incident stays open until the last of them is decided."""
    shop = open_sale(units=3)
    for name in ("x", "9" * 60):
        raw_client().xadd(shop.bucket.keys[4], {"order": name})
    settle(shop)
    first, second = DeadLetter.objects.order_by("pk")
    decide(first, Decision.REFUSE)
    assert Incident.objects.get().resolved_at is None
    decide(second, Decision.REFUSE)
    assert_decided(second, "REFUSE")
    assert not Reservation.objects.exists()


def test_after_the_sale_it_is_only_refused() -> None:
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    FlashSale.objects.update(state="ARCHIVED")
    raw_client().delete(*shop.bucket.keys)
    with pytest.raises(DecisionRefused, match="not in Redis any more"):
        decide(letter, Decision.REPLAY)
    decide(letter, Decision.REFUSE)
    assert status_of(letter) == ("refused", "invalid")
    assert_decided(letter, "REFUSE")


def test_decided_is_decided() -> None:
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    decide(letter, Decision.REFUSE)
    for decision in Decision:
        with pytest.raises(DecisionRefused, match="it was decided already: refused"):
            decide(letter, decision)


def test_the_command() -> None:
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    out = StringIO()
    call_command("decide_deadletter", letter.pk, "--replay", "--reason", "he called", stdout=out, no_color=True)
    assert out.getvalue() == f"dead letter {letter.pk}: replayed\n"
    letter.refresh_from_db()
    assert (letter.decided_by, letter.decision_reason) == (None, "he called")
    with pytest.raises(CommandError, match="decided already"):
        call_command("decide_deadletter", letter.pk, "--refuse", "--reason", "x")
    with pytest.raises(CommandError, match="there is no dead letter 999999999"):
        call_command("decide_deadletter", 999999999, "--refuse", "--reason", "x")
    with pytest.raises(CommandError, match="a decision wants a reason"):
        call_command("decide_deadletter", make_letter(shop).pk, "--refuse", "--reason", " ")


def make_letter(shop: Shop) -> DeadLetter:
    return DeadLetter.objects.create(
        pool=shop.pool, bucket_no=0, epoch=1, stream_id="1-1", fields={}, error="x", created_at=timezone.now()
    )


def test_the_page_asks_first_and_wants_the_permission() -> None:
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    user = User.objects.create_user("employee", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_deadletter"))
    client = Client()
    client.force_login(user)
    page = reverse("admin:seckill_deadletter_changelist")
    data = {"action": "refuse", "_selected_action": [letter.pk]}
    client.post(page, data | {"reason": "once more"})
    letter.refresh_from_db()
    assert letter.decision == ""
    user.user_permissions.add(Permission.objects.get(codename="decide_deadletter"))
    asked = client.post(page, data).content.decode()
    assert "This cannot be undone." in asked
    assert letter.fields["order"] in asked
    letter.refresh_from_db()
    assert letter.decision == ""
    told = client.post(page, data | {"reason": "the buyer has called"}, follow=True)
    assert [message.message for message in told.context["messages"]] == [f"{letter}: refused"]
    assert_decided(letter, "REFUSE")
    assert letter.decided_by == user
    again = client.post(f"{page}?show=all", {**data, "action": "replay", "reason": "once more"}, follow=True)
    assert [message.level_tag for message in again.context["messages"]] == ["error"]


def test_the_page_shows_what_was_parked_and_what_to_do() -> None:
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    client = Client()
    client.force_login(User.objects.create_superuser("operator"))
    html = client.get(reverse("admin:seckill_deadletter_change", args=[letter.pk])).content.decode()
    for words in (letter.fields["order"], "it killed its worker 3 times", "manage.py decide_deadletter"):
        assert words in html


def test_two_buyers_letters_of_one_bucket_have_tombstones_of_their_own() -> None:
    """No number of the queue is taken by one: (pool, bucket, epoch, seq) stays unique."""
    shop = open_sale(units=5)
    for buyer in make_buyers(2):
        decide(park_one(shop, buyer), Decision.REFUSE)
    assert sorted(Reservation.objects.values_list("epoch", "seq")) == [(0, 1), (0, 2)]
    (ticket,) = make_tickets(shop, 1)
    assert "-" in buy(ticket)
    settle(shop)
    repair_the_leak(shop)
    assert_balanced(shop)


def test_a_replay_that_was_decided_but_not_made_before_the_archive_is_undecided_again() -> None:
    """Nothing can be put into a queue that is gone; the letter waits for a refusal, and not for a rebuild for ever."""
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    raw_client().hset(shop.bucket.keys[1], "frozen", "token")
    with pytest.raises(GateUnavailable):
        decide(letter, Decision.REPLAY)
    raw_client().hdel(shop.bucket.keys[1], "frozen")
    end(shop)
    archive(shop, Accepted(dead_letters=True))
    assert_archived(shop, sold=0)

    assert take_up_decisions(clock=lambda: timezone.now() + timedelta(seconds=6)) == 0

    letter.refresh_from_db()
    assert (letter.decision, letter.decided_at, letter.concluded_at) == ("", None, None)
    decide(letter, Decision.REFUSE)
    assert status_of(letter) == ("refused", "invalid")
    assert_decided(letter, "REFUSE")


@pytest.mark.parametrize("is_unlinked", [False, True], ids=["closed", "unlinked"])
@pytest.mark.parametrize("was_queued", [False, True], ids=["never queued", "queued and settled"])
def test_a_replay_that_meets_an_archive_under_way_ends(
    was_queued: bool,  # noqa: FBT001
    is_unlinked: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A closed bucket takes nothing any more: the replay was made before, and is concluded, or never will be."""
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    with monkeypatch.context() as patch:
        patch.setattr(replay, "_carry_out", lambda **_: None)
        decide(letter, Decision.REPLAY)
    letter.refresh_from_db()
    if was_queued:
        replay._requeue(letter)
        settle(shop)
    end(shop)
    archiving.seal(bucket=shop.bucket, epoch=1)
    archiving.close(bucket=shop.bucket, epoch=1)
    FlashSale.objects.update(state="ARCHIVING")
    if is_unlinked:
        raw_client().delete(*shop.bucket.keys)

    later = timezone.now() + timedelta(seconds=6)
    assert take_up_decisions(clock=lambda: later) == int(was_queued)

    letter.refresh_from_db()
    assert (letter.decision, letter.concluded_at is not None) == (("REPLAY", True) if was_queued else ("", False))
    assert take_up_decisions(clock=lambda: later) == 0


def test_a_replay_whose_fate_came_while_the_gate_was_asked_is_not_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settlement and the archive have both come between the look at MySQL and the answer of Redis."""
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    original = parked.requeue

    def slow(**arguments: Any) -> RequeueCode:
        assert original(**arguments) is RequeueCode.QUEUED
        settle(shop)
        end(shop)
        archiving.seal(bucket=shop.bucket, epoch=1)
        archiving.close(bucket=shop.bucket, epoch=1)
        return original(**arguments)

    monkeypatch.setattr(parked, "requeue", slow)
    decide(letter, Decision.REPLAY)
    assert_decided(letter, "REPLAY")
    assert Reservation.objects.get().state == "SETTLED"


def test_a_bucket_that_somebody_holds_keeps_no_other_bucket_s_letter_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    held, free = open_sale(units=3), open_sale(units=3)
    letters = [park_one(shop, buyer) for shop, buyer in zip((held, free), make_buyers(2), strict=True)]
    with monkeypatch.context() as patch:
        patch.setattr(replay, "_carry_out", lambda **_: None)
        for letter in letters:
            decide(letter, Decision.REFUSE)
    with holding(Bucket.objects.filter(pool=held.pool)):
        assert take_up_decisions(clock=lambda: timezone.now() + timedelta(seconds=6)) == 1
    assert [bool(letter.concluded_at) for letter in DeadLetter.objects.order_by("pk")] == [False, True]
    assert take_up_decisions(clock=lambda: timezone.now() + timedelta(seconds=6)) == 1


def test_a_counter_that_a_hand_has_set_to_none_does_not_hold_up_a_refusal() -> None:
    shop = open_sale(units=3)
    (buyer,) = make_buyers(1)
    letter = park_one(shop, buyer)
    raw_client().hset(shop.bucket.keys[0], f"{shop.item.pk}:queued", 0)
    decide(letter, Decision.REFUSE)
    assert status_of(letter) == ("refused", "invalid")
    assert_decided(letter, "REFUSE")
    assert numbers(shop).queued == {shop.item.pk: 0}
