"""Rebuild: the one door into Redis. Whatever is lost, killed or raced, the laws hold afterwards."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, connection
from django.utils import timezone

from benchmarks.servers import PrivateServers
from inventory.models import Stock
from seckill import preheat, rebuild
from seckill.conf import Limits
from seckill.errors import GateUnavailable, RebuildRefused, SaleNotReady
from seckill.gate import gate, staging
from seckill.gate.connection import raw_client
from seckill.models import Bucket, FlashSale, Incident, Reservation, SaleItem, Ticket
from seckill.pausing import pause_item, resume_item
from seckill.preheat import preheat_sale
from seckill.purchase import purchase
from seckill.rebuild import rebuild_bucket
from seckill.settlement import settle_bucket
from seckill.sweep import look_over
from seckill.tasks import rebuild_one
from seckill.tickets import read_ticket
from tests.support.die import run_and_die
from tests.support.shop import Shop, buy, make_buyers, make_sale, make_ticket, make_tickets, open_sale, ticket_of
from tests.support.state import assert_settled_state, dump, numbers, sold_units
from tests.support.threads import kill_connection, run_together


def again(shop: Shop) -> rebuild.Rebuilt:
    return rebuild_bucket(bucket=shop.bucket, clock=timezone.now)


def settle(shop: Shop) -> int:
    return settle_bucket(bucket=shop.bucket, clock=timezone.now).entries


def test_preheat_allocates_and_opens() -> None:
    shop = open_sale(units=7)
    assert FlashSale.objects.get().state == "PREHEATED"
    assert numbers(shop).left == {shop.item.pk: 7}
    assert_settled_state(shop, sold=0)


def test_a_second_preheat_is_refused_and_raises_nothing() -> None:
    """CASES 6: not while reservations are queued, not after the key is gone."""
    shop = open_sale(units=100)
    for ticket in make_tickets(shop, 60):
        buy(ticket)
    before = dump(shop.bucket)
    with pytest.raises(SaleNotReady, match="already"):
        preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)
    assert dump(shop.bucket) == before


def test_preheat_explains_what_is_missing() -> None:
    shop = make_sale(units=5)
    type(shop.item).objects.filter(pk=shop.item.pk).update(units=6)
    with pytest.raises(SaleNotReady, match="needs 6 units, the warehouse has 5"):
        preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)
    assert FlashSale.objects.get().state == "DRAFT"
    assert not Bucket.objects.exists()


def test_queued_reservations_survive_and_count() -> None:
    """CASES 6: 100 units, 60 sold, 25 of them only queued, and the keys are rebuilt: 40 are left, not 65."""
    shop = open_sale(units=100)
    tickets = make_tickets(shop, 60)
    for ticket in tickets[:35]:
        buy(ticket)
    settle(shop)
    orders = [buy(ticket) for ticket in tickets[35:]]
    rebuilt = again(shop)
    assert (rebuilt.epoch, rebuilt.drained, rebuilt.refused) == (2, 25, 0)
    assert_settled_state(shop, sold=60)
    assert [buy(ticket) for ticket in tickets[35:]] == orders
    assert buy(make_ticket(shop)) != "SoldOut"


def test_the_buyers_are_rebuilt_too() -> None:
    """CASES 6, 17: loss of the bought set alone opens no second purchase."""
    shop = open_sale()
    (buyer,) = make_buyers(1)
    buy(ticket_of(shop, buyer))
    settle(shop)
    raw_client().delete(shop.bucket.keys[2])
    with pytest.raises(GateUnavailable):
        purchase(ticket=ticket_of(shop, buyer), quantity=1)
    again(shop)
    assert buy(ticket_of(shop, buyer)) == "LimitReached"
    assert_settled_state(shop, sold=1)


@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("damage", ["deleted", "garbage"])
def test_the_sweep_notices_any_damaged_key(part: int, damage: str) -> None:
    shop = open_sale(units=5)
    buy(make_ticket(shop))
    settle(shop)
    raw_client().delete(shop.bucket.keys[part])
    if damage == "garbage":
        raw_client().set(shop.bucket.keys[part], "garbage")
    assert look_over(now=timezone.now()).to_rebuild == [shop.bucket]
    rebuild_one(shop.bucket.pool_id, shop.bucket.number)
    assert look_over(now=timezone.now()).to_rebuild == []
    assert_settled_state(shop, sold=1)


def test_a_wiped_redis_is_not_an_empty_one(servers: PrivateServers) -> None:
    """Law 8: missing is told from empty; a buyer with a ticket hears "unavailable", not "not preheated"."""
    shop = open_sale(units=5)
    ticket, other = make_tickets(shop, 2)
    order_no = buy(ticket)
    settle(shop)
    raw_client().flushall()
    with pytest.raises(GateUnavailable):
        purchase(ticket=other, quantity=1)
    assert buy(ticket) == order_no
    rebuild_one(shop.bucket.pool_id, shop.bucket.number)
    assert_settled_state(shop, sold=1)


@pytest.mark.slow
def test_a_killed_redis_sells_nothing_until_checked(servers: PrivateServers) -> None:
    """CASES 22: the first call after the restart is refused by its run id, and so are all until the rebuild."""
    shop = open_sale(units=50)
    tickets = make_tickets(shop, 30)
    for ticket in tickets[:20]:
        buy(ticket)
    servers.stock_redis.kill()
    with pytest.raises(GateUnavailable):
        purchase(ticket=tickets[20], quantity=1)
    servers.stock_redis.start()
    for ticket in tickets[20:]:
        with pytest.raises(GateUnavailable):
            purchase(ticket=ticket, quantity=1)
    assert look_over(now=timezone.now()).to_rebuild == [shop.bucket]
    rebuild_one(shop.bucket.pool_id, shop.bucket.number)
    again_bought = [buy(ticket) for ticket in tickets]
    settle(shop)
    assert all("-" in answer for answer in again_bought)
    assert_settled_state(shop, sold=30)


def test_a_lost_tail_stays_sold() -> None:
    """CASES 22: Redis forgets 15 settled sales (an older dump); they are still sold, their buyers still marked."""
    shop = open_sale(units=50)
    tickets = make_tickets(shop, 51)
    for ticket in tickets[:35]:
        buy(ticket)
    settle(shop)
    old = dump(shop.bucket)
    orders = [buy(ticket) for ticket in tickets[35:50]]
    settle(shop)
    for key, value in zip(shop.bucket.keys, old, strict=True):
        raw_client().restore(key, 0, value, replace=True)
    again(shop)
    assert [buy(ticket) for ticket in tickets[35:50]] == orders
    assert buy(tickets[50]) == "SoldOut"
    assert_settled_state(shop, sold=50)


STEPS = ["claim", "drain_survivors", "_fill_staging", "_swap", "let_go"]


@pytest.mark.slow
@pytest.mark.parametrize("step", [f"seckill.rebuild.{name}" for name in STEPS] + ["seckill.gate.staging.swap"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_every_step(step: str, moment: str) -> None:
    """No accepted reservation is lost, nothing is sold twice, and the next rebuild finishes the work."""
    shop = open_sale(units=50)
    tickets = make_tickets(shop, 40)
    for ticket in tickets[:20]:
        buy(ticket)
    settle(shop)
    orders = [buy(ticket) for ticket in tickets[:30]]
    assert run_and_die(job="rebuild", pool_id=shop.pool.pk, function=step, moment=moment) == -9
    Bucket.objects.update(claim_until=timezone.now() - timedelta(seconds=1))
    rebuild_one(shop.bucket.pool_id, shop.bucket.number)
    orders += [buy(ticket) for ticket in tickets[30:]]
    settle(shop)
    assert [buy(ticket) for ticket in tickets] == orders
    assert_settled_state(shop, sold=40)


def test_two_at_once_the_second_is_refused() -> None:
    shop = open_sale(units=50)
    for ticket in make_tickets(shop, 20):
        buy(ticket)

    def attempt(_: int) -> str:
        try:
            return f"epoch {again(shop).epoch}"
        except RebuildRefused as refusal:
            return str(refusal)

    answers = run_together(attempt, range(4))
    assert sum(answer.startswith("epoch") for answer in answers) >= 1
    settle(shop)
    assert_settled_state(shop, sold=20)


def test_a_stolen_claim_cannot_swap(monkeypatch: pytest.MonkeyPatch) -> None:
    """CASES 9: the first holder sleeps past its lease; the second finishes; the late first one changes nothing."""
    shop = open_sale(units=10)
    fill = rebuild._fill_staging

    def slow_fill(**arguments: object) -> None:
        fill(**arguments)  # type: ignore[arg-type]
        monkeypatch.setattr(rebuild, "_fill_staging", fill)
        Bucket.objects.update(claim_until=timezone.now() - timedelta(seconds=1))
        again(shop)

    monkeypatch.setattr(rebuild, "_fill_staging", slow_fill)
    with pytest.raises(RebuildRefused, match="lost its claim"):
        again(shop)
    assert numbers(shop).epoch == 3
    buy(make_ticket(shop))
    settle(shop)
    assert_settled_state(shop, sold=1)


def test_a_restart_during_a_rebuild_is_noticed(monkeypatch: pytest.MonkeyPatch, servers: PrivateServers) -> None:
    shop = open_sale(units=10)
    fill = rebuild._fill_staging

    def fill_and_restart(**arguments: object) -> None:
        fill(**arguments)  # type: ignore[arg-type]
        servers.stock_redis.restart()

    monkeypatch.setattr(rebuild, "_fill_staging", fill_and_restart)
    with pytest.raises((RebuildRefused, GateUnavailable)):
        again(shop)
    with pytest.raises(GateUnavailable):
        purchase(ticket=make_ticket(shop), quantity=1)
    monkeypatch.setattr(rebuild, "_fill_staging", fill)
    again(shop)
    assert_settled_state(shop, sold=0)


def test_a_purchase_between_freeze_and_swap_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(units=10)
    (ticket,) = make_tickets(shop, 1)
    fill, heard = rebuild._fill_staging, []

    def fill_and_buy(**arguments: object) -> None:
        with pytest.raises(GateUnavailable) as refusal:
            purchase(ticket=ticket, quantity=1)
        heard.append(refusal.type)
        fill(**arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(rebuild, "_fill_staging", fill_and_buy)
    again(shop)
    assert heard == [GateUnavailable]
    assert "-" in buy(ticket)


def test_a_queue_that_grew_bars_the_swap() -> None:
    """The last stream id is part of the fence, whoever wrote behind the rebuild's back."""
    shop = open_sale(units=10)
    frozen = staging.freeze(bucket=shop.bucket, token="token")
    staging.begin_staging(bucket=shop.bucket, token="token", epoch=2)
    fields = staging.GateFields(
        epoch=2,
        opens_ms=0,
        closes_ms=1,
        limit=1,
        max_queue=1,
        seq=1,
        settled_seq=0,
        adj_no=0,
        repair_no=0,
        paused_items=frozenset(),
    )
    prices = {shop.item.pk: "1499.00"}
    staging.stage_gate(bucket=shop.bucket, frozen=frozen, gate=fields, left={shop.item.pk: 10}, prices=prices)
    raw_client().xadd(shop.bucket.keys[4], {"order": "x"})
    with pytest.raises(RebuildRefused):
        staging.swap(bucket=shop.bucket, frozen=frozen, epoch=2)
    assert numbers(shop).epoch == 1


