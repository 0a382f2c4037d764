"""Public failures that no other test tells as a whole; ``docs/cases.md`` says for each case which tests show it."""

import subprocess
import sys
from datetime import timedelta

import pytest
from django.apps import apps
from django.db import connection
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from benchmarks.servers import PrivateServers
from config.celery import app
from inventory.models import Product
from orders.models import Order
from orders.services import expire_orders
from seckill.gate import gate
from seckill.gate.connection import raw_client
from seckill.mending import Extent
from seckill.models import DeadLetter, FlashSale, Repair, Reservation
from seckill.order_numbers import new_order_number
from seckill.rebuild import rebuild_bucket
from seckill.repair import reconcile_and_repair
from seckill.settlement import settle_bucket
from tests.plugin import ROOT
from tests.support.shop import Shop, buy, make_buyers, make_ticket, make_tickets, open_sale, ticket_of
from tests.support.state import assert_settled_state, dump, numbers
from tests.support.threads import run_together


def settle(shop: Shop) -> None:
    settle_bucket(bucket=shop.bucket, clock=timezone.now)


def put_by_hand(shop: Shop, **wish: object) -> str:
    """Reserve past the ticket's checks, as a shop with a bug would; return the order number."""
    order_no = new_order_number(shop.bucket)
    usual: dict[str, object] = {
        "bucket": shop.bucket,
        "order_no": order_no,
        "item_id": shop.item.pk,
        "buyer_id": 7,
        "limit_key": "7",
        "quantity": 1,
        "price": "1499.00",
        "ticket_expires_ms": 4_000_000_000_000,
    }
    assert gate.reserve(**usual | wish).number == 0  # type: ignore[arg-type]
    return order_no


def test_case_04_settings_saved_meanwhile_push_no_expiry_away() -> None:
    """An order's time stands with the order: whatever is saved later, it runs out when its buyer was told it would."""
    shop = open_sale()
    buy(make_ticket(shop))
    settle(shop)
    due = Order.objects.get().pay_by_at
    for minutes in (60, 600):
        FlashSale.objects.update(pay_window_minutes=minutes)
        assert expire_orders(now=due - timedelta(seconds=1), batch_size=10) == 0
    assert expire_orders(now=due, batch_size=10) == 1


@pytest.mark.slow
def test_case_06_a_second_web_process_writes_nothing(servers: PrivateServers) -> None:
    shop = open_sale(units=10)
    buy(make_ticket(shop))
    before = dump(shop.bucket)
    environment = servers.environment()
    base, _, _ = environment["DATABASE_URL"].rpartition("/")
    environment["DATABASE_URL"] = f"{base}/{connection.settings_dict['NAME']}"
    command = [sys.executable, "-c", "import config.asgi"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=60, capture_output=True)
    assert dump(shop.bucket) == before
    assert numbers(shop).left == {shop.item.pk: 9}


def test_case_18_a_refusal_at_the_memory_limit_is_whole() -> None:
    """Half a release frees the buyer and not the unit. Here it is one script, repeated until it has succeeded."""
    shop = open_sale(units=5)
    (buyer,) = make_buyers(1)
    buy(make_ticket(shop))
    for _ in range(2):
        buy(ticket_of(shop, buyer))
        raw_client().hdel(shop.bucket.keys[2], str(buyer.pk))
    raw_client().config_set("maxmemory", 1)
    try:
        settle(shop)
    finally:
        raw_client().config_set("maxmemory", 0)
    settle(shop)
    assert sorted(Reservation.objects.values_list("state", flat=True)) == ["REFUSED", "SETTLED", "SETTLED"]
    reconcile_and_repair(bucket=shop.bucket, clock=timezone.now, extent=Extent.FULL)
    assert_settled_state(shop, sold=2)


def test_case_28_reconciled_four_times_at_once() -> None:
    """Effects as from one run: what is too much goes once, a lost mark is set once."""
    shop = open_sale(units=10, limit=3)
    buy(make_ticket(shop), 2)
    settle(shop)
    buyer = Reservation.objects.get().limit_key
    raw_client().hincrby(shop.bucket.keys[0], f"{shop.item.pk}:left", 3)
    raw_client().hdel(shop.bucket.keys[2], buyer)
    run_together(lambda _: reconcile_and_repair(bucket=shop.bucket, clock=timezone.now), range(4))
    assert list(Repair.objects.filter(outcome="DONE").values_list("delta", flat=True)) == [-3]
    assert_settled_state(shop, sold=2)


def test_case_29_everything_periodic_goes_by_intervals() -> None:
    """No crontab, whose zone somebody could get wrong; and each run looks in MySQL for what is due by now."""
    ours = [task for task in PeriodicTask.objects.all() if not task.task.startswith("celery.")]
    assert len(ours) > 5
    assert all(task.interval is not None and task.crontab is None and task.expire_seconds for task in ours)


def test_case_30_results_are_kept_nowhere() -> None:
    """Nobody polls a message: what became of an order stands in Redis and MySQL, under its number."""
    app.loader.import_default_modules()
    ours = [
        task for name, task in app.tasks.items() if name.partition(".")[0] in {a.label for a in apps.get_app_configs()}
    ]
    assert len(ours) > 5
    assert all(task.ignore_result for task in ours if not task.name.startswith("celery."))
    assert app.conf.result_backend is None


def test_case_32_every_entry_of_a_batch_has_a_known_outcome() -> None:
    """Beside two sound ones: no such buyer, a key too long for its column, more than the limit, text of four bytes."""
    shop = open_sale(units=20, limit=3)
    sound = [buy(ticket, 2) for ticket in make_tickets(shop, 2)]
    no_buyer = put_by_hand(shop, buyer_id=10**9, limit_key="none")
    put_by_hand(shop, limit_key="k" * 65)
    (buyer,) = make_buyers(1)
    emoji = put_by_hand(shop, buyer_id=buyer.pk, limit_key="家庭-🏠")
    settle(shop)
    fates = dict(Reservation.objects.values_list("order_no", "state"))
    assert fates == dict.fromkeys([*sound, emoji], "SETTLED") | {no_buyer: "REFUSED"}
    assert DeadLetter.objects.count() == 1
    assert set(Order.objects.values_list("number", flat=True)) == {*sound, emoji}
    assert numbers(shop).left == {shop.item.pk: 20 - 5 - 1}  # the dead letter's unit waits for its proof
    rebuild_bucket(bucket=shop.bucket, clock=timezone.now)
    assert_settled_state(shop, sold=5)


def test_case_37_names_of_any_alphabet() -> None:
    name = "飞天茅台 53° 🍶 أهلا"
    Product.objects.create(name=name)
    assert Product.objects.filter(name=name).count() == 1
