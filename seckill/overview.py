"""The desk's first page: sales of today and to come, what is wrong, and what waits for the one who looks.

A dozen statements by indexes, each count cut at a hundred; Redis is asked once, as for the monitor's list.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from inventory.changes import waiting_for
from inventory.models import StockAdjustment
from orders.models import Payment
from orders.states import PaymentState
from seckill.advice import advice_for
from seckill.change_tables import ItemAdjustment, WindowChange
from seckill.models import DeadLetter, Incident
from seckill.monitor import SaleInBrief, sales_to_watch
from seckill.states import SalePhase

COUNTED_MAX = 100
INCIDENTS_SHOWN_MAX = 5
SALES_SHOWN_MAX = 12


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Something that waits for the one who looks; ``number`` is cut at a hundred."""

    words: str
    number: int
    link: str

    @property
    def told(self) -> str:
        """The number as it is shown."""
        return f"{COUNTED_MAX}+" if self.number > COUNTED_MAX else str(self.number)


@dataclass(frozen=True, kw_only=True)
class SaleCard:
    """A sale with what its clock runs to."""

    sale: SaleInBrief
    opens_next: bool
    closes_next: bool


def overview(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Fill the desk's first page; named in settings."""
    user = request.user
    sales = sales_to_watch(now=timezone.now()) if user.has_perm("seckill.view_flashsale") else []
    incidents = _open_incidents() if user.has_perm("seckill.view_incident") else Incident.objects.none()
    return {
        **context,
        "title": _("Overview"),
        "cards": [_card(sale, timezone.now()) for sale in sales[:SALES_SHOWN_MAX]],
        "incidents": [(incident, advice_for(incident.kind)) for incident in incidents[:INCIDENTS_SHOWN_MAX]],
        "incident_count": _count(incidents),
        "may_watch": user.has_perm("seckill.view_flashsale"),
        "waiting": [entry for entry in _waiting(user) if entry.number],
    }


def _card(sale: SaleInBrief, now: datetime) -> SaleCard:
    is_to_come = sale.phase in {SalePhase.SCHEDULED, SalePhase.PREHEATED} and now < sale.opens_at
    return SaleCard(sale=sale, opens_next=is_to_come, closes_next=sale.phase is SalePhase.LIVE)


def _open_incidents() -> QuerySet[Incident]:
    return Incident.objects.filter(open_key__isnull=False).select_related("pool__sale").order_by("-last_seen_at")


def _waiting(user: Any) -> Iterator[Waiting]:
    for table, words in (
        (StockAdjustment, _("warehouse adjustments to decide on")),
        (ItemAdjustment, _("adjustments of units on sale to decide on")),
        (WindowChange, _("window changes to decide on")),
    ):
        yield Waiting(words=words, number=_count(waiting_for(table=table, by=user)), link=reverse("desk_inbox"))
    if user.has_perm("orders.refund_payment"):
        due = Payment.objects.filter(state=PaymentState.REFUND_DUE)
        link = reverse("admin:orders_payment_changelist")
        yield Waiting(words=_("refunds due"), number=_count(due), link=f"{link}?state__exact={PaymentState.REFUND_DUE}")
    if user.has_perm("seckill.decide_deadletter"):
        letters = DeadLetter.objects.filter(concluded_at__isnull=True, decision="")
        link = reverse("admin:seckill_deadletter_changelist")
        yield Waiting(words=_("dead letters to decide on"), number=_count(letters), link=link)


def _count(rows: QuerySet[Any]) -> int:
    return rows.order_by()[: COUNTED_MAX + 1].count()