def test_a_pause_outlives_a_rebuild() -> None:
    shop = open_sale()
    pause_item(item_id=shop.item.pk)
    assert buy(make_ticket(shop)) == "Paused"
    raw_client().flushall()
    again(shop)
    assert buy(make_ticket(shop)) == "Paused"
    resume_item(item_id=shop.item.pk)
    assert "-" in buy(make_ticket(shop))


def test_a_pause_in_the_middle_of_a_rebuild_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale()
    fill = rebuild._fill_staging

    def fill_and_pause(**arguments: object) -> None:
        fill(**arguments)  # type: ignore[arg-type]
        pause_item(item_id=shop.item.pk)

    monkeypatch.setattr(rebuild, "_fill_staging", fill_and_pause)
    again(shop)
    assert buy(make_ticket(shop)) == "Paused"


def test_preheat_without_redis_is_finished_by_the_sweep(servers: PrivateServers) -> None:
    shop = make_sale(units=4)
    servers.stock_redis.stop()
    try:
        with pytest.raises(GateUnavailable):
            preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)
    finally:
        servers.stock_redis.start()
    assert look_over(now=timezone.now()).to_rebuild == [shop.bucket]
    rebuild_one(shop.bucket.pool_id, shop.bucket.number)
    assert_settled_state(shop, sold=0)


