"""Tables of the alerts: what is to be told of an incident, and to whom it was told. Rows of the outbox.

They are written in the transaction that changes the incident, so none is lost and none is told of
what was rolled back.
"""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class Alert(models.Model):
    """One message about an incident: it opened, rose or was closed. The facts are those of that moment."""

    class Event(models.TextChoices):
        """What happened to the incident."""

        OPENED = "OPENED", _("opened")
        RISEN = "RISEN", _("risen")
        CLOSED = "CLOSED", _("closed")

    incident = models.ForeignKey(
        "seckill.Incident", on_delete=models.PROTECT, related_name="alerts", verbose_name=_("incident")
    )
    event = models.CharField(_("event"), max_length=16, choices=Event)
    severity = models.CharField(_("severity"), max_length=16)
    detail = models.TextField(_("detail"))
    count = models.PositiveIntegerField(_("times seen"))
    units = models.PositiveIntegerField(_("units concerned"))
    created_at = models.DateTimeField(_("at"))

    class Meta:
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        constraints = [
            models.CheckConstraint(condition=Q(event__in=["OPENED", "RISEN", "CLOSED"]), name="alert_event_known"),
        ]

    def __str__(self) -> str:
        return f"{self.incident} {self.event}"


class AlertDelivery(models.Model):
    """One alert on its way through one channel, tried until it arrives or is given up."""

    class State(models.TextChoices):
        """Where it is."""

        DUE = "DUE", _("due")
        SENT = "SENT", _("sent")
        GIVEN_UP = "GIVEN_UP", _("given up")

    alert = models.ForeignKey(Alert, on_delete=models.PROTECT, related_name="deliveries", verbose_name=_("alert"))
    channel = models.CharField(_("channel"), max_length=200)
    state = models.CharField(_("state"), max_length=16, choices=State, default=State.DUE)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    due_at = models.DateTimeField(_("next attempt at"))
    sent_at = models.DateTimeField(_("sent at"), null=True)
    error = models.CharField(_("last error"), max_length=200, blank=True)

    class Meta:
        verbose_name = _("delivery of an alert")
        verbose_name_plural = _("deliveries of alerts")
        permissions = [("resend_alertdelivery", "Can send alerts again")]
        indexes = [models.Index(fields=["state", "due_at"], name="alert_delivery_due")]
        constraints = [
            models.UniqueConstraint(fields=["alert", "channel"], name="alert_delivery_once_per_channel"),
            models.CheckConstraint(
                condition=Q(state="SENT", sent_at__isnull=False)
                | Q(state__in=["DUE", "GIVEN_UP"], sent_at__isnull=True),
                name="alert_delivery_sent_with_its_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.alert} → {self.channel}"
