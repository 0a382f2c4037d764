"""Members one by one: what is in flight is never a difference, and whatever a hand has spoiled is mended or told."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from orders.services import cancel_order
from seckill import members, mending, rounds, settlement
from seckill.conf import Limits
from seckill.errors import BucketUnsound, CommitsLost, GateUnavailable
from seckill.gate import gate
from seckill.gate import members as gate_members
from seckill.gate.connection import raw_client
from seckill.gate.members import Mend
from seckill.member_tables import MemberRound
from seckill.members import Candidates, look_at
from seckill.mending import Extent, MembersReport, Treatment, compare_members
from seckill.models import Bucket, DeadLetter, Incident, ReconciliationRun, Reservation, Ticket
from seckill.rebuild import rebuild_bucket
from seckill.repair import reconcile_and_repair
from seckill.replay import Verdict, decide_letter
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from tests.support.shop import Shop, buy, make_buyers, make_ticket, make_tickets, open_sale, ticket_of
from tests.support.state import assert_settled_state, dump, numbers

BUYERS, RECEIPTS = 2, 3


def settle(shop: Shop) -> None:
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


def compare(
    shop: Shop, *, seconds: float = 0, extent: Extent = Extent.FULL, treatment: Treatment = Treatment.MEND
) -> MembersReport:
    """Compare and mend all members, with the clock so many seconds ahead."""
    return compare_members(bucket=shop.bucket, clock=ahead(seconds), extent=extent, treatment=treatment)


def ahead(seconds: float) -> Callable[[], datetime]:
    return lambda: timezone.now() + timedelta(seconds=seconds)


def found(report: MembersReport) -> list[tuple[str, str, str, str]]:
    return [(f.member, f.in_redis, f.in_mysql, f.outcome.value) for f in report.findings]


def mark_of(shop: Shop, key: object) -> bytes | None:
    raw: bytes | None = raw_client().hget(shop.bucket.keys[BUYERS], str(key))
    return raw


def set_mark(shop: Shop, key: object, text: str | None) -> None:
    put(shop, BUYERS, str(key), text)


def put(shop: Shop, part: int, name: str, text: str | None) -> None:
    """Spoil one member by hand; None deletes it."""
    if text is None:
        raw_client().hdel(shop.bucket.keys[part], name)
    else:
        raw_client().hset(shop.bucket.keys[part], name, text)


def open_kinds() -> list[str]:
    return sorted(Incident.objects.filter(resolved_at=None).values_list("kind", flat=True))


def cancel(order_no: str) -> None:
    buyer_id = Reservation.objects.get(order_no=order_no).buyer_id
    cancel_order(number=order_no, buyer_id=buyer_id, now=timezone.now())


def one_sold(*, limit: int = 1) -> tuple[Shop, str, int]:
    """A shop that has settled one order; its number and its buyer."""
    shop = open_sale(units=10, limit=limit)
    order_no = buy(make_ticket(shop))
    settle(shop)
    return shop, order_no, Reservation.objects.get().buyer_id


# What is in flight.


def test_a_queued_unit_is_held() -> None:
    shop = open_sale(units=10, limit=3)
    buyer, other = make_buyers(2)
    for quantity, who in ((1, buyer), (2, buyer), (3, other)):
        buy(ticket_of(shop, who), quantity)
    report = compare(shop)
    assert (report.looked_at, report.is_complete, report.findings) == (5, True, ())


def test_between_commit_and_confirm_nothing_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(units=10)
    for ticket in make_tickets(shop, 3):
        buy(ticket)
    monkeypatch.setattr(settlement, "_tell_redis", lambda **_: 0)
    settle(shop)
    assert Reservation.objects.count() == 3
    assert compare(shop).is_balanced


def test_between_tombstone_and_release_nothing_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mark holds both until the release, and then one."""
    shop = open_sale(units=10)
    (buyer,) = make_buyers(1)
    for held in (0, 1):
        set_mark(shop, buyer.pk, None)
        buy(ticket_of(shop, buyer))
        set_mark(shop, buyer.pk, str(held + 1))
    with monkeypatch.context() as patch:
        patch.setattr(settlement, "_tell_redis", lambda **_: 0)
        settle(shop)
        assert sorted(Reservation.objects.values_list("state", flat=True)) == ["REFUSED", "SETTLED"]
        assert compare(shop).is_balanced
    settle(shop)
    assert mark_of(shop, buyer.pk) == b"1"
    assert compare(shop).is_balanced


