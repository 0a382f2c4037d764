"""Recovery without anybody: what opens by itself, what stays shut until somebody decides, and by which door."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from inventory.models import Stock, StockMovement
from inventory.services import receive
from orders.models import Order
from seckill.gate.connection import raw_client
from seckill.models import FlashSale, Incident, RebuildRun, Reservation, SaleItem
from seckill.settlement import settle_bucket
from seckill.sweep import look_over
from seckill.tasks import preheat_due, rebuild_one
from tests.support.shop import Shop, buy, make_sale, make_ticket, make_tickets, open_sale
from tests.support.state import assert_settled_state, numbers


def settle(shop: Shop) -> int:
    return settle_bucket(bucket=shop.bucket, clock=timezone.now).entries


def open_incidents() -> list[str]:
    return sorted(Incident.objects.filter(resolved_at=None).values_list("kind", flat=True))


def lose_and_rebuild(shop: Shop) -> None:
    raw_client().delete(shop.bucket.keys[2])
    look_over(now=timezone.now())
    rebuild_one(shop.bucket.pool_id, 0)


def test_three_rebuilds_by_itself_then_it_stays_shut() -> None:
    shop = open_sale()
    for _ in range(4):
        lose_and_rebuild(shop)
    assert numbers_or_none(shop) is None
    assert RebuildRun.objects.count() == 3
    assert open_incidents() == ["keeps_breaking", "redis_lost"]
    out = StringIO()
    call_command("rebuild", shop.pool.pk, stdout=out)
    assert f"bucket {shop.bucket} is open in epoch 5" in out.getvalue()
    assert open_incidents() == []
    assert_settled_state(shop, sold=0)


def numbers_or_none(shop: Shop) -> object:
    return numbers(shop) if raw_client().exists(*shop.bucket.keys) == 5 else None


def test_after_ten_minutes_it_may_open_by_itself_again() -> None:
    shop = open_sale()
    for _ in range(3):
        lose_and_rebuild(shop)
    RebuildRun.objects.update(created_at=timezone.now() - timedelta(minutes=11))
    lose_and_rebuild(shop)
    assert_settled_state(shop, sold=0)


def test_a_mysql_that_forgot_commits_is_frozen_and_never_a_leak() -> None:
    """A restored MySQL knows 2 of 5 sales: nothing more is sold, and no rebuild makes stock from such books."""
    shop = open_sale(units=5)
    tickets = make_tickets(shop, 6)
    for ticket in tickets[:2]:
        buy(ticket)
    settle(shop)
    remembered = set(Reservation.objects.values_list("order_no", flat=True))
    for ticket in tickets[2:5]:
        buy(ticket)
    settle(shop)
    forget_all_but(remembered, shop)
    assert settle(shop) == 0
    assert numbers(shop).is_frozen
    look_over(now=timezone.now())
    rebuild_one(shop.bucket.pool_id, 0)
    assert numbers(shop).is_frozen
    assert "commits_lost" in open_incidents()
    with pytest.raises(CommandError, match="Redis was told"):
        call_command("rebuild", shop.pool.pk)
    call_command("rebuild", shop.pool.pk, accept_lost_commits=True, stdout=StringIO())
    assert open_incidents() == []
    assert_settled_state(shop, sold=2)
    assert "-" in buy(tickets[5])


def forget_all_but(order_numbers: set[str], shop: Shop) -> None:
    """Take MySQL back to when it had only these orders."""
    gone = Reservation.objects.exclude(order_no__in=order_numbers)
    units = gone.count()
    Order.objects.exclude(number__in=order_numbers).delete()
    gone.delete()
    bucket = shop.item.buckets.get()
    type(bucket).objects.filter(pk=bucket.pk).update(sold=bucket.sold - units)

    StockMovement.objects.filter(kind="SALE").order_by("-pk").first().delete()  # type: ignore[union-attr]


def schedule(*, opens_in: timedelta) -> Shop:
    shop = make_sale(opens_in=opens_in)
    FlashSale.objects.filter(pk=shop.sale.pk).update(state="SCHEDULED")
    return shop


def test_a_scheduled_sale_is_preheated_a_quarter_of_an_hour_before() -> None:
    soon, later = schedule(opens_in=timedelta(minutes=14)), schedule(opens_in=timedelta(minutes=16))
    draft = make_sale(opens_in=timedelta(minutes=5))
    preheat_due()
    states = dict(FlashSale.objects.values_list("pk", "state"))
    assert states == {soon.sale.pk: "PREHEATED", later.sale.pk: "SCHEDULED", draft.sale.pk: "DRAFT"}
    assert buy(make_ticket(soon)) == "NotStarted"


def test_one_that_cannot_be_preheated_holds_up_no_other_and_is_an_incident() -> None:
    broken, sound = schedule(opens_in=timedelta(minutes=9)), schedule(opens_in=timedelta(minutes=9))
    SaleItem.objects.filter(pk=broken.item.pk).update(units=11)
    preheat_due()
    assert FlashSale.objects.get(pk=sound.sale.pk).state == "PREHEATED"
    assert open_incidents() == ["not_preheated"]
    assert "needs 11 units, the warehouse has 10" in Incident.objects.get().detail
    receive(sku_id=broken.item.sku_id, units=1, reference="one more", now=timezone.now())
    preheat_due()
    assert open_incidents() == []
    assert Stock.objects.get(sku_id=broken.item.sku_id).on_hand == 0


def test_early_on_there_is_time_and_no_incident() -> None:
    broken = schedule(opens_in=timedelta(minutes=14))
    SaleItem.objects.filter(pk=broken.item.pk).update(units=11)
    preheat_due()
    assert not Incident.objects.exists()


def test_rebuild_by_hand_of_what_is_not_on_sale_is_explained() -> None:
    with pytest.raises(CommandError, match="bucket 999:0 is not on sale"):
        call_command("rebuild", 999)
