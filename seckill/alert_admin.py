"""Admin of the alerts: what was told to whom, what is given up, and one action: send it again."""

from contextlib import ExitStack

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from rest.desk import ReadOnlyDeskAdmin
from rest.reasons import reason_in, with_reason
from seckill.alert_tables import Alert, AlertDelivery
from seckill.alerts import resend
from seckill.detail_words import in_readers_words


@admin.register(Alert)
class AlertAdmin(ReadOnlyDeskAdmin):
    """Alerts, the latest first."""

    list_display = ["created_at", "incident", "event", "severity", "noted", "count", "units"]
    list_filter = ["event", "severity"]
    list_select_related = ["incident"]
    ordering = ["-id"]
    show_full_result_count = False
    exclude = ["detail"]
    readonly_fields = ["noted"]

    @admin.display(description=_("detail"))
    def noted(self, alert: Alert) -> str:
        """What was noted, in the reader's language; it was sent in the shop's."""
        return in_readers_words(alert.detail)


@admin.register(AlertDelivery)
class AlertDeliveryAdmin(ReadOnlyDeskAdmin):
    """Deliveries, those that were given up findable by one click."""

    list_display = ["alert", "channel", "state", "attempts", "due_at", "sent_at", "error"]
    list_filter = ["state", "channel"]
    list_select_related = ["alert__incident"]
    ordering = ["-id"]
    show_full_result_count = False
    actions = ["send_again"]

    def has_resend_permission(self, request: HttpRequest) -> bool:
        """Whether somebody may have given-up deliveries tried again."""
        return request.user.has_perm("seckill.resend_alertdelivery")

    @admin.action(description=_("Send again what was given up"), permissions=["resend"])
    @with_reason
    def send_again(self, request: HttpRequest, deliveries: QuerySet[AlertDelivery]) -> None:
        """Begin anew with the selected deliveries that were given up."""
        with ExitStack() as log:
            for delivery in deliveries:
                log.enter_context(self.recorded(request, delivery, "seckill.resend", reason_in(request)))
            number = resend(delivery_ids=[delivery.pk for delivery in deliveries], now=timezone.now())
        words = ngettext("%d delivery will be tried again", "%d deliveries will be tried again", number)
        self.message_user(request, words % number, messages.SUCCESS)
