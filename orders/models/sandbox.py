"""What the sandbox provider remembers: tables of another company, which the shop itself never reads."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class SandboxPayment(models.Model):
    """A payment somebody began; its page has an address nobody can guess."""

    class State(models.TextChoices):
        """Whether it can be paid."""

        OPEN = "OPEN", _("open")
        PAID = "PAID", _("paid")
        CLOSED = "CLOSED", _("closed")

    reference = models.CharField(max_length=64, unique=True, db_collation="utf8mb4_bin")
    token = models.CharField(max_length=64, unique=True, db_collation="utf8mb4_bin")
    amount = models.DecimalField(max_digits=12, decimal_places=2, default=0)
    description = models.CharField(max_length=200, blank=True)
    return_url = models.CharField(max_length=500, blank=True)
    state = models.CharField(max_length=16, choices=State, default=State.OPEN)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("sandbox payment")
        verbose_name_plural = _("sandbox payments")
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["OPEN", "PAID", "CLOSED"]), name="sandbox_payment_state_known"
            )
        ]

    def __str__(self) -> str:
        return self.reference


class SandboxCharge(models.Model):
    """Money taken from the payer; a payment may have two by mistake."""

    payment = models.ForeignKey(SandboxPayment, on_delete=models.PROTECT, related_name="charges")
    reference = models.CharField(max_length=64, unique=True, db_collation="utf8mb4_bin")
    amount = models.DecimalField(max_digits=12, decimal_places=2)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("sandbox charge")
        verbose_name_plural = _("sandbox charges")

    def __str__(self) -> str:
        return self.reference


class SandboxRefund(models.Model):
    """Money on its way back; the outcome is known only at ``settles_at``."""

    charge = models.ForeignKey(SandboxCharge, on_delete=models.PROTECT, related_name="refunds")
    reference = models.CharField(max_length=64, unique=True, db_collation="utf8mb4_bin")
    amount = models.DecimalField(max_digits=12, decimal_places=2)
    will_fail = models.BooleanField(default=False)
    settles_at = models.DateTimeField()

    class Meta:
        verbose_name = _("sandbox refund")
        verbose_name_plural = _("sandbox refunds")

    def __str__(self) -> str:
        return self.reference


class SandboxNotice(models.Model):
    """A notification to the shop, sent until it is answered with 200; ``due_at`` is NULL once nothing is left to do."""

    body = models.TextField()
    due_at = models.DateTimeField(null=True)
    tries = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("sandbox notification")
        verbose_name_plural = _("sandbox notifications")
        indexes = [models.Index(fields=["due_at"], name="sandbox_notice_due")]

    def __str__(self) -> str:
        return f"{self.pk}"
