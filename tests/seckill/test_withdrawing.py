"""Withdraw: only a sale that nobody has reserved in, and a first purchase either wins or finds no gate."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from inventory.models import Stock, StockMovement
from inventory.selectors import balance
from inventory.services import WAREHOUSE
from orders.models import Order
from orders.services import cancel_order
from seckill import withdrawing
from seckill.errors import GateUnavailable, SaleNotReady
from seckill.gate import changing, staging
from seckill.gate.connection import raw_client
from seckill.models import Bucket, FlashSale, Incident, ItemBucket, SaleItem, SalePool
from seckill.preheat import preheat_sale
from seckill.rebuild import rebuild_bucket
from seckill.returns import return_closed_orders
from seckill.settlement import settle_bucket
from seckill.sweep import examine, look_over
from seckill.withdrawing import withdraw_sale
from tests.support.die import run_and_die
from tests.support.shop import Shop, buy, make_buyers, make_sale, make_ticket, make_tickets, open_sale, ticket_of
from tests.support.state import assert_settled_state, dump
from tests.support.threads import run_together
from tests.support.unsafe_changes import unsafe_withdraw


def withdraw(shop: Shop) -> str:
    """Withdraw; return "withdrawn", or why not."""
    try:
        withdraw_sale(sale_id=shop.sale.pk, clock=timezone.now)
    except SaleNotReady as error:
        return str(error)
    return "withdrawn"


def assert_withdrawn(shop: Shop, *, units: int = 10) -> None:
    """A draft, its units in the warehouse by the ledger too, nothing of it in Redis, and nobody cares."""
    assert FlashSale.objects.get(pk=shop.sale.pk).state == "DRAFT"
    assert dump(shop.bucket) == [None] * 5
    assert not raw_client().keys(f"seckill:{{{shop.pool.pk}:*")
    assert not ItemBucket.objects.filter(item__pool=shop.pool).exists()
    assert Stock.objects.get(sku=shop.item.sku).on_hand == units
    assert balance(account=WAREHOUSE, sku_id=shop.item.sku_id) == units
    assert balance(account=f"item:{shop.item.pk}:0") == 0
    row = Bucket.objects.get(pool=shop.pool)
    assert (row.claim, row.claim_until) == ("", None)
    assert look_over(now=timezone.now()).to_rebuild == []
    assert not Incident.objects.filter(resolved_at__isnull=True).exists()


def assert_on_sale(shop: Shop) -> None:
    """On sale as before: sound in Redis, and units in MySQL."""
    assert FlashSale.objects.get(pk=shop.sale.pk).state == "PREHEATED"
    assert examine(bucket=shop.bucket) == ""
    assert ItemBucket.objects.get(item=shop.item).allocated == 10


def test_an_untouched_sale_is_a_draft_again_and_can_be_preheated_again() -> None:
    shop = open_sale()
    ticket = make_ticket(shop)
    assert withdraw(shop) == "withdrawn"
    assert_withdrawn(shop)
    assert buy(ticket) == "NotPreheated"
    assert withdraw(shop) == "the sale is draft, not preheated"
    preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)
    assert_settled_state(shop, sold=0)
    assert "-" in buy(ticket)


def test_the_price_can_be_corrected_meanwhile_and_old_tickets_do_not_buy_at_the_old_one() -> None:
    shop = open_sale()
    (buyer,) = make_buyers(1)
    old = ticket_of(shop, buyer)
    withdraw(shop)
    SaleItem.objects.update(price="999.00")
    preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)
    assert buy(old) == "PriceChanged"
    assert "-" in buy(ticket_of(shop, buyer))


def test_several_pools_and_items() -> None:
    shop = make_sale(items=2)
    second = SalePool.objects.create(sale=shop.sale, limit_per_buyer=1, max_queue=100)
    shop.items[1].pool = second
    shop.items[1].save()
    preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)
    assert withdraw(shop) == "withdrawn"
    assert_withdrawn(shop)
    assert not ItemBucket.objects.exists()
    assert [stock.on_hand for stock in Stock.objects.all()] == [10, 10]
    assert not raw_client().keys("seckill:*")


def reserved(shop: Shop) -> None:
    buy(make_ticket(shop))


def settled(shop: Shop) -> None:
    reserved(shop)
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


def returned(shop: Shop) -> None:
    settled(shop)
    order = Order.objects.get()
    cancel_order(number=order.number, buyer_id=order.buyer_id, now=timezone.now())
    return_closed_orders(clock=timezone.now)


def reserved_and_rebuilt(shop: Shop) -> None:
    reserved(shop)
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)


def parked(shop: Shop) -> None:
    raw_client().xadd(shop.bucket.keys[4], {"order": "x"})
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


@pytest.mark.parametrize("touch", [reserved, settled, returned, reserved_and_rebuilt, parked])
def test_whatever_was_ever_reserved_bars_it(touch: Callable[[Shop], None]) -> None:
    shop = open_sale()
    touch(shop)
    assert withdraw(shop) == str(withdrawing.TOUCHED)
    assert_on_sale(shop)


def test_a_refused_purchase_does_not_bar_it() -> None:
    shop = open_sale(units=10)
    assert buy(make_ticket(shop), 2) == "LimitReached"
    assert withdraw(shop) == "withdrawn"


def test_the_second_of_two_pools_was_bought_in() -> None:
    """The first bucket is out of Redis already, and is brought back at once."""
    shop = make_sale(items=2)
    second = SalePool.objects.create(sale=shop.sale, limit_per_buyer=1, max_queue=100)
    item = shop.items[1]
    item.pool = second
    item.save()
    preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)
    later = Shop(sale=shop.sale, pool=second, items=[item])
    assert "-" in buy(make_ticket(later))
    assert withdraw(shop) == str(withdrawing.TOUCHED)
    assert_on_sale(shop)
    assert "-" in buy(make_ticket(shop))


@pytest.mark.parametrize("state", ["DRAFT", "SCHEDULED", "ARCHIVING", "ARCHIVED"])
def test_only_a_preheated_sale_is_withdrawn(state: str) -> None:
    shop = open_sale()
    FlashSale.objects.update(state=state)
    before = dump(shop.bucket)
    assert withdraw(shop).endswith("not preheated")
    assert dump(shop.bucket) == before
    with pytest.raises(SaleNotReady, match="there is no sale"):
        withdraw_sale(sale_id=10**9, clock=timezone.now)


def test_a_rebuild_that_is_at_it_comes_first() -> None:
    shop = open_sale()
    Bucket.objects.update(claim="another", claim_until=timezone.now() + timedelta(seconds=30))
    assert withdraw(shop).endswith("please try again")
    assert_on_sale(shop)


def test_redis_away_leaves_it_on_sale(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_sale()

    def away(**_: object) -> bool:
        raise GateUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(changing, "withdraw", away)
        with pytest.raises(GateUnavailable):
            withdraw_sale(sale_id=shop.sale.pk, clock=timezone.now)
    assert_on_sale(shop)
    assert withdraw(shop) == "withdrawn"
    assert_withdrawn(shop)


def test_redis_was_emptied_before() -> None:
    shop = open_sale()
    raw_client().flushall()
    assert withdraw(shop) == "withdrawn"
    assert_withdrawn(shop)


def test_the_keys_of_a_dead_rebuild_go_too() -> None:
    shop = open_sale()
    raw_client().set(shop.bucket.staging_keys("dead")[0], "x")
    Bucket.objects.update(claim="dead", claim_until=None)
    assert withdraw(shop) == "withdrawn"
    assert_withdrawn(shop)


STEPS = [
    ("seckill.withdrawing._claim", "before"),
    ("seckill.withdrawing._claim", "after"),
    ("seckill.gate.changing.withdraw", "before"),
    ("seckill.gate.changing.withdraw", "after"),
    ("seckill.withdrawing._give_back", "before"),
    ("seckill.withdrawing._give_back", "after"),
    ("seckill.withdrawing.let_go", "after"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("function", "moment"), STEPS)
def test_killed_at_any_step_it_can_be_repeated(function: str, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before MySQL's commit the sale comes back by itself; after it, it is withdrawn."""
    shop = open_sale()
    assert run_and_die(job="withdraw", pool_id=shop.pool.pk, function=function, moment=moment) == -9
    Bucket.objects.update(claim_until=None)  # the dead one's claim has run out
    if FlashSale.objects.get().state == "PREHEATED":
        if examine(bucket=shop.bucket):
            rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
        assert_on_sale(shop)
        assert withdraw(shop) == "withdrawn"
    assert dump(shop.bucket) == [None] * 5
    assert Stock.objects.get().on_hand == balance(account=WAREHOUSE) == 10
    preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)
    assert_settled_state(shop, sold=0)


