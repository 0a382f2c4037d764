"""Builders: a preheated sale, buyers and tickets, in few lines and few statements."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import count

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.utils import timezone

from inventory.models import Product, Sku
from inventory.services import receive
from seckill.errors import GateUnavailable, PurchaseRefused
from seckill.gate.keys import BucketRef
from seckill.models import FlashSale, SaleItem, SalePool, Ticket
from seckill.order_numbers import new_order_number
from seckill.placing import place_of
from seckill.preheat import preheat_sale
from seckill.purchase import purchase
from seckill.tickets import sign_ticket

_numbers = count(1)
REPEATS_MAX = 200


@dataclass(frozen=True, kw_only=True)
class Shop:
    """One pool on sale: its items and its buckets, of which most tests have one."""

    sale: FlashSale
    pool: SalePool
    items: list[SaleItem]

    @property
    def item(self) -> SaleItem:
        """The first item."""
        return self.items[0]

    @property
    def bucket(self) -> BucketRef:
        """The pool's first bucket."""
        return BucketRef(pool_id=self.pool.pk, number=0)

    @property
    def buckets(self) -> list[BucketRef]:
        """All the pool's buckets."""
        return [BucketRef(pool_id=self.pool.pk, number=number) for number in range(self.pool.bucket_count)]


def make_sale(
    *,
    units: int = 10,
    limit: int = 1,
    items: int = 1,
    opens_in: timedelta = timedelta(minutes=-1),
    closes_in: timedelta = timedelta(hours=1),
    max_queue: int = 20_000,
    buckets: int = 1,
) -> Shop:
    """Make a sale of new SKUs with just enough stock, not yet preheated."""
    now = timezone.now()
    sale = FlashSale.objects.create(name="秒杀 sale", opens_at=now + opens_in, closes_at=now + closes_in)
    pool = SalePool.objects.create(sale=sale, limit_per_buyer=limit, max_queue=max_queue, bucket_count=buckets)
    product = Product.objects.create(name="飞天茅台 53°")
    made = []
    for _ in range(items):
        number = next(_numbers)
        sku = Sku.objects.create(product=product, code=f"SKU-{number}", name="500 ml", list_price=Decimal("2999.00"))
        receive(sku_id=sku.pk, units=units, reference=f"receipt:{number}:{sku.pk}", now=now)
        made.append(SaleItem.objects.create(pool=pool, sku=sku, price=Decimal("1499.00"), units=units))
    return Shop(sale=sale, pool=pool, items=made)


def open_sale(
    *,
    units: int = 10,
    limit: int = 1,
    items: int = 1,
    opens_in: timedelta = timedelta(minutes=-1),
    closes_in: timedelta = timedelta(hours=1),
    max_queue: int = 20_000,
    buckets: int = 1,
) -> Shop:
    """Make a sale and preheat it."""
    shop = make_sale(
        units=units,
        limit=limit,
        items=items,
        opens_in=opens_in,
        closes_in=closes_in,
        max_queue=max_queue,
        buckets=buckets,
    )
    preheat_sale(sale_id=shop.sale.pk, clock=timezone.now)
    return shop


def make_buyers(number: int) -> list[User]:
    """Make buyers with unusable passwords."""
    names = [f"buyer-{next(_numbers)}" for _ in range(number)]
    password = make_password(None)
    User.objects.bulk_create(User(username=name, password=password) for name in names)
    return list(User.objects.filter(username__in=names).order_by("pk"))


def make_tickets(shop: Shop, number: int, *, item: SaleItem | None = None) -> list[str]:
    """Make one ticket each for ``number`` new buyers."""
    return [ticket_of(shop, buyer, item=item) for buyer in make_buyers(number)]


def make_ticket(shop: Shop) -> str:
    """Make a ticket for one new buyer."""
    return ticket_of(shop, make_buyers(1)[0])


def ticket_of(
    shop: Shop,
    buyer: User,
    *,
    item: SaleItem | None = None,
    key: str | None = None,
    order_no: str | None = None,
    issued_at: datetime | None = None,
) -> str:
    """Make a further ticket for a buyer, whatever he already has."""
    chosen = SaleItem.objects.select_related("pool__sale").get(pk=(item or shop.item).pk)
    limit_key = key or str(buyer.pk)
    number = order_no or new_order_number(_place(shop, limit_key))
    Ticket.objects.create(
        order_no=number,
        pool_id=shop.pool.pk,
        item_id=chosen.pk,
        buyer_id=buyer.pk,
        limit_key=limit_key,
        issued_at=issued_at or timezone.now(),
    )
    return sign_ticket(order_no=number, item=chosen, buyer_id=buyer.pk, key=limit_key)


def buy(ticket: str, quantity: int = 1) -> str:
    """Purchase as a client does, repeating on 503; return the order number or the name of the refusal."""
    for _ in range(REPEATS_MAX):
        try:
            return purchase(ticket=ticket, quantity=quantity).order_no
        except GateUnavailable:
            continue
        except PurchaseRefused as refusal:
            return type(refusal).__name__
    raise AssertionError("the gate stayed unavailable")


def _place(shop: Shop, key: str) -> BucketRef:
    return shop.bucket if shop.pool.bucket_count == 1 else place_of(pool_id=shop.pool.pk, key=key)
