"""What a shop needs before it can open: tables, goods in the warehouse, and a sale. Needs Django set up.

Everything can be done again in the same database: goods, receipts and accounts are made once, a sale is a new one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from inventory.models import Product, Sku, Stock, StockMovement
from inventory.services import receive
from seckill.gate.keys import BucketRef
from seckill.models import FlashSale, SaleItem, SalePool
from seckill.states import SaleState

RECEIVED_UNITS = 500
SALE_LASTS = timedelta(hours=1)
FLASH_PRICE_FACTOR = Decimal("0.6")


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A SKU to be."""

    code: str
    name: str
    list_price: Decimal


PRODUCTS: dict[str, tuple[Variant, ...]] = {
    "无线降噪耳机 · Wireless noise-cancelling headphones": (
        Variant(code="HP-700-BLK", name="曜石黑 · Obsidian", list_price=Decimal("1299.00")),
        Variant(code="HP-700-WHT", name="月光白 · Moonlight", list_price=Decimal("1299.00")),
    ),
    "智能手机 · Smartphone N12": (
        Variant(code="PH-N12-256", name="256 GB", list_price=Decimal("4599.00")),
        Variant(code="PH-N12-512", name="512 GB", list_price=Decimal("5299.00")),
    ),
    "机械键盘 · Mechanical keyboard": (
        Variant(code="KB-87-RED", name="87 键 红轴 · 87 keys, linear", list_price=Decimal("399.00")),
        Variant(code="KB-87-BRN", name="87 键 茶轴 · 87 keys, tactile", list_price=Decimal("399.00")),
    ),
    "明前龙井 · Longjing green tea, first picking": (
        Variant(code="TEA-LJ-100", name="100 克 · 100 g", list_price=Decimal("268.00")),
        Variant(code="TEA-LJ-250", name="250 克 · 250 g", list_price=Decimal("598.00")),
    ),
    "跑步鞋 · Running shoes": (
        Variant(code="SH-RUN-40", name="40 码 · EU 40", list_price=Decimal("699.00")),
        Variant(code="SH-RUN-42", name="42 码 · EU 42", list_price=Decimal("699.00")),
        Variant(code="SH-RUN-44", name="44 码 · EU 44", list_price=Decimal("699.00")),
    ),
    "手冲咖啡壶 · Pour-over kettle": (
        Variant(code="KT-600-STL", name="600 毫升 不锈钢 · 600 ml, steel", list_price=Decimal("219.00")),
    ),
    "酱香型白酒 53° · Sauce-aroma baijiu, 53 %": (
        Variant(code="BJ-500", name="500 毫升 · 500 ml", list_price=Decimal("1499.00")),
    ),
    "家用游戏机 · Game console": (
        Variant(code="GC-DIGITAL", name="数字版 · Digital edition", list_price=Decimal("2899.00")),
        Variant(code="GC-DISC", name="光驱版 · With disc drive", list_price=Decimal("3499.00")),
    ),
    "自动机械腕表 · Automatic watch": (
        Variant(code="WT-40-BLU", name="40 毫米 蓝盘 · 40 mm, blue dial", list_price=Decimal("3980.00")),
    ),
}
# In the order of the products.
PICTURES = ("headphones", "phone", "keyboard", "tea", "sneakers", "kettle", "liquor", "console", "watch")
RULES = """One unit a buyer. Get your ticket before the opening; buying is one call then.
Pay within the pay window, or the unit goes on sale again.
每人限购一件。请在开抢前领取购买资格；超时未支付，名额将重新放出。"""
RULES_OF_PICKS = """Pay within the pay window, or the unit goes on sale again.
超时未支付，名额将重新放出。"""
TODAY = "今日精选 · Today's picks"
ON_SALE = "PH-N12-256"


@dataclass(frozen=True, kw_only=True)
class OpenedSale:
    """A sale of one item in a pool of its own, with a limit of one unit a buyer."""

    sale_id: int
    item_id: int
    item_name: str
    bucket: BucketRef
    units: int
    opens_at: datetime


def migrate() -> None:
    """Bring the tables up to date."""
    call_command("migrate", verbosity=0)