@pytest.mark.parametrize("died", ["before the script", "after it"])
def test_a_return_that_is_owed_is_no_difference(died: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shop, order_no, buyer = one_sold()
    cancel(order_no)
    restock = gate.restock

    def die(**arguments: object) -> None:
        if died == "after it":
            restock(**arguments)  # type: ignore[arg-type]
        raise GateUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(gate, "restock", die)
        return_closed_orders(clock=timezone.now)
    assert Reservation.objects.get().owed_at is not None
    assert mark_of(shop, buyer) == (None if died == "after it" else b"1")
    assert compare(shop).is_balanced
    return_closed_orders(clock=timezone.now)
    assert mark_of(shop, buyer) is None
    assert compare(shop).is_balanced


def test_a_queue_too_long_to_be_read_hides_what_might_be_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark may then only be found too low, a receipt that waits is nobody's business, and both show up later."""
    shop = open_sale(units=10, limit=9)
    first, second, orphan = make_buyers(3)
    buy(ticket_of(shop, first), 2)
    settle(shop)
    for buyer in (second, first, second):
        buy(ticket_of(shop, buyer))
    set_mark(shop, orphan.pk, "4")
    set_mark(shop, first.pk, "1")
    put(shop, RECEIPTS, "nobody", f"queued|{shop.item.pk}|1|7")
    with monkeypatch.context() as patch:
        patch.setattr(members, "LIMITS", Limits(batch_size=2))
        assert found(compare(shop)) == [("mark", "1", "3", "mended")]
    settle(shop)
    assert found(compare(shop)) == [
        ("mark", "4", "0", "awaits_proof"),
        ("receipt", f"queued|{shop.item.pk}|1|7", "", "left_alone"),
    ]


# Marks.


def test_a_mark_that_lets_in_or_bars_everybody_is_set_at_once() -> None:
    """Missing or too low, a buyer could reserve above his limit; unreadable, it stops him and his refusals."""
    texts = [None, "0", "1", "abc", "", "1e3", " 2", "007", "-1", "9" * 20]
    shop = open_sale(units=50, limit=2)
    for ticket in make_tickets(shop, len(texts)):
        buy(ticket, 2)
    settle(shop)
    buyers = list(Reservation.objects.order_by("seq").values_list("buyer_id", flat=True))
    for buyer, text in zip(buyers, texts, strict=True):
        set_mark(shop, buyer, text)
    report = compare(shop)
    assert sorted(found(report)) == sorted(("mark", text or "", "2", "mended") for text in texts)
    assert [mark_of(shop, buyer) for buyer in buyers] == [b"2"] * len(texts)
    assert open_kinds() == ["marks_differ"]
    assert_settled_state(shop, sold=20)


def test_a_buyer_whose_mark_was_deleted_reserves_no_second_unit() -> None:
    shop, _, buyer = one_sold()
    set_mark(shop, buyer, None)
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    assert buy(ticket_of(shop, Reservation.objects.get().buyer)) == "LimitReached"
    assert_settled_state(shop, sold=1)


def test_a_mark_that_is_too_high_is_lowered_after_half_a_minute_of_proof() -> None:
    shop, _, buyer = one_sold(limit=3)
    set_mark(shop, buyer, "3")
    assert found(compare(shop)) == [("mark", "3", "1", "awaits_proof")]
    assert found(compare(shop, seconds=29)) == [("mark", "3", "1", "awaits_proof")]
    assert mark_of(shop, buyer) == b"3"
    assert found(compare(shop, seconds=31)) == [("mark", "3", "1", "mended")]
    assert mark_of(shop, buyer) == b"1"
    assert compare(shop, seconds=32).is_balanced


def test_other_numbers_prove_nothing() -> None:
    shop, _, buyer = one_sold(limit=3)
    for seconds, text in ((0, "3"), (15, "2"), (31, "3")):
        set_mark(shop, buyer, text)
        assert found(compare(shop, seconds=seconds)) == [("mark", text, "1", "awaits_proof")]
    assert found(compare(shop, seconds=62)) == [("mark", "3", "1", "mended")]


def test_a_mark_that_came_right_meanwhile_begins_anew() -> None:
    shop, _, buyer = one_sold(limit=3)
    for seconds, text in ((0, "2"), (15, "1"), (31, "2")):
        set_mark(shop, buyer, text)
        compare(shop, seconds=seconds)
    assert mark_of(shop, buyer) == b"2"


def test_a_mark_of_somebody_who_never_bought_is_taken_away() -> None:
    shop = open_sale()
    (buyer,) = make_buyers(1)
    set_mark(shop, buyer.pk, "1")
    for seconds in (0, 31):
        compare(shop, seconds=seconds)
    assert mark_of(shop, buyer.pk) is None
    assert "-" in buy(ticket_of(shop, buyer))


def test_another_epoch_forgets_what_was_seen() -> None:
    shop, _, buyer = one_sold(limit=3)
    set_mark(shop, buyer, "3")
    compare(shop)
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    set_mark(shop, buyer, "3")
    assert found(compare(shop, seconds=31)) == [("mark", "3", "1", "awaits_proof")]


# Receipts.


@pytest.mark.parametrize("fate", ["confirmed", "returned", "refused:invalid"])
def test_a_receipt_is_written_again_from_the_row(fate: str) -> None:
    texts = [None, "", "garbage", "queued|{item}|1|{buyer}", "confirmed|{item}|2|{buyer}"]
    shop = open_sale(units=10)
    orders = [buy(ticket) for ticket in make_tickets(shop, len(texts))]
    settle(shop)
    if fate == "returned":
        for order_no in orders:
            cancel(order_no)
        return_closed_orders(clock=timezone.now)
    buyers = [Reservation.objects.get(order_no=order_no).buyer_id for order_no in orders]
    if fate == "refused:invalid":
        Reservation.objects.update(state="REFUSED", reason="invalid")
        for buyer in buyers:
            set_mark(shop, buyer, None)
    spoiled = [text and text.format(item=shop.item.pk, buyer=buyer) for text, buyer in zip(texts, buyers, strict=True)]
    for order_no, text in zip(orders, spoiled, strict=True):
        put(shop, RECEIPTS, order_no, text)
    right = [f"{fate}|{shop.item.pk}|1|{buyer}" for buyer in buyers]
    expected = [("receipt", text or "", wanted, "mended") for text, wanted in zip(spoiled, right, strict=True)]
    assert sorted(found(compare(shop))) == sorted(expected)
    kept = raw_client().hmget(shop.bucket.keys[RECEIPTS], orders)
    assert kept == [receipt.encode() for receipt in right]
    assert compare(shop).is_balanced


def test_bytes_that_are_no_text_are_mended_too() -> None:
    shop, order_no, buyer = one_sold()
    raw_client().hset(shop.bucket.keys[RECEIPTS], order_no, b"\xff\xfe")
    raw_client().hset(shop.bucket.keys[BUYERS], str(buyer), b"\xff")
    assert [outcome for *_, outcome in found(compare(shop))] == ["mended", "mended"]
    assert_settled_state(shop, sold=1)


def test_one_spoiled_mark_holds_up_no_return() -> None:
    """Two orders end while one buyer's mark is nonsense: both units are on sale again, and the mark is mended."""
    shop = open_sale(units=10)
    orders = [buy(ticket) for ticket in make_tickets(shop, 2)]
    settle(shop)
    set_mark(shop, Reservation.objects.get(order_no=orders[0]).buyer_id, "x")
    for order_no in orders:
        cancel(order_no)
    return_closed_orders(clock=timezone.now)
    assert numbers(shop).left == {shop.item.pk: 10}
    assert [finding[1:] for finding in found(compare(shop))] == [("x", "0", "mended")]
    assert compare(shop).is_balanced


def test_one_spoiled_mark_holds_up_no_refusal() -> None:
    shop = open_sale(units=10)
    buyers = make_buyers(2)
    for buyer in buyers:
        buy(ticket_of(shop, buyer))
    set_mark(shop, buyers[0].pk, "x")
    Ticket.objects.all().delete()
    User.objects.filter(pk__in=[buyer.pk for buyer in buyers]).delete()
    settle(shop)
    assert numbers(shop).left == {shop.item.pk: 10}
    assert [finding[1:] for finding in found(compare(shop))] == [("x", "0", "mended")]
    assert_settled_state(shop, sold=0)


def test_a_receipt_without_a_row_is_told_and_never_deleted() -> None:
    """Somebody may have been told "confirmed": that is for a person to decide."""
    shop = open_sale()
    states = ["confirmed", "queued", "refused:phantom", "returned"]
    texts = [f"{state}|{shop.item.pk}|1|7" for state in states]
    for state, text in zip(states, texts, strict=True):
        put(shop, RECEIPTS, f"nobody-{state}", text)
    for seconds in (0, 31, 62):
        assert found(compare(shop, seconds=seconds)) == [("receipt", text, "", "left_alone") for text in texts]
    incident = Incident.objects.get()
    assert (incident.kind, incident.severity, incident.count) == ("receipts_differ", "CRITICAL", 3)
    assert raw_client().hlen(shop.bucket.keys[RECEIPTS]) == 5


def test_a_rebuild_forgets_what_nobody_has_a_row_for() -> None:
    shop = open_sale()
    put(shop, RECEIPTS, "nobody", f"confirmed|{shop.item.pk}|1|7")
    compare(shop)
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    reconcile_and_repair(bucket=shop.bucket, clock=ahead(1))
    assert open_kinds() == []


# Fences.


@pytest.mark.parametrize("what", ["another mend", "another epoch", "a freeze", "a seal", "the mark", "the receipt"])
def test_what_was_overtaken_is_not_mended(what: str) -> None:
    shop, order_no, buyer = one_sold()
    mark = Mend(name=str(buyer), seen=b"1", wanted="5")
    receipt = Mend(name=order_no, seen=f"confirmed|{shop.item.pk}|1|{buyer}".encode(), wanted="x")
    gate_key = shop.bucket.keys[1]
    epoch, written = 1, {str(buyer), order_no}
    if what == "another mend":
        raw_client().hset(gate_key, "mend_no", "1")
        written = set()
    elif what == "another epoch":
        epoch = 2
    elif what == "a freeze":
        raw_client().hset(gate_key, "frozen", "token")
    elif what == "a seal":
        raw_client().hset(gate_key, "sealed", "1")
    elif what == "the mark":
        set_mark(shop, buyer, "2")
        written = {order_no}
    else:
        put(shop, RECEIPTS, order_no, None)
        written = {str(buyer)}
    before = dump(shop.bucket)

    def mend() -> frozenset[str]:
        return gate_members.mend(bucket=shop.bucket, epoch=epoch, seen_mend_no="0", marks=[mark], receipts=[receipt])

    if what in {"another epoch", "a freeze", "a seal"}:
        with pytest.raises(BucketUnsound):
            mend()
    else:
        assert mend() == written
    assert (dump(shop.bucket) == before) == (what in {"another mend", "another epoch", "a freeze", "a seal"})


def test_no_mark_becomes_anything_but_a_number() -> None:
    shop, _, buyer = one_sold()
    before = dump(shop.bucket)
    for wanted in ("-1", "1.5", "abc", ""):
        mend = Mend(name=str(buyer), seen=b"1", wanted=wanted)
        with pytest.raises(BucketUnsound):
            gate_members.mend(bucket=shop.bucket, epoch=1, seen_mend_no="0", marks=[mend], receipts=[])
    assert dump(shop.bucket) == before


def test_the_epoch_of_a_hash_is_no_buyer() -> None:
    shop = open_sale()
    mend = Mend(name="#epoch", seen=b"1", wanted="7")
    with pytest.raises(BucketUnsound):
        gate_members.mend(bucket=shop.bucket, epoch=1, seen_mend_no="0", marks=[mend], receipts=[])
    assert numbers(shop).epoch == 1


def test_a_mend_whose_answer_was_lost_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shop, _, buyer = one_sold()
    set_mark(shop, buyer, None)
    made = gate_members.mend

    def mend_and_lose(**arguments: object) -> None:
        made(**arguments)  # type: ignore[arg-type]
        raise GateUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(gate_members, "mend", mend_and_lose)
        with pytest.raises(GateUnavailable):
            compare(shop)
    assert compare(shop).is_balanced
    assert_settled_state(shop, sold=1)


def test_a_purchase_between_look_and_mend_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    shop, _, buyer = one_sold(limit=3)
    (user,) = [row.buyer for row in Reservation.objects.select_related("buyer")]
    set_mark(shop, buyer, None)
    made = gate_members.mend

    def buy_and_mend(**arguments: object) -> frozenset[str]:
        buy(ticket_of(shop, user))
        return made(**arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(gate_members, "mend", buy_and_mend)
        assert [outcome for *_, outcome in found(compare(shop))] == ["overtaken"]
    assert mark_of(shop, buyer) == b"1"
    compare(shop)
    assert mark_of(shop, buyer) == b"2"


def test_a_frozen_or_forgotten_bucket_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    shop, _, buyer = one_sold()
    candidates = Candidates(limit_keys=frozenset({str(buyer)}))
    raw_client().hset(shop.bucket.keys[1], "settled_seq", "99")
    with pytest.raises(CommitsLost):
        look_at(bucket=shop.bucket, candidates=candidates)
    for field in ("frozen", "sealed"):
        raw_client().hset(shop.bucket.keys[1], field, "token")
        with pytest.raises(GateUnavailable):
            look_at(bucket=shop.bucket, candidates=candidates)
        raw_client().hdel(shop.bucket.keys[1], field)


# Rounds.


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks at two members, one look a run."""
    for module in (rounds, mending):
        monkeypatch.setattr(module, "LIMITS", Limits(members_per_look=2, looks_per_run=1))


def windows(shop: Shop, runs: int, *, seconds: float = 0) -> list[MembersReport]:
    return [compare(shop, extent=Extent.WINDOW, seconds=seconds) for _ in range(runs)]


def test_a_round_comes_to_everybody(few: None) -> None:
    """Seven rows, two a run: the last run of four finishes the round, and the next begins another."""
    shop = open_sale(units=10)
    orders = [buy(ticket) for ticket in make_tickets(shop, 7)]
    settle(shop)
    put(shop, RECEIPTS, orders[6], None)
    reports = windows(shop, 4)
    assert [(report.is_complete, report.count) for report in reports] == [
        (False, 0),
        (False, 0),
        (False, 0),
        (True, 1),
    ]
    assert [report.is_complete for report in windows(shop, 4)] == [False, False, False, True]
    assert compare(shop).is_balanced


def test_a_full_look_finds_everything_at_once(few: None) -> None:
    shop = open_sale(units=10)
    orders = [buy(ticket) for ticket in make_tickets(shop, 7)]
    settle(shop)
    for order_no in orders:
        put(shop, RECEIPTS, order_no, None)
    report = compare(shop)
    assert (report.count, report.is_complete) == (7, True)


def test_big_hashes_are_scanned_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than Redis keeps in one piece: the marks nobody has a row for are found by going over the hash itself."""
    monkeypatch.setattr(rounds, "LIMITS", Limits(members_per_look=100))
    shop = open_sale()
    raw_client().hset(shop.bucket.keys[BUYERS], mapping={f"nobody-{n}": "1" for n in range(700)})
    report = compare(shop)
    assert (report.count, report.is_complete, len(report.findings)) == (700, True, 100)


def test_a_suspect_is_looked_at_by_every_run(few: None) -> None:
    """The proof does not wait for the next round."""
    shop = open_sale(units=10, limit=3)
    for ticket in make_tickets(shop, 7):
        buy(ticket)
    settle(shop)
    first = Reservation.objects.order_by("seq").values_list("limit_key", flat=True)[0]
    set_mark(shop, first, "2")
    windows(shop, 1)
    assert mark_of(shop, first) == b"2"
    windows(shop, 1, seconds=31)
    assert mark_of(shop, first) == b"1"


def test_of_two_runs_at_once_one_counts() -> None:
    """The other's progress is dropped: nothing is taken for looked at that nobody has looked at."""
    shop, _, _ = one_sold()
    state = rounds.current_round(bucket=shop.bucket, now=timezone.now())
    assert rounds.keep(bucket=shop.bucket, state=state.finished())
    assert not rounds.keep(bucket=shop.bucket, state=state)
    assert MemberRound.objects.get().version == 1


# Incidents that a balance closes.


def test_what_happened_is_over_once_the_books_are_balanced_after_it() -> None:
    shop = open_sale(units=1)
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", 1)
    for ticket in make_tickets(shop, 2):
        buy(ticket)
    settle(shop)
    assert open_kinds() == ["phantom"]
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    assert open_kinds() == []
    assert Incident.objects.get().resolved_at is not None


def refuse_a_row(shop: Shop) -> None:
    """An order that MySQL cannot write: its buyer is gone."""
    order_no = buy(make_ticket(shop))
    bad = Ticket.objects.get(order_no=order_no).buyer_id
    Ticket.objects.filter(buyer_id=bad).delete()
    User.objects.filter(pk=bad).delete()


def test_a_comparison_does_not_close_what_it_has_itself_seen() -> None:
    """It closes at the next; and not while a member differs, however right the numbers are."""
    shop = open_sale(units=10)
    refuse_a_row(shop)
    put(shop, RECEIPTS, "nobody", f"confirmed|{shop.item.pk}|1|7")
    for _ in range(2):
        assert reconcile_and_repair(bucket=shop.bucket, clock=timezone.now).verdict == "BALANCED"
        assert open_kinds() == ["receipts_differ", "row_refused"]
    put(shop, RECEIPTS, "nobody", None)
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    assert open_kinds() == []


def test_a_round_that_is_not_finished_closes_nothing(few: None) -> None:
    shop = open_sale(units=10)
    refuse_a_row(shop)
    for ticket in make_tickets(shop, 4):
        buy(ticket)
    open_after = []
    for _ in range(3):
        reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
        open_after.append(open_kinds())
    assert open_after == [["row_refused"], ["row_refused"], []]


def test_a_dead_letter_keeps_its_mark_and_its_receipt_until_somebody_decides() -> None:
    """A replay finds both as they were; and the incident is over when the last letter is."""
    shop = open_sale(units=10)
    order_no = buy(make_ticket(shop))
    ((stream_id, fields),) = raw_client().xrange(shop.bucket.keys[4])
    raw_client().xdel(shop.bucket.keys[4], stream_id)
    raw_client().xadd(shop.bucket.keys[4], {"order": fields[b"order"], "quantity": "one"})
    before = [raw_client().hgetall(shop.bucket.keys[part]) for part in (BUYERS, RECEIPTS)]
    for seconds in (0, 31, 62, 93):
        reconcile_and_repair(bucket=shop.bucket, clock=ahead(seconds))
    assert [raw_client().hgetall(shop.bucket.keys[part]) for part in (BUYERS, RECEIPTS)] == before
    assert open_kinds() == ["dead_letter"]
    refuse = DeadLetter.Decision.REFUSE
    verdict = Verdict(letter_id=DeadLetter.objects.get().pk, decision=refuse, actor_id=None, reason="nobody knows")
    decide_letter(verdict=verdict, clock=timezone.now)
    for seconds in (124, 125):
        reconcile_and_repair(bucket=shop.bucket, clock=ahead(seconds))
    assert open_kinds() == []
    assert order_no in Reservation.objects.values_list("order_no", flat=True)


def test_a_run_keeps_what_it_found() -> None:
    shop, _, buyer = one_sold()
    set_mark(shop, buyer, None)
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now)
    kept = ReconciliationRun.objects.get().members
    assert (kept["looked_at"], kept["is_complete"], kept["differ"]) == (2, True, 1)
    assert kept["findings"] == [
        {"member": "mark", "name": str(buyer), "in_redis": "", "in_mysql": "1", "outcome": "mended"}
    ]
    assert Bucket.objects.get().repair_no == 0
