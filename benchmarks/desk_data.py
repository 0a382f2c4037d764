"""A shop with years behind it, written by the database itself: a million buyers, 100,000 orders, and what they left.

Rows are made by ``INSERT … SELECT`` from a table of numbers, some ten thousand a statement; the marks in Redis are
written in bulk. Needs Django set up and an empty, migrated database.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, models
from django.utils import timezone

from inventory.models import Product, Sku, Stock, StockAdjustment, StockMovement
from orders.models import Order, OrderEvent, Payment, PaymentAttempt, Refund
from seckill.alert_tables import Alert, AlertDelivery
from seckill.archive_tables import ArchiveRun, BuyerArchive
from seckill.change_tables import ItemAdjustment
from seckill.gate.connection import raw_client
from seckill.gate.keys import BucketRef
from seckill.models import (
    DeadLetter,
    FlashSale,
    Incident,
    ItemBucket,
    RebuildRun,
    ReconciliationRun,
    Repair,
    Reservation,
    SaleItem,
    SalePool,
    Ticket,
)
from seckill.preheat import preheat_sale
from seckill.sample_tables import ItemSample

CHUNK = 50_000
SIDE = 1_000
MARKS_CHUNK = 5_000
OLD_SALES = 400
POOL = "Desk pool"
NUMBERS = {"allocated": 10, "sold": 5, "left": 5, "in_flight": 0, "owed": 0, "adjusting": 0, "drift": 0}
MEMBERS = {"looked_at": 4_000, "is_complete": False, "differ": 0, "findings": []}


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much there shall be; ``many`` is each kind of row that an evening of trouble makes."""

    buyers: int
    orders: int
    ledger: int
    many: int

    @classmethod
    def of(cls, *, buyers: int, orders: int) -> "Sizes":
        """Sizes that fit so many buyers and orders."""
        return cls(buyers=buyers, orders=orders, ledger=buyers, many=max(200, orders // 20))


@dataclass(frozen=True, kw_only=True)
class DeskData:
    """What was made, for whoever opens pages about it."""

    sale_id: int
    pool_id: int
    item_id: int
    sku_id: int
    bucket: BucketRef
    order_no: str
    buyer_id: int


def make(sizes: Sizes) -> DeskData:
    """Make all of it; takes a minute for a million buyers."""
    with _numbers():
        first = _people(sizes)
        item, bucket = _sale(sizes)
        _tickets(sizes, item=item, first=first)
        _orders(sizes, item=item, bucket=bucket, first=first)
        _money(sizes, item=item)
        _ledger(sizes, item=item)
        _evening(sizes, item=item, first=first)
    _marks(sizes, bucket=bucket, item_id=item.pk, first=first)
    return found()


def found() -> DeskData:
    """What an earlier run has made."""
    item = SaleItem.objects.select_related("pool").get(pool__name=POOL)
    return DeskData(
        sale_id=item.pool.sale_id,
        pool_id=item.pool_id,
        item_id=item.pk,
        sku_id=item.sku_id,
        bucket=BucketRef(pool_id=item.pool_id, number=0),
        order_no=Order.objects.order_by("pk").values_list("number", flat=True)[0],
        buyer_id=User.objects.get(username="crowd-0000001").pk,
    )


@contextmanager
def _numbers() -> Iterator[None]:
    """A table of 0 to 999; joined with itself it has a million rows. Not a temporary one: MySQL joins none twice."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS bench_numbers (n INT PRIMARY KEY)")
        cursor.execute("DELETE FROM bench_numbers")
        cursor.executemany("INSERT INTO bench_numbers VALUES (%s)", [(n,) for n in range(SIDE)])
        try:
            yield
        finally:
            cursor.execute("DROP TABLE bench_numbers")


def insert(model: type[models.Model], rows: int, /, **columns: str) -> int:
    """Insert so many rows; a column is an expression in ``n``, 1 to ``rows``, or has its default.

    Return the key of the first: the keys have no gaps.
    """
    filled = {_column(model, name): expression.replace("%", "%%") for name, expression in columns.items()}
    key = model._meta.pk
    last = 0
    if isinstance(key, models.AutoField):
        last = model._default_manager.aggregate(last=models.Max("pk"))["last"] or 0
        filled[_column(model, key.name)] = f"{last} + n"
    constants: list[Any] = []
    for field in model._meta.concrete_fields:
        if (column := _column(model, field.name)) not in filled:
            filled[column] = "%s"
            constants.append(_constant(field))
    names = ", ".join(f"`{name}`" for name in filled)
    statement = (
        f"INSERT INTO `{model._meta.db_table}` ({names}) SELECT {', '.join(filled.values())} FROM "  # noqa: S608  ours
        f"(SELECT a.n * {SIDE} + b.n + 1 AS n FROM bench_numbers a CROSS JOIN bench_numbers b"
        " WHERE a.n * 1000 + b.n >= %s AND a.n * 1000 + b.n < %s AND a.n >= %s AND a.n <= %s) numbers"
    )
    with connection.cursor() as cursor:
        for start in range(0, rows, CHUNK):
            end = min(start + CHUNK, rows)
            cursor.execute(statement, [*constants, start, end, start // SIDE, (end - 1) // SIDE])
    return int(last) + 1


def _column(model: type[models.Model], name: str) -> str:
    return str(model._meta.get_field(name).column)  # type: ignore[union-attr]


def _constant(field: Any) -> Any:
    """What a row has where nothing was said."""
    if field.has_default():
        return field.get_db_prep_save(field.get_default(), connection)
    if field.null:
        return None
    return _now() if isinstance(field, models.DateTimeField) else field.get_db_prep_save("", connection)


def _now() -> Any:
    return timezone.now().replace(tzinfo=None)


def _ago(minutes: str) -> str:
    """An instant so many minutes ago, as an expression."""
    return f"DATE_SUB('{_now():%Y-%m-%d %H:%M:%S}', INTERVAL ({minutes}) MINUTE)"


def _people(sizes: Sizes) -> int:
    """The buyers; return the key of the first."""
    return insert(
        User,
        sizes.buyers,
        username="CONCAT('crowd-', LPAD(n, 7, '0'))",
        email="CONCAT('crowd-', LPAD(n, 7, '0'), '@example.com')",
        first_name="CONCAT('Name ', n % 1000)",
        password="'!'",  # noqa: S106  nobody's
        is_active="1",
        date_joined=_ago("n % 500000"),
    )


def _sale(sizes: Sizes) -> tuple[SaleItem, BucketRef]:
    """A catalogue, old sales, and one sale that is on with units for everybody."""
    first = insert(Product, 300, name="CONCAT('Product ', n)", is_active="1", created_at=_ago("n"))
    sku_1 = insert(
        Sku, 1_000, product=f"{first} + n % 300", code="CONCAT('DESK-', n)", name="CONCAT('Size ', n)", list_price="99"
    )
    insert(Stock, 1_000, sku=f"{sku_1} + n - 1", on_hand="100")
    sale_1 = insert(
        FlashSale,
        OLD_SALES,
        name="CONCAT('Old sale ', n)",
        state="'ARCHIVED'",
        opens_at=_ago("n * 1440"),
        closes_at=_ago("n * 1440 - 60"),
    )
    pool_1 = insert(SalePool, OLD_SALES, sale=f"{sale_1} + n - 1", name="CONCAT('Old pool ', n)")
    insert(SaleItem, OLD_SALES, pool=f"{pool_1} + n - 1", sku=f"{sku_1} + n", price="50", units="10")
    now = timezone.now()
    sale = FlashSale.objects.create(
        name="Desk sale", opens_at=now - timedelta(minutes=5), closes_at=now + timedelta(hours=2)
    )
    pool = SalePool.objects.create(sale=sale, name=POOL, limit_per_buyer=1, max_queue=sizes.buyers)
    units = sizes.buyers + 1_000
    Stock.objects.filter(pk=sku_1).update(on_hand=units)
    item = SaleItem.objects.create(pool=pool, sku_id=sku_1, price=50, units=units)
    preheat_sale(sale_id=sale.pk, clock=timezone.now)
    return item, BucketRef(pool_id=pool.pk, number=0)


def _number(pool_id: int) -> str:
    """The n-th order number in the form of a real one."""
    return f"CONCAT('{pool_id}-0-', REPLACE(REPLACE(LPAD(CONV(n, 10, 8), 16, '0'), '0', 'a'), '1', 'b'))"


def _tickets(sizes: Sizes, *, item: SaleItem, first: int) -> None:
    insert(
        Ticket,
        sizes.buyers,
        order_no=_number(item.pool_id),
        pool=str(item.pool_id),
        item=str(item.pk),
        buyer=f"{first} + n - 1",
        limit_key=f"{first} + n - 1",
        open_key=f"CONCAT({first} + n - 1, ':', {item.pk})",
        issued_at=_ago("5"),
    )


def _orders(sizes: Sizes, *, item: SaleItem, bucket: BucketRef, first: int) -> None:
    """Six of ten are paid, two have expired, one was cancelled, one waits."""
    state = (
        "ELT(1 + n % 10, 'PENDING_PAYMENT','PAID','PAID','PAID','PAID','PAID','PAID','EXPIRED','EXPIRED','CANCELLED')"
    )
    insert(
        Reservation,
        sizes.orders,
        order_no=_number(item.pool_id),
        pool=str(item.pool_id),
        bucket_no="0",
        item=str(item.pk),
        buyer=f"{first} + n - 1",
        limit_key=f"{first} + n - 1",
        quantity="1",
        unit_price="50",
        epoch="1",
        seq="n",
        state="IF(n % 10 IN (7, 8, 9), 'RETURNED', 'SETTLED')",
        created_at=_ago("4"),
    )
    order_1 = insert(
        Order,
        sizes.orders,
        number=_number(item.pool_id),
        buyer=f"{first} + n - 1",
        sku=str(item.sku_id),
        quantity="1",
        unit_price="50",
        state=state,
        units_to="'ON_SALE'",
        created_at=_ago("4"),
        pay_by_at=_ago("n % 60 - 30"),
        closed_at=f"IF(n % 10 IN (7, 8, 9), {_ago('3')}, NULL)",
    )
    insert(
        OrderEvent,
        sizes.orders,
        order=f"{order_1} + n - 1",
        from_state="'PENDING_PAYMENT'",
        to_state=f"IF(n % 10 = 0, 'PAID', {state})",
        created_at=_ago("3"),
    )
    sold = Reservation.objects.filter(state="SETTLED").count()
    ItemBucket.objects.filter(item_id=item.pk).update(sold=sold)
    stock, gate, *_ = bucket.keys
    raw_client().hincrby(stock, f"{item.pk}:left", -sold)
    raw_client().hset(gate, mapping={"seq": sizes.orders, "settled_seq": sizes.orders})


def _money(sizes: Sizes, *, item: SaleItem) -> None:
    """A payment for each second order, some of them unwelcome, and refunds of some."""
    order_1, count = Order.objects.order_by("pk").values_list("pk", flat=True)[0], sizes.orders // 2
    money = {"provider": "'sandbox'", "amount": "50", "created_at": _ago("n % 200"), "updated_at": _ago("n % 200")}
    insert(PaymentAttempt, count, order=f"{order_1} + n - 1", reference="CONCAT('att-', n)", state="'PAID'", **money)
    payment_1 = insert(
        Payment,
        count,
        order=f"{order_1} + n - 1",
        pays=f"IF(n % 50 = 0, NULL, {order_1} + n - 1)",
        provider_reference="CONCAT('pay-', n)",
        order_reference=_number(item.pool_id),
        refunding="IF(n % 100 = 1, 10, 0)",
        state="IF(n % 50 = 0, 'REFUND_DUE', 'ACCEPTED')",
        problem="IF(n % 50 = 0, 'CLOSED_ORDER', '')",
        **money,
    )
    insert(
        Refund,
        count // 100,
        payment=f"{payment_1} + n * 100 - 100",
        reference="CONCAT('ref-', n)",
        amount="10",
        reason="'GOODWILL'",
        units_to="'NOWHERE'",
        state="'DONE'",
        created_at=_ago("n"),
        updated_at=_ago("n"),
    )


def _ledger(sizes: Sizes, *, item: SaleItem) -> None:
    """Rows of items' accounts, two thousand to each, and of the warehouse, that come to nothing two by two."""
    insert(
        StockMovement,
        sizes.ledger // 2 * 2,
        sku=f"IF(n % 4 < 2, {item.sku_id}, {item.sku_id} + n % 900)",
        account=f"IF(n % 4 < 2, CONCAT('item:', {item.pk} - n DIV 2000, ':0'), 'warehouse')",
        kind="IF(n % 2 = 0, 'RETURN', 'SALE')",
        units="IF(n % 2 = 0, 1, -1)",
        reference="CONCAT('desk:', n)",
        reason="IF(n % 10 = 0, '=HYPERLINK(\"http://x\")', '')",
        created_at=_ago("n % 100000"),
    )


def _evening(sizes: Sizes, *, item: SaleItem, first: int) -> None:
    """What a long evening of trouble leaves behind."""
    pool = {"pool": str(item.pool_id)}
    here = {**pool, "bucket_no": "0"}
    insert(
        ReconciliationRun,
        sizes.many,
        **here,
        epoch="1",
        verdict="IF(n % 50 = 0, 'LEAK', 'BALANCED')",
        drift="IF(n % 50 = 0, 3, 0)",
        numbers=f"'{json.dumps([NUMBERS | {'item_id': item.pk}])}'",
        members=f"'{json.dumps(MEMBERS)}'",
        created_at=_ago(f"{sizes.many} - n"),
    )
    incident_1 = insert(
        Incident,
        sizes.many,
        **here,
        kind="ELT(1 + n % 4, 'drift', 'phantom', 'redis_lost', 'settlement_stopped')",
        severity="IF(n % 3 = 0, 'CRITICAL', 'WARNING')",
        detail="CONCAT('detail ', n)",
        open_key=f"IF(n <= 5, CONCAT('k', n, ':{item.pool_id}:0'), NULL)",
        opened_at=_ago("n * 3"),
        last_seen_at=_ago("n * 3 - 1"),
        resolved_at=f"IF(n <= 5, NULL, {_ago('n * 3 - 2')})",
    )
    alert_1 = insert(
        Alert,
        sizes.many,
        incident=f"{incident_1} + n - 1",
        event="'OPENED'",
        severity="'WARNING'",
        detail="'d'",
        count="1",
        units="0",
        created_at=_ago("n"),
    )
    insert(
        AlertDelivery,
        sizes.many,
        alert=f"{alert_1} + n - 1",
        channel="'log'",
        state="'SENT'",
        attempts="1",
        due_at=_ago("n"),
        sent_at=_ago("n"),
    )
    insert(
        DeadLetter,
        sizes.many,
        **here,
        epoch="1",
        stream_id="CONCAT(n, '-0')",
        fields="'{}'",
        error="'cannot be read'",
        created_at=_ago("n"),
    )
    insert(
        Repair,
        sizes.many,
        **here,
        item=str(item.pk),
        epoch="1",
        repair_no="n",
        delta="1",
        outcome="'DONE'",
        created_at=_ago("n"),
    )
    insert(
        RebuildRun,
        sizes.many,
        **here,
        outcome="'DONE'",
        is_automatic="1",
        epoch="n",
        created_at=_ago("n"),
        finished_at=_ago("n"),
    )
    asked = {"delta": "1", "reason": "CONCAT('because ', n)", "requested_by": str(first), "requested_at": _ago("n")}
    insert(ItemAdjustment, sizes.many, item=str(item.pk), **asked)
    insert(StockAdjustment, sizes.many, sku=f"{item.sku_id} + n % 900", **asked)
    _archives(sizes, first=first)
    insert(
        ItemSample,
        3_600,
        item_id=str(item.pk),
        at=f"DATE_SUB('{_now():%Y-%m-%d %H:%M:%S}', INTERVAL (3600 - n) SECOND)",
        left=f"{sizes.buyers} - n",
        queued="n % 50",
        accepted="n",
        sold_out="n * 3",
    )


def _archives(sizes: Sizes, *, first: int) -> None:
    """A million buyers of an old sale, and the runs that have archived it and the others."""
    pool_1 = SalePool.objects.order_by("pk").values_list("pk", flat=True)[0]
    done = {
        "stage": "'DONE'",
        "progress": "'{}'",
        "manifest": "'{}'",
        "started_at": _ago("n"),
        "finished_at": _ago("n"),
    }
    insert(ArchiveRun, OLD_SALES, pool=f"{pool_1} + n - 1", bucket_no="0", epoch="1", **done)
    insert(BuyerArchive, sizes.buyers, pool=str(pool_1), bucket_no="0", limit_key=f"{first} + n - 1", units="1")


def _marks(sizes: Sizes, *, bucket: BucketRef, item_id: int, first: int) -> None:
    """A mark of every buyer, and a receipt of every order."""
    _, _, buyers, receipts, _ = bucket.keys
    for start in range(0, sizes.buyers, MARKS_CHUNK):
        keys = range(first + start, first + min(start + MARKS_CHUNK, sizes.buyers))
        raw_client().hset(buyers, mapping={str(key): 1 for key in keys})
    numbers = Order.objects.order_by("pk").values_list("number", "buyer_id")
    for start in range(0, sizes.orders, MARKS_CHUNK):
        some = numbers[start : start + MARKS_CHUNK]
        raw_client().hset(receipts, mapping={number: f"confirmed|{item_id}|1|{buyer}" for number, buyer in some})