def test_withdrawn_while_a_claim_of_its_own_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever slept between Redis and MySQL finds the claim gone, and changes nothing: somebody may have bought."""
    shop = open_sale()
    ticket = make_ticket(shop)
    take_out = withdrawing._take_out

    def asleep(**wish: object) -> None:
        take_out(**wish)  # type: ignore[arg-type]
        Bucket.objects.update(claim_until=None)
        rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
        assert "-" in buy(ticket)

    monkeypatch.setattr(withdrawing, "_take_out", asleep)
    assert withdraw(shop) == "it took too long; please try again"
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert_settled_state(shop, sold=1)


def race(shop: Shop, withdraw_it: Callable[[Shop], str], tickets: list[str]) -> tuple[str, list[str]]:
    """First purchases and a withdrawal at once; return what became of each."""

    def act(wish: str) -> str:
        return buy(wish) if wish else withdraw_it(shop)

    *answers, withdrawn = run_together(act, [*tickets, ""])
    return withdrawn, answers


def test_a_first_purchase_and_a_withdrawal_at_once() -> None:
    """Either the purchase wins and the sale stays on, or the withdrawal does and nobody holds anything."""
    ends = set()
    for _ in range(3):
        shop = open_sale()
        withdrawn, answers = race(shop, withdraw, make_tickets(shop, 6))
        ends.add(withdrawn)
        if withdrawn == "withdrawn":
            assert set(answers) == {"NotPreheated"}
            assert_withdrawn(shop)
        else:
            assert withdrawn == str(withdrawing.TOUCHED)
            settle_bucket(bucket=shop.bucket, clock=timezone.now)
            bought = {answer for answer in answers if "-" in answer}
            assert set(Order.objects.filter(sku=shop.item.sku).values_list("number", flat=True)) == bought != set()
            assert_on_sale(shop)
    assert ends <= {"withdrawn", str(withdrawing.TOUCHED)}


def test_control_a_withdrawal_that_asks_mysql_alone_loses_buyers() -> None:
    """Queued in Redis, and not in MySQL yet: it looks untouched, and the buyer who was told "accepted" has nothing."""
    shop = open_sale()
    order_no = buy(make_ticket(shop))
    assert "-" in order_no
    unsafe_withdraw(shop)
    with pytest.raises(GateUnavailable):
        settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert not Order.objects.exists()


def test_the_ledger_says_who() -> None:
    shop = open_sale()
    (person,) = make_buyers(1)
    withdraw_sale(sale_id=shop.sale.pk, clock=timezone.now, actor_id=person.pk)
    rows = StockMovement.objects.filter(reference__startswith="withdraw:").values_list("units", "actor_id", "reason")
    assert sorted(rows) == [(-10, person.pk, "the sale was withdrawn"), (10, person.pk, "the sale was withdrawn")]


def test_withdrawn_before_it_ever_came_into_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Preheated while Redis was away, and taken back before the sweep brought it there: twice, and then it is sold."""
    shop = make_sale()
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(staging, "freeze", out_of_reach)
            with pytest.raises(GateUnavailable):
                preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)
        assert withdraw(shop) == "withdrawn"
        assert_withdrawn(shop)
    preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)
    buy(make_ticket(shop))
    settle_bucket(bucket=shop.bucket, clock=timezone.now)
    assert_settled_state(shop, sold=1)


def out_of_reach(**_: object) -> None:
    raise GateUnavailable("away")
