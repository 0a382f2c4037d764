"""Reads of the orders."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise

from inventory.catalogue import picture_address
from orders.errors import OrderNotFound
from orders.models import Honour, Order, Payment, Refund
from orders.states import HonourState, OrderState, PaymentState, RefundState, UnitsTo


@dataclass(frozen=True, kw_only=True)
class OrderView:
    """What a buyer sees of an order."""

    number: str
    state: OrderState
    quantity: int
    amount: Decimal
    pay_by_at: datetime


def order_by_number(*, number: str) -> OrderView | None:
    """One order, or None. The caller has checked who is asking."""
    row = Order.objects.filter(number=number).first()
    if row is None:
        return None
    return OrderView(
        number=row.number,
        state=OrderState(row.state),
        quantity=row.quantity,
        amount=row.unit_price * row.quantity,
        pay_by_at=row.pay_by_at,
    )


@dataclass(frozen=True, kw_only=True)
class DueReturn:
    """A closed order whose units nobody has taken back yet."""

    number: str
    units_to: UnitsTo


def pages_of_due_returns(*, now: datetime, page_size: int) -> Iterator[list[DueReturn]]:
    """Closed orders whose units are due and not put off, those that wait longest first, page by page.

    Each order comes once, whether or not it is taken back meanwhile: those nobody can take back now
    do not stand in the way of the others.
    """
    is_due = Q(units_retry_at__isnull=True) | Q(units_retry_at__lte=now)
    rows = Order.objects.filter(is_due, units_due_at__isnull=False).order_by("units_due_at", "pk")
    rest = Q()
    while page := list(rows.filter(rest).values_list("number", "units_to", "units_due_at", "pk")[:page_size]):
        yield [DueReturn(number=number, units_to=UnitsTo(units_to)) for number, units_to, _, _ in page]
        _, _, due_at, pk = page[-1]
        rest = Q(units_due_at=due_at, pk__gt=pk) | Q(units_due_at__gt=due_at)


def numbers_put_off() -> list[str]:
    """Closed orders whose units could not be taken back when that was last tried."""
    rows = Order.objects.filter(units_due_at__isnull=False, units_retry_at__isnull=False)
    return list(rows.values_list("number", flat=True))


@dataclass(frozen=True, kw_only=True)
class PaymentView:
    """What a buyer sees of money he has paid, and of what goes back of it."""

    amount: Decimal
    state: PaymentState
    paid_at: datetime
    refunds: Sequence["RefundView"]


@dataclass(frozen=True, kw_only=True)
class RefundView:
    """What a buyer sees of a refund."""

    amount: Decimal
    state: RefundState
    requested_at: datetime


@dataclass(frozen=True, kw_only=True)
class OrderDetail:
    """An order as its buyer sees it, with its money."""

    number: str
    state: OrderState
    state_text: StrOrPromise
    item: str
    variant: str
    picture: str
    quantity: int
    unit_price: Decimal
    amount: Decimal
    created_at: datetime
    pay_by_at: datetime
    closed_at: datetime | None
    payments: Sequence[PaymentView]


def order_of_buyer(*, number: str, buyer_id: int) -> OrderDetail:
    """Return a buyer's own order. Raises ``OrderNotFound`` for anybody else's."""
    row = _for_buyer(buyer_id).filter(number=number).first()
    if row is None:
        raise OrderNotFound
    return _detail(row)


def orders_of_buyer(*, buyer_id: int, before: str | None, page_size: int) -> list[OrderDetail]:
    """Return a page of a buyer's orders, newest first, from those older than ``before``.

    Raises ``OrderNotFound`` when ``before`` is not his.
    """
    rows = _for_buyer(buyer_id).order_by("-pk")
    if before is not None:
        last = Order.objects.filter(buyer_id=buyer_id, number=before).values_list("pk", flat=True).first()
        if last is None:
            raise OrderNotFound
        rows = rows.filter(pk__lt=last)
    return [_detail(row) for row in rows[:page_size]]


@dataclass(frozen=True, kw_only=True)
class OpenHonour:
    """A wish to honour money for a closed order, which whoever sold that order is to fulfil.

    ``number`` is that of the new reservation, once it has one.
    """

    honour_id: int
    closed_number: str
    number: str | None


def open_honours(*, count_max: int) -> list[OpenHonour]:
    """Return the wishes that are open, those that wait longest first."""
    rows = Honour.objects.filter(state=HonourState.REQUESTED, payment__order__isnull=False).order_by("pk")
    found = rows.values_list("pk", "payment__order__number", "number")[:count_max]
    return [OpenHonour(honour_id=pk, closed_number=closed, number=number) for pk, closed, number in found]


@dataclass(frozen=True, kw_only=True)
class MoneyDue:
    """What the shop owes: payments whose refund nobody has begun, refunds under way, and the oldest return due."""

    refunds_due: int
    refunds_under_way: int
    oldest_return_due_at: datetime | None


def money_due() -> MoneyDue:
    """Count what is owed, by indexes."""
    returns = Order.objects.filter(units_due_at__isnull=False).order_by("units_due_at")
    return MoneyDue(
        refunds_due=Payment.objects.filter(state=PaymentState.REFUND_DUE).count(),
        refunds_under_way=Refund.objects.filter(due_at__isnull=False).count(),
        oldest_return_due_at=returns.values_list("units_due_at", flat=True).first(),
    )


def refunds_due_count(*, count_max: int) -> int:
    """Count the payments whose refund is due, up to a number."""
    return Payment.objects.filter(state=PaymentState.REFUND_DUE)[:count_max].count()


def closing_times(*, numbers: Sequence[str]) -> dict[str, datetime]:
    """When orders were closed, by number; open ones are left out."""
    rows = Order.objects.filter(number__in=numbers, closed_at__isnull=False).values_list("number", "closed_at")
    return {number: closed_at for number, closed_at in rows if closed_at is not None}


def _for_buyer(buyer_id: int) -> QuerySet[Order]:
    rows = Order.objects.filter(buyer_id=buyer_id).select_related("sku__product")
    return rows.prefetch_related("payments__refunds")


def _detail(row: Order) -> OrderDetail:
    state = OrderState(row.state)
    is_refunded = state is OrderState.PAID and row.closed_at is not None
    return OrderDetail(
        number=row.number,
        state=state,
        state_text=_("refunded") if is_refunded else state.label,
        item=row.sku.product.name,
        variant=row.sku.name,
        picture=picture_address(row.sku.product.picture),
        quantity=row.quantity,
        unit_price=row.unit_price,
        amount=row.unit_price * row.quantity,
        created_at=row.created_at,
        pay_by_at=row.pay_by_at,
        closed_at=row.closed_at,
        payments=[_payment_view(payment) for payment in row.payments.all()],
    )


def _payment_view(payment: Payment) -> PaymentView:
    return PaymentView(
        amount=payment.amount,
        state=PaymentState(payment.state),
        paid_at=payment.created_at,
        refunds=[_refund_view(refund) for refund in payment.refunds.all()],
    )


def _refund_view(refund: Refund) -> RefundView:
    return RefundView(amount=refund.amount, state=RefundState(refund.state), requested_at=refund.created_at)
