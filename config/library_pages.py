"""Pages of tables that libraries bring: the few an operator has business with, on the desk's bases; no others."""

from typing import Any

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib import admin
from django.http import HttpRequest
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule
from rest_framework_simplejwt.token_blacklist.models import BlacklistedToken, OutstandingToken

from rest.desk import ReadOnlyDeskAdmin

# Tokens are secrets, the access logs are switched off, and schedules are written by migrations.
NOBODYS_BUSINESS = (
    AccessFailureLog,
    AccessLog,
    BlacklistedToken,
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    OutstandingToken,
    SolarSchedule,
)


def put_on_the_desk() -> None:
    """Replace the libraries' own pages; called once all apps have registered theirs."""
    for model in (*NOBODYS_BUSINESS, AccessAttempt, PeriodicTask):
        if admin.site.is_registered(model):
            admin.site.unregister(model)
    admin.site.register(AccessAttempt, AccessAttemptPage)
    admin.site.register(PeriodicTask, SchedulePage)


class AccessAttemptPage(ReadOnlyDeskAdmin):
    """Wrong passwords; an entry is deleted to let its owner try again at once."""

    list_display = ["attempt_time", "username", "ip_address", "failures_since_start"]
    search_fields = ["username", "=ip_address"]
    ordering = ["-attempt_time"]
    fields = ["attempt_time", "username", "ip_address", "user_agent", "path_info", "failures_since_start"]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who has the permission may let somebody try again."""
        return bool(request.user.has_perm("axes.delete_accessattempt"))


class SchedulePage(ReadOnlyDeskAdmin):
    """What beat sends, how often, and when it did last."""

    list_display = ["name", "task", "enabled", "interval", "last_run_at", "total_run_count"]
    list_select_related = ["interval"]
    search_fields = ["name", "task"]
    ordering = ["name"]
