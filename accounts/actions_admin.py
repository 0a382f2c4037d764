"""Admin of the action log: searched and filtered, never written."""

import json

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from actions.models import ActionEntry
from rest.desk import ReadOnlyDeskAdmin


@admin.register(ActionEntry)
class ActionPage(ReadOnlyDeskAdmin):
    """What operators did, the latest first."""

    list_display = ["at", "who", "channel", "what", "thing", "stage", "reason", "address"]
    list_filter = ["channel", "stage", ("at", admin.DateFieldListFilter)]
    search_fields = ["^who", "^what", "=key", "=request_id"]
    ordering = ["-id"]
    exclude = ["before", "after"]
    readonly_fields = ["was", "is_now"]

    @admin.display(description=_("before"))
    def was(self, entry: ActionEntry) -> SafeString:
        """The thing before it."""
        return _told(entry.before)

    @admin.display(description=_("after"))
    def is_now(self, entry: ActionEntry) -> SafeString:
        """The thing after it."""
        return _told(entry.after)


def _told(facts: object) -> SafeString:
    return format_html("<pre>{}</pre>", json.dumps(facts, indent=2, ensure_ascii=False))