def test_a_bad_row_does_not_bar_the_rebuild() -> None:
    """An entry that MySQL cannot write is refused in the rebuild as it would be in settlement."""
    shop = open_sale(units=5)
    tickets = make_tickets(shop, 3)
    orders = [buy(ticket) for ticket in tickets]
    bad = read_ticket(tickets[1]).buyer_id
    Ticket.objects.filter(buyer_id=bad).delete()
    User.objects.filter(pk=bad).delete()
    rebuilt = again(shop)
    assert (rebuilt.drained, rebuilt.refused) == (3, 1)
    refused = Reservation.objects.get(state="REFUSED")
    assert (refused.order_no, refused.reason, refused.units_owed) == (orders[1], "invalid", 0)
    assert_settled_state(shop, sold=2)


def test_preheat_and_sweep_at_once_do_not_disturb_each_other() -> None:
    """The claim is taken in preheat's own transaction: the sweep finds nothing to alarm about in between."""
    shop = make_sale(units=5)
    claims = preheat._allocate_sale(sale_id=shop.sale.pk, now=timezone.now())
    assert look_over(now=timezone.now()).to_rebuild == []
    assert not Incident.objects.exists()
    for bucket, token in claims.items():
        rebuild.rebuild_claimed(bucket=bucket, token=token, clock=timezone.now)
    assert_settled_state(shop, sold=0)


