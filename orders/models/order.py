"""Orders and their events."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from inventory.models import Sku
from orders.states import CLOSED, OrderState, UnitsTo


class Order(models.Model):
    """One buyer's order of one SKU.

    ``closed_at`` is the instant from which it holds no units any more: it was cancelled, ran out of
    time, or was paid and is refunded. ``units_due_at`` is set from then until whoever sold the units
    has taken them back; where that failed it is not tried again before ``units_retry_at``.
    ``payment_begun_at`` is set while it is unpaid and a payment that was begun
    at a provider may still bring money; then only the provider's answer lets it close.
    ``number`` is what the outside knows; the primary key stays inside. The price is
    the one the buyer was promised, whatever the catalogue says later. Changed only by
    ``orders.services``, along the table in ``orders.states``.
    """

    number = models.CharField(_("number"), max_length=40, unique=True, db_collation="utf8mb4_bin")
    buyer = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="orders", verbose_name=_("buyer")
    )
    sku = models.ForeignKey(Sku, on_delete=models.PROTECT, related_name="+", verbose_name=_("SKU"))
    quantity = models.PositiveIntegerField(_("quantity"))
    unit_price = models.DecimalField(_("unit price"), max_digits=12, decimal_places=2)
    state = models.CharField(_("state"), max_length=16, choices=OrderState, default=OrderState.PENDING_PAYMENT)
    created_at = models.DateTimeField(_("created at"))
    pay_by_at = models.DateTimeField(_("pay by"))
    payment_begun_at = models.DateTimeField(_("payment begun at"), null=True, blank=True, editable=False)
    closed_at = models.DateTimeField(_("closed at"), null=True, blank=True)
    units_to = models.CharField(_("units go"), max_length=16, choices=UnitsTo, default=UnitsTo.ON_SALE)
    units_due_at = models.DateTimeField(_("units due since"), null=True, blank=True, editable=False)
    units_retry_at = models.DateTimeField(_("units tried again at"), null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("order")
        verbose_name_plural = _("orders")
        indexes = [
            models.Index(fields=["state", "pay_by_at"], name="order_state_pay_by"),
            models.Index(fields=["units_due_at"], name="order_units_due"),
            models.Index(fields=["buyer", "id"], name="order_of_buyer"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(units_to__in=UnitsTo.values), name="order_units_to_known"),
            models.CheckConstraint(
                condition=Q(state__in=sorted(CLOSED), closed_at__isnull=False)
                | Q(state=OrderState.PENDING_PAYMENT, closed_at__isnull=True)
                | Q(state=OrderState.PAID),
                name="order_closed_at_when_closed",
            ),
            models.CheckConstraint(
                condition=Q(closed_at__isnull=False) | Q(units_due_at__isnull=True), name="order_units_due_when_closed"
            ),
            models.CheckConstraint(
                condition=Q(state=OrderState.PENDING_PAYMENT) | Q(payment_begun_at__isnull=True),
                name="order_payment_begun_while_unpaid",
            ),
            models.CheckConstraint(condition=Q(quantity__gte=1), name="order_quantity_positive"),
            models.CheckConstraint(condition=Q(unit_price__gte=0), name="order_unit_price_not_negative"),
            models.CheckConstraint(condition=Q(state__in=OrderState.values), name="order_state_known"),
        ]

    def __str__(self) -> str:
        return self.number


class OrderEvent(models.Model):
    """One transition of one order; append-only. An order's creation is the order row itself.

    From PAID to PAID it says that a refund gave the order's units back.
    """

    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="events", verbose_name=_("order"))
    from_state = models.CharField(_("from"), max_length=16, choices=OrderState)
    to_state = models.CharField(_("to"), max_length=16, choices=OrderState)
    reason = models.CharField(_("reason"), max_length=200, blank=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, verbose_name=_("by")
    )
    created_at = models.DateTimeField(_("created at"))

    class Meta:
        verbose_name = _("order event")
        verbose_name_plural = _("order events")

    def __str__(self) -> str:
        return f"{self.order_id}: {self.from_state} -> {self.to_state}"
