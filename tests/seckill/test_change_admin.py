"""The pages of changes on sale: asked for, approved by another, applied at once, and the reconciliation shown."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from seckill.change_tables import ItemAdjustment, WindowChange
from seckill.followup import follow_up
from seckill.models import FlashSale, ItemBucket, SaleItem
from seckill.reconciliation import reconcile_bucket
from tests.support.desk import cells
from tests.support.people import person
from tests.support.shop import buy, make_sale, make_ticket, make_tickets, open_sale
from tests.support.state import numbers


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def url(table: type, page: str, *args: object) -> str:
    return reverse(f"admin:seckill_{table.__name__.lower()}_{page}", args=args)


def approve(table: type, pk: int) -> int:
    decider = browser(person(f"approve_{table.__name__.lower()}"))
    return decider.post(url(table, "decide", pk), {"decision": "approve", "reason": "seen"}).status_code


def test_fewer_units_by_two_desks() -> None:
    shop = open_sale(units=10)
    clerk = browser(person("add_itemadjustment"))
    wish = {"item": shop.item.pk, "delta": "-4", "counterpart": "WAREHOUSE", "reason": "damaged in transport"}
    assert clerk.post(url(ItemAdjustment, "add"), wish).status_code == 302
    change = ItemAdjustment.objects.get()
    assert ItemBucket.objects.get().allocated == 10
    assert approve(ItemAdjustment, change.pk) == 302
    assert (ItemBucket.objects.get().allocated, numbers(shop).left) == (6, {shop.item.pk: 6})
    follow_up(clock=timezone.now)
    reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    html = clerk.get(url(ItemAdjustment, "changelist")).content.decode()
    assert cells(html, "reconciled") == ["balanced"]
    assert clerk.get(url(ItemAdjustment, "change", change.pk)).status_code == 200


def test_what_is_not_possible_is_told_with_what_is() -> None:
    shop = open_sale(units=10)
    for ticket in make_tickets(shop, 3):
        buy(ticket)
    clerk = browser(person("add_itemadjustment"))
    wish = {"item": shop.item.pk, "delta": "-8", "counterpart": "OUTSIDE", "reason": "damaged in transport"}
    clerk.post(url(ItemAdjustment, "add"), wish)
    change = ItemAdjustment.objects.get()
    assert approve(ItemAdjustment, change.pk) == 302
    assert "possible now: -7" in clerk.get(url(ItemAdjustment, "change", change.pk)).content.decode()


def test_only_items_and_sales_in_redis_are_offered() -> None:
    """Before preheat both are changed on their own pages."""
    draft = make_sale()
    clerk = browser(person("add_itemadjustment", "add_windowchange"))
    wish = {"item": draft.item.pk, "delta": "-4", "counterpart": "WAREHOUSE", "reason": "damaged"}
    assert clerk.post(url(ItemAdjustment, "add"), wish).status_code == 200
    window = {"sale": draft.sale.pk, "opens_at_0": "2030-01-01", "opens_at_1": "10:00", "reason": "later"}
    window |= {"closes_at_0": "2030-01-01", "closes_at_1": "12:00"}
    assert clerk.post(url(WindowChange, "add"), window).status_code == 200
    assert not ItemAdjustment.objects.exists()
    assert not WindowChange.objects.exists()


def test_a_window_by_two_desks() -> None:
    shop = open_sale(opens_in=timedelta(hours=1), closes_in=timedelta(hours=2))
    clerk = browser(person("add_windowchange"))
    day = (timezone.now() + timedelta(days=2)).date().isoformat()
    window = {"sale": shop.sale.pk, "opens_at_0": day, "opens_at_1": "10:00", "reason": "the goods are late"}
    window |= {"closes_at_0": day, "closes_at_1": "12:00"}
    assert clerk.post(url(WindowChange, "add"), window).status_code == 302
    change = WindowChange.objects.get()
    assert approve(WindowChange, change.pk) == 302
    assert FlashSale.objects.get().opens_at == change.opens_at
    assert (WindowChange.objects.get().state, numbers(shop).window_no) == ("APPLIED", 1)
    reconcile_bucket(bucket=shop.bucket, clock=timezone.now)
    html = clerk.get(url(WindowChange, "changelist")).content.decode()
    assert cells(html, "reconciled") == [f"{shop.bucket}: balanced"]


def test_a_sale_is_withdrawn_on_request_and_a_bought_one_is_not() -> None:
    untouched, bought = open_sale(), open_sale()
    buy(make_ticket(bought))
    owner = browser(User.objects.create_superuser("owner"))
    items = [untouched.item.pk, bought.item.pk]
    page = owner.post(
        url(SaleItem, "changelist"),
        {"action": "withdraw", "_selected_action": items, "reason": "the price is wrong"},
        follow=True,
    )
    told = [(message.level_tag, message.message) for message in page.context["messages"]]
    assert told == [
        ("success", f"sale {untouched.sale.pk}: done"),
        ("error", f"sale {bought.sale.pk}: somebody has reserved something already; pause it, or let it end"),
    ]
    assert list(FlashSale.objects.order_by("pk").values_list("state", flat=True)) == ["DRAFT", "PREHEATED"]