def test_two_sales_of_the_same_skus_preheated_at_once() -> None:
    """Stock rows are taken in one order, whatever the order of the items."""
    first = make_sale(units=10, items=2)
    second = make_sale(units=1, items=1)
    SaleItem.objects.filter(pool=first.pool).update(units=5)
    for item in reversed(first.items):
        SaleItem.objects.create(pool=second.pool, sku=item.sku, price="1.00", units=5)
    sales = [first.sale.pk, second.sale.pk]
    run_together(lambda sale_id: preheat_sale(sale_id=sale_id, clock=timezone.now), sales)
    assert set(FlashSale.objects.values_list("state", flat=True)) == {"PREHEATED"}
    assert not Stock.objects.filter(on_hand__gt=0).exists()


def test_a_sale_that_was_set_back_by_hand_is_not_allocated_twice() -> None:
    shop = open_sale(units=5)
    FlashSale.objects.update(state="DRAFT")
    with pytest.raises(SaleNotReady, match="allocated units already"):
        preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)


def test_a_connection_lost_in_the_middle_does_not_keep_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale(units=5)
    buy(make_ticket(shop))
    settle(shop)
    renew = rebuild._renew

    def kill_and_renew(**arguments: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT CONNECTION_ID()")
            (own,) = cursor.fetchone()
        run_together(kill_connection, [own])
        renew(**arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(rebuild, "_renew", kill_and_renew)
    with pytest.raises(DatabaseError):
        again(shop)
    monkeypatch.setattr(rebuild, "_renew", renew)
    again(shop)
    assert_settled_state(shop, sold=1)


def test_a_late_message_does_not_revive_an_archived_bucket() -> None:
    shop = open_sale()
    FlashSale.objects.update(state="ARCHIVED")
    raw_client().flushall()
    rebuild_one(shop.bucket.pool_id, 0)
    assert raw_client().dbsize() == 0


def test_nothing_is_left_behind() -> None:
    shop = open_sale(units=5)
    again(shop)
    assert {key.decode() for key in raw_client().scan_iter()} == set(shop.bucket.keys)


def test_refused_ones_keep_their_reason() -> None:
    shop = open_sale(units=1)
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", 1)
    orders = [buy(ticket) for ticket in make_tickets(shop, 2)]
    again(shop)
    assert sold_units(shop) == 1
    receipts = [gate.look_up(bucket=shop.bucket, order_no=number) for number in orders]
    assert [str(receipt).split("|")[0] for receipt in receipts] == ["confirmed", "refused:phantom"]
    assert Reservation.objects.get(state="REFUSED").units_owed == 0


def test_chunks_with_gaps_and_several_epochs_are_gone_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "LIMITS", Limits(chunk_size=2))
    shop = open_sale(units=20)
    for _ in range(3):
        for ticket in make_tickets(shop, 3):
            buy(ticket)
        settle_bucket(bucket=shop.bucket, clock=timezone.now)
        before = held(shop)
        rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
        assert held(shop) == before
        assert len(before[1]) == len(before[0]) == Reservation.objects.count()


def held(shop: Shop) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
    """Buyers and receipts, without the sentinels that name the epoch."""
    buyers, receipts = (raw_client().hgetall(key) for key in shop.bucket.keys[2:4])
    return tuple({k: v for k, v in found.items() if not k.startswith(b"#")} for found in (buyers, receipts))  # type: ignore[return-value]


def test_the_keys_of_a_dead_rebuild_are_removed_although_redis_was_away_for_the_next_one(
    servers: PrivateServers,
) -> None:
    """It died in the middle of its staging, together with Redis, and the next began before Redis was back."""
    shop = open_sale(units=5)
    buy(make_ticket(shop))
    settle(shop)
    died = run_and_die(job="rebuild", pool_id=shop.pool.pk, function="seckill.rebuild._swap", moment="before")
    assert died == -9
    Bucket.objects.update(claim_until=timezone.now() - timedelta(seconds=1))
    servers.stock_redis.stop()
    try:
        with pytest.raises(GateUnavailable):
            again(shop)
    finally:
        servers.stock_redis.start()
    again(shop)
    assert_settled_state(shop, sold=1)
    assert {key.decode() for key in raw_client().scan_iter()} == set(shop.bucket.keys)
