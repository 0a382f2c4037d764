"""Money: begun payments, payments that arrived, refunds, and wishes to honour."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from orders.models.order import Order
from orders.states import (
    AttemptState,
    HonourRefusal,
    HonourState,
    PaymentProblem,
    PaymentState,
    RefundedUnitsTo,
    RefundReason,
    RefundState,
)


class PaymentAttempt(models.Model):
    """A payment begun at a provider, under a reference of its own; it may bring money while it is open.

    ``ask_at`` is when the provider is asked next what became of it, should no notification come.
    """

    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="attempts", verbose_name=_("order"))
    provider = models.CharField(_("provider"), max_length=32)
    reference = models.CharField(_("reference"), max_length=64, unique=True, db_collation="utf8mb4_bin")
    amount = models.DecimalField(_("amount"), max_digits=12, decimal_places=2)
    pay_url = models.CharField(_("pay page"), max_length=500, blank=True)
    state = models.CharField(_("state"), max_length=16, choices=AttemptState, default=AttemptState.OPEN)
    asks = models.PositiveIntegerField(_("times asked"), default=0)
    ask_at = models.DateTimeField(_("ask next at"), null=True, blank=True)
    created_at = models.DateTimeField(_("created at"))
    updated_at = models.DateTimeField(_("updated at"))

    class Meta:
        verbose_name = _("begun payment")
        verbose_name_plural = _("begun payments")
        indexes = [models.Index(fields=["ask_at"], name="attempt_ask_at")]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=AttemptState.values), name="attempt_state_known"),
            models.CheckConstraint(condition=Q(amount__gt=0), name="attempt_amount_positive"),
            models.CheckConstraint(
                condition=Q(state=AttemptState.OPEN, ask_at__isnull=False)
                | (~Q(state=AttemptState.OPEN) & Q(ask_at__isnull=True)),
                name="attempt_asked_while_open",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.reference}"


class Payment(models.Model):
    """Money that has arrived, known by the provider's own reference; recorded also when it is unwelcome.

    ``order`` is what it was meant for, ``pays`` the order it pays: at most one payment pays an order.
    ``refunding`` is the sum of its refunds that have not failed, never more than the amount.
    """

    order = models.ForeignKey(
        Order, on_delete=models.PROTECT, null=True, blank=True, related_name="payments", verbose_name=_("order")
    )
    pays = models.OneToOneField(
        Order, on_delete=models.PROTECT, null=True, blank=True, related_name="paid_by", verbose_name=_("pays")
    )
    provider = models.CharField(_("provider"), max_length=32)
    provider_reference = models.CharField(_("provider's reference"), max_length=64, db_collation="utf8mb4_bin")
    order_reference = models.CharField(_("meant for"), max_length=64, db_collation="utf8mb4_bin")
    amount = models.DecimalField(_("amount"), max_digits=12, decimal_places=2)
    refunding = models.DecimalField(_("refunded or on its way"), max_digits=12, decimal_places=2, default=0)
    state = models.CharField(_("state"), max_length=16, choices=PaymentState)
    problem = models.CharField(_("problem"), max_length=16, choices=PaymentProblem, blank=True)
    created_at = models.DateTimeField(_("created at"))
    updated_at = models.DateTimeField(_("updated at"))

    class Meta:
        verbose_name = _("payment")
        verbose_name_plural = _("payments")
        indexes = [models.Index(fields=["state", "id"], name="payment_state")]
        permissions = [
            ("refund_payment", "Can give the money of a payment back"),
            ("honour_payment", "Can honour a payment for a closed order"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["provider", "provider_reference"], name="payment_once_per_reference"),
            models.CheckConstraint(condition=Q(amount__gt=0), name="payment_amount_positive"),
            models.CheckConstraint(
                condition=Q(refunding__gte=0) & Q(refunding__lte=F("amount")), name="payment_refunds_at_most_amount"
            ),
            models.CheckConstraint(condition=Q(state__in=PaymentState.values), name="payment_state_known"),
            models.CheckConstraint(condition=Q(problem__in=["", *PaymentProblem.values]), name="payment_problem_known"),
            models.CheckConstraint(
                condition=Q(problem="", pays__isnull=False) | (~Q(problem="") & Q(pays__isnull=True)),
                name="payment_pays_or_has_a_problem",
            ),
            models.CheckConstraint(
                condition=Q(state=PaymentState.ACCEPTED, problem="")
                | (Q(state__in=[PaymentState.REFUND_DUE, PaymentState.HONOURING]) & ~Q(problem=""))
                | Q(state=PaymentState.REFUNDED),
                name="payment_accepted_without_problem",
            ),
            models.CheckConstraint(
                condition=Q(problem=PaymentProblem.UNKNOWN_ORDER, order__isnull=True)
                | (~Q(problem=PaymentProblem.UNKNOWN_ORDER) & Q(order__isnull=False)),
                name="payment_has_an_order_unless_unknown",
            ),
            models.CheckConstraint(
                condition=~Q(state=PaymentState.REFUNDED) | Q(refunding=F("amount")), name="payment_refunded_in_full"
            ),
            models.CheckConstraint(
                condition=~Q(state=PaymentState.HONOURING) | Q(refunding=0), name="payment_honoured_or_refunded"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.provider_reference}"


class Refund(models.Model):
    """Money of one payment that goes back, part or whole; once, by ``reference``, whatever is repeated.

    ``due_at`` is when the provider is told or asked next; none once it is done or has failed.
    """

    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="refunds", verbose_name=_("payment"))
    provider = models.CharField(_("provider"), max_length=32)
    reference = models.CharField(_("reference"), max_length=64, unique=True, db_collation="utf8mb4_bin")
    provider_reference = models.CharField(  # noqa: DJ001  NULL is not told yet, and may stand often in a unique key
        _("provider's reference"),
        max_length=64,
        null=True,
        blank=True,
        db_collation="utf8mb4_bin",
    )
    amount = models.DecimalField(_("amount"), max_digits=12, decimal_places=2)
    reason = models.CharField(_("reason"), max_length=16, choices=RefundReason)
    units_to = models.CharField(_("units go"), max_length=16, choices=RefundedUnitsTo)
    note = models.CharField(_("note"), max_length=200, blank=True)
    replaces = models.OneToOneField(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="replaced_by",
        verbose_name=_("instead of the failed one"),
    )
    state = models.CharField(_("state"), max_length=16, choices=RefundState, default=RefundState.REQUESTED)
    failure = models.CharField(_("why it failed"), max_length=200, blank=True)
    tries = models.PositiveIntegerField(_("tries"), default=0)
    due_at = models.DateTimeField(_("due at"), null=True, blank=True)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("by"),
    )
    created_at = models.DateTimeField(_("created at"))
    updated_at = models.DateTimeField(_("updated at"))

    class Meta:
        verbose_name = _("refund")
        verbose_name_plural = _("refunds")
        indexes = [models.Index(fields=["due_at"], name="refund_due_at")]
        constraints = [
            models.UniqueConstraint(fields=["provider", "provider_reference"], name="refund_once_per_reference"),
            models.CheckConstraint(condition=Q(amount__gt=0), name="refund_amount_positive"),
            models.CheckConstraint(condition=Q(state__in=RefundState.values), name="refund_state_known"),
            models.CheckConstraint(condition=Q(reason__in=RefundReason.values), name="refund_reason_known"),
            models.CheckConstraint(condition=Q(units_to__in=RefundedUnitsTo.values), name="refund_units_to_known"),
            models.CheckConstraint(
                condition=Q(state__in=[RefundState.REQUESTED, RefundState.SENT], due_at__isnull=False)
                | Q(state__in=[RefundState.DONE, RefundState.FAILED], due_at__isnull=True),
                name="refund_due_until_it_ends",
            ),
        ]

    def __str__(self) -> str:
        return self.reference


class Honour(models.Model):
    """An operator's wish to honour money for a closed order by a new reservation, under a new number.

    ``number`` is given once, by whoever sells; it makes every repeat the same reservation. A payment
    has at most one open wish: ``open_key`` is the payment's id until it ends, then NULL.
    """

    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="honours", verbose_name=_("payment"))
    open_key = models.PositiveBigIntegerField(
        _("key while it is under way"), unique=True, null=True, blank=True, editable=False
    )
    number = models.CharField(
        _("new order"),
        max_length=40,
        unique=True,
        null=True,
        blank=True,
        db_collation="utf8mb4_bin",
    )
    state = models.CharField(_("state"), max_length=16, choices=HonourState, default=HonourState.REQUESTED)
    reason = models.CharField(_("why it was refused"), max_length=200, blank=True, choices=HonourRefusal)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("by"),
    )
    created_at = models.DateTimeField(_("created at"))
    updated_at = models.DateTimeField(_("updated at"))

    class Meta:
        verbose_name = _("honour")
        verbose_name_plural = _("honours")
        constraints = [
            models.CheckConstraint(condition=Q(state__in=HonourState.values), name="honour_state_known"),
            models.CheckConstraint(
                condition=Q(state=HonourState.REQUESTED, open_key__isnull=False)
                | (~Q(state=HonourState.REQUESTED) & Q(open_key__isnull=True)),
                name="honour_open_until_it_ends",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.payment_id}: {self.state}"
