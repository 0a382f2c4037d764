"""Builds the sales of the sandbox: one pool, one item and one SKU for each outcome."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.db import transaction

from inventory.models import Product, Sku
from inventory.services import receive
from orders.services import move_order
from orders.states import OrderState
from seckill.eligibility import limit_key
from seckill.gate.keys import BucketRef
from seckill.models import FlashSale, SaleItem, SalePool
from seckill.preheat import preheat_sale
from seckill.purchase import purchase
from seckill.settlement import settle_bucket
from seckill.tickets import new_ticket, sign_ticket

Clock = Callable[[], datetime]

PRODUCT = "Sandbox · 沙盒"
RIVAL = "sandbox-rival"
PRICE = Decimal("9.00")
LONG = timedelta(days=30)
LONG_PAY_WINDOW_MINUTES = 30 * 24 * 60


@dataclass(frozen=True, kw_only=True)
class Prop:
    """An item to be: its name is that of the outcome."""

    name: str
    units: int = 100
    limit: int = 1
    price: Decimal = PRICE


def make_sale(
    *,
    name: str,
    props: list[Prop],
    clock: Clock,
    opens_in: timedelta = timedelta(minutes=-1),
    closes_in: timedelta = LONG,
    pay_window_minutes: int = LONG_PAY_WINDOW_MINUTES,
) -> dict[str, SaleItem]:
    """Write a sale with the goods it needs; return its items by name, with pool and sale. Not preheated."""
    now = clock()
    with transaction.atomic(durable=True):
        sale = FlashSale.objects.create(
            name=f"Sandbox: {name}",
            rules="Not for sale: each item answers in its own way.",
            opens_at=now + opens_in,
            closes_at=now + closes_in,
            pay_window_minutes=pay_window_minutes,
        )
        return {prop.name: _make_item(sale=sale, prop=prop, now=now) for prop in props}


def open_sale(
    *,
    name: str,
    props: list[Prop],
    clock: Clock,
    opens_in: timedelta = timedelta(minutes=-1),
    closes_in: timedelta = LONG,
    pay_window_minutes: int = LONG_PAY_WINDOW_MINUTES,
) -> dict[str, SaleItem]:
    """Write a sale and preheat it."""
    made = make_sale(
        name=name,
        props=props,
        clock=clock,
        opens_in=opens_in,
        closes_in=closes_in,
        pay_window_minutes=pay_window_minutes,
    )
    preheat_sale(sale_id=next(iter(made.values())).pool.sale_id, clock=clock)
    return made


def bucket_of_item(item: SaleItem) -> BucketRef:
    """Return the only bucket of an item's pool."""
    return BucketRef(pool_id=item.pool_id, number=0)


def ticket_of(*, item: SaleItem, buyer_id: int, clock: Clock) -> tuple[str, str]:
    """Make a further ticket for a buyer; return it and its order number."""
    buyer = get_user_model().objects.get(pk=buyer_id)
    key = limit_key(buyer=buyer, item=item)
    row = new_ticket(item=item, buyer_id=buyer_id, key=key, open_key=None, now=clock())
    return sign_ticket(order_no=row.order_no, item=item, buyer_id=buyer_id, key=key), row.order_no


def buy(*, item: SaleItem, buyer_id: int, quantity: int, clock: Clock) -> tuple[str, str]:
    """Buy and settle as a client would; return ticket and order number."""
    ticket, order_no = ticket_of(item=item, buyer_id=buyer_id, clock=clock)
    purchase(ticket=ticket, quantity=quantity)
    settle_bucket(bucket=bucket_of_item(item), clock=clock)
    return ticket, order_no


def sell_to_rival(*, item: SaleItem, quantity: int, is_paid: bool, clock: Clock) -> None:
    """Let somebody else have units."""
    _, order_no = buy(item=item, buyer_id=_rival_id(), quantity=quantity, clock=clock)
    if is_paid:
        unpaid, paid = OrderState.PENDING_PAYMENT, OrderState.PAID
        move_order(number=order_no, from_state=unpaid, to_state=paid, now=clock(), reason="sandbox")


def _make_item(*, sale: FlashSale, prop: Prop, now: datetime) -> SaleItem:
    product, _ = Product.objects.get_or_create(name=PRODUCT, defaults={"is_active": False})
    sku, _ = Sku.objects.get_or_create(
        code=f"OUTCOME-{prop.name.upper()}", defaults={"product": product, "name": prop.name, "list_price": PRICE * 2}
    )
    receive(sku_id=sku.pk, units=prop.units, reference=f"sandbox:{sale.pk}:{sku.pk}", now=now)
    pool = SalePool.objects.create(sale=sale, name=prop.name, limit_per_buyer=prop.limit)
    return SaleItem.objects.create(pool=pool, sku=sku, price=prop.price, units=prop.units)


def _rival_id() -> int:
    users = get_user_model().objects
    rival, _ = users.get_or_create(username=RIVAL, defaults={"password": make_password(None)})
    return int(rival.pk)
