"""Admin of the incidents: what happened, what was done by itself, what is left to do, and the way there."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Min, Q, QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import truncatechars
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from rest.coloured import coloured
from rest.desk import ReadOnlyDeskAdmin
from rest.filters import FirstUnlessAsked
from seckill.advice import ADVICE, advice_for
from seckill.detail_words import in_readers_words
from seckill.models import Incident, SaleItem
from seckill.remedies import remedy_for

DETAIL_SHOWN_CHARS = 160
ROWS_FOUND_MAX = 500


class OpenFilter(FirstUnlessAsked):
    """What is open, unless somebody looks for what was."""

    title = _("state")
    offered: ClassVar = [("open", _("open")), ("resolved", _("resolved")), ("all", _("all"))]

    def narrow(self, queryset: QuerySet[Any], chosen: str) -> QuerySet[Any]:
        """By the key that stands until an incident is resolved."""
        return queryset.filter(open_key__isnull=chosen == "resolved")


@admin.register(Incident)
class IncidentAdmin(ReadOnlyDeskAdmin):
    """Incidents, open ones first to be seen; resolved ones are found by their words, sale or detail."""

    list_display = ["how_bad", "what_happened", "where", "opened_at", "ended", "remedy"]
    list_display_links = ["what_happened"]
    list_filter = [OpenFilter, "severity", "kind"]
    list_select_related = ["pool__sale"]
    search_fields = ["kind", "detail", "pool__sale__name"]
    search_help_text = _("Words, a sale, an order number. Resolved ones are searched as well.")
    ordering = ["-last_seen_at"]
    readonly_fields = ["what_happened", "what_the_system_did", "what_you_can_do", "remedy", "noted"]
    fieldsets = [
        (None, {"fields": ["what_happened", "what_the_system_did", "what_you_can_do", "remedy"]}),
        (_("As noted"), {"fields": ["kind", "severity", "pool", "bucket_no", "noted", "units", "count"]}),
        (_("When"), {"fields": ["opened_at", "last_seen_at", "resolved_at"]}),
    ]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Incident], search_term: str
    ) -> tuple[QuerySet[Incident], bool]:
        """Find what is said of an incident in the reader's language, its sale's name, or its detail."""
        word = search_term.strip()
        if not word:
            return queryset, False
        kinds = [kind for kind, advice in ADVICE.items() if word.lower() in f"{kind} {advice.what}".lower()]
        rows = Incident.objects.filter(
            Q(kind__in=kinds) | Q(detail__icontains=word) | Q(pool__sale__name__icontains=word)
        )
        found = list(rows.order_by("-pk").values_list("pk", flat=True)[:ROWS_FOUND_MAX])
        return queryset.filter(pk__in=found), False

    def prepare_rows(self, rows: list[Any]) -> None:
        """Look up the first item of all pools at once: the remedies lead there."""
        pools = {row.pool_id for row in rows}
        firsts = SaleItem.objects.filter(pool_id__in=pools).values_list("pool_id").annotate(first=Min("pk"))
        item_ids = dict(firsts.order_by())
        for row in rows:
            row.item_id = item_ids.get(row.pool_id)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Prepare the one that is shown like those of a list."""
        incident = super().get_object(request, object_id, from_field)
        if incident is not None:
            self.prepare_rows([incident])
        return incident

    @coloured(description=_("severity"), colours={"CRITICAL": "danger", "WARNING": "warning", "": "info"})
    def how_bad(self, incident: Incident) -> tuple[str, str]:
        """The severity, in its colour; one that is over has none any more."""
        return (incident.severity if incident.open_key else "", incident.get_severity_display())

    @admin.display(description=_("what happened"))
    def what_happened(self, incident: Incident) -> str:
        """In words, with what was noted."""
        detail = truncatechars(in_readers_words(incident.detail), DETAIL_SHOWN_CHARS)
        return format_html('<b>{}</b><br><span class="desk-small">{}</span>', advice_for(incident.kind).what, detail)

    @admin.display(description=_("detail"))
    def noted(self, incident: Incident) -> str:
        """All that was noted."""
        return in_readers_words(incident.detail)

    @admin.display(description=_("where"))
    def where(self, incident: Incident) -> str:
        """The sale, pool and bucket."""
        bucket = f"{incident.pool_id}:{incident.bucket_no}"
        return format_html('{}<br><span class="desk-small">{}</span>', incident.pool.sale.name, bucket)

    @coloured(description=_("state"), colours={"open": "danger", "resolved": "success"})
    def ended(self, incident: Incident) -> tuple[str, str]:
        """Whether it is over."""
        return ("open", str(_("open"))) if incident.open_key else ("resolved", str(_("resolved")))

    @admin.display(description=_("what you can do"))
    def remedy(self, incident: Any) -> str:
        """The one button."""
        remedy = remedy_for(incident=incident, item_id=incident.item_id)
        return format_html('<a class="desk-button" href="{}">{}</a>', remedy.address, remedy.label)

    @admin.display(description=_("what the system did"))
    def what_the_system_did(self, incident: Incident) -> str:
        """What needs no hand any more."""
        return str(advice_for(incident.kind).did)

    @admin.display(description=_("what you can do"))
    def what_you_can_do(self, incident: Incident) -> str:
        """What is left to a person."""
        return str(advice_for(incident.kind).can)