def stock_catalogue() -> None:
    """Write the products that are not there yet and receive goods for each SKU, once."""
    now = timezone.now()
    for (name, variants), picture in zip(PRODUCTS.items(), PICTURES, strict=True):
        product, _ = Product.objects.update_or_create(name=name, defaults={"picture": f"pictures/{picture}.svg"})
        for variant in variants:
            sku, _ = Sku.objects.get_or_create(
                code=variant.code,
                defaults={"product": product, "name": variant.name, "list_price": variant.list_price},
            )
            _receive_once(sku_id=sku.pk, units=RECEIVED_UNITS, reference=f"catalogue:{variant.code}", now=now)


def schedule_sale(*, name: str, units: int, opens_at: datetime) -> OpenedSale:
    """Write a draft sale that waits for its preheat; the warehouse is filled up if it has not the units."""
    now = timezone.now()
    sku = Sku.objects.select_related("product").get(code=ON_SALE)
    with transaction.atomic():
        sale = FlashSale.objects.create(name=name, rules=RULES, opens_at=opens_at, closes_at=opens_at + SALE_LASTS)
        pool = SalePool.objects.create(sale=sale, name=sku.product.name[:100], limit_per_buyer=1)
        price = (sku.list_price * FLASH_PRICE_FACTOR).quantize(Decimal("0.01"))
        item = SaleItem.objects.create(pool=pool, sku=sku, price=price, units=units)
        _fill_up(sku=sku, units=units, sale=sale, now=now)
    return OpenedSale(
        sale_id=sale.pk,
        item_id=item.pk,
        item_name=f"{sku.product.name}, {sku.name}",
        bucket=BucketRef(pool_id=pool.pk, number=0),
        units=units,
        opens_at=opens_at,
    )


def dress_windows(*, now: datetime) -> FlashSale | None:
    """Write what else a shop shows: a sale to come, and one of today, to be preheated; None if that is there."""
    if FlashSale.objects.filter(name=TODAY, closes_at__gt=now).exists():
        return None
    come = now.replace(hour=12, minute=0, second=0, microsecond=0) + timedelta(days=1)
    shoes = _plan(name="明晚开抢 · Tomorrow night", opens_at=come, closes_at=come + SALE_LASTS)
    _offer(shoes, codes=("SH-RUN-40", "SH-RUN-42", "SH-RUN-44"), units=50, limit=1)
    FlashSale.objects.filter(pk=shoes.pk).update(state=SaleState.SCHEDULED)
    today = _plan(name=TODAY, opens_at=now, closes_at=now + timedelta(hours=8))
    for code, units in (("HP-700-BLK", 60), ("TEA-LJ-100", 80), ("KT-600-STL", 30)):
        _offer(today, codes=(code,), units=units, limit=2)
    return today


def _plan(*, name: str, opens_at: datetime, closes_at: datetime) -> FlashSale:
    return FlashSale.objects.create(name=name, rules=RULES_OF_PICKS, opens_at=opens_at, closes_at=closes_at)


def _offer(sale: FlashSale, *, codes: Sequence[str], units: int, limit: int) -> None:
    """Put variants into one pool of a sale, at the flash price."""
    skus = Sku.objects.filter(code__in=codes).select_related("product").order_by("pk")
    pool = SalePool.objects.create(sale=sale, name=skus[0].product.name[:100], limit_per_buyer=limit)
    for sku in skus:
        price = (sku.list_price * FLASH_PRICE_FACTOR).quantize(Decimal("0.01"))
        SaleItem.objects.create(pool=pool, sku=sku, price=price, units=units)
        _fill_up(sku=sku, units=units, sale=sale, now=timezone.now())


def _fill_up(*, sku: Sku, units: int, sale: FlashSale, now: datetime) -> None:
    """Receive what the warehouse lacks for a sale."""
    missing = units - Stock.objects.get(sku=sku).on_hand
    if missing > 0:
        _receive_once(sku_id=sku.pk, units=missing, reference=f"for-sale:{sale.pk}:{sku.pk}", now=now)


def _receive_once(*, sku_id: int, units: int, reference: str, now: datetime) -> None:
    if not StockMovement.objects.filter(reference=reference).exists():
        receive(sku_id=sku_id, units=units, reference=reference, now=now)
