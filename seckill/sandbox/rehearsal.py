"""The rehearsal of a sale: accounts that can log in, a sale about to open, and the shop's own verdict afterwards."""

import secrets
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password

from orders.models import Order
from orders.states import OrderState
from seckill.gate.keys import BucketRef
from seckill.models import Bucket, FlashSale, ItemBucket
from seckill.reconciliation import BucketReport, reconcile_bucket
from seckill.sandbox.stage import Clock, Prop, open_sale

PREFIX = "rehearsal"
LASTS = timedelta(hours=1)
PAY_WINDOW_MINUTES = 15
CHUNK = 1_000


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """What a crowd has to know; its buyers are ``<prefix>-1`` to ``<prefix>-<buyers>`` with one password."""

    sale_id: int
    item_id: int
    units: int
    buyers: int
    prefix: str
    password: str
    opens_at: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the shop's own books say of a sale; `broken` has a sentence for each law that does not hold."""

    units: int
    sold: int
    orders: int
    buyers_with_orders: int
    paid: int
    drift: int
    broken: tuple[str, ...]


def make_rehearsal(*, buyers: int, units: int, opens_in: timedelta, clock: Clock) -> Rehearsal:
    """Make what is missing of the accounts, give all of them a new password, and preheat a sale."""
    password = secrets.token_urlsafe(12)
    _make_accounts(number=buyers, password=password)
    item = open_sale(
        name="rehearsal",
        props=[Prop(name="rehearsal", units=units)],
        clock=clock,
        opens_in=opens_in,
        closes_in=opens_in + LASTS,
        pay_window_minutes=PAY_WINDOW_MINUTES,
    )["rehearsal"]
    return Rehearsal(
        sale_id=item.pool.sale_id,
        item_id=item.pk,
        units=units,
        buyers=buyers,
        prefix=PREFIX,
        password=password,
        opens_at=item.pool.sale.opens_at.isoformat(),
    )


def judge_rehearsal(*, sale: FlashSale, clock: Clock) -> Verdict:
    """Settle what waits, reconcile each bucket and count; the last buyer must have had his answer."""
    refs = [
        BucketRef(pool_id=row.pool_id, number=row.number)
        for row in Bucket.objects.filter(pool__sale=sale).order_by("pool_id", "number")
    ]
    reports = [reconcile_bucket(bucket=ref, clock=clock) for ref in refs]
    orders = [row for ref in sorted({ref.pool_id for ref in refs}) for row in _orders_of(ref)]
    allotted = ItemBucket.objects.filter(bucket__pool__sale=sale).values_list("allocated", "sold")
    units, sold = (sum(column) for column in zip(*allotted, strict=True))
    verdict = Verdict(
        units=units,
        sold=sold,
        orders=sum(1 for _, _, state in orders if state != OrderState.CANCELLED),
        buyers_with_orders=len({buyer for _, buyer, _ in orders}),
        paid=sum(1 for _, _, state in orders if state == OrderState.PAID),
        drift=sum(report.drift for report in reports),
        broken=(),
    )
    return Verdict(**{**vars(verdict), "broken": tuple(_broken(verdict, reports))})


def _broken(verdict: Verdict, reports: list[BucketReport]) -> list[str]:
    found = [f"{report.bucket}: {report.verdict.label}" for report in reports if not report.is_balanced]
    if verdict.sold > verdict.units:
        found.append(f"oversold: {verdict.sold} of {verdict.units} units")
    if verdict.orders != verdict.sold:
        found.append(f"{verdict.sold} units are sold, there are orders for {verdict.orders}")
    if verdict.buyers_with_orders < verdict.orders:
        found.append("a buyer has more than one order")
    return found


def _orders_of(pool_id: int) -> list[tuple[str, int, str]]:
    return list(Order.objects.filter(number__startswith=f"{pool_id}-").values_list("number", "buyer_id", "state"))


def _make_accounts(*, number: int, password: str) -> None:
    """Hash once: a hash for each of thousands would take the better part of an hour."""
    users, hashed = get_user_model().objects, make_password(password)
    names = [f"{PREFIX}-{n}" for n in range(1, number + 1)]
    for start in range(0, number, CHUNK):
        chunk = names[start : start + CHUNK]
        known = set(users.filter(username__in=chunk).values_list("username", flat=True))
        users.filter(username__in=chunk).update(password=hashed)
        users.bulk_create(get_user_model()(username=name, password=hashed) for name in chunk if name not in known)
