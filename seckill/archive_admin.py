"""Admin of the archive: how far each bucket's run is, its manifest, and the buyers that were copied. All read-only."""

import json

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from rest.desk import ReadOnlyDeskAdmin
from seckill.archive_tables import ArchiveRun, BuyerArchive


@admin.register(ArchiveRun)
class ArchiveRunAdmin(ReadOnlyDeskAdmin):
    """Archives, the latest first."""

    list_display = ["pool", "bucket_no", "stage", "is_redis_lost", "waits_for", "started_at", "finished_at"]
    list_filter = ["stage", "is_redis_lost"]
    list_select_related = ["pool"]
    ordering = ["-id"]
    exclude = ["manifest", "cursor", "progress"]
    readonly_fields = ["what_was_found"]

    @admin.display(description=_("manifest"))
    def what_was_found(self, run: ArchiveRun) -> SafeString:
        """Show counts, digests, units, differences and when each stage was reached."""
        reached = run.manifest.get("reached", {})
        # MySQL keeps the keys of an object in an order of its own.
        manifest = {**run.manifest, "reached": dict(sorted(reached.items(), key=lambda stage: str(stage[1])))}
        return format_html("<pre>{}</pre>", json.dumps(manifest, indent=2, ensure_ascii=False))


@admin.register(BuyerArchive)
class BuyerArchiveAdmin(ReadOnlyDeskAdmin):
    """Archived buyers; found by their whole limit key, for there may be millions."""

    list_display = ["limit_key", "pool", "bucket_no", "units"]
    list_select_related = ["pool"]
    search_fields = ["limit_key__exact"]
    ordering = ["-id"]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[BuyerArchive], search_term: str
    ) -> tuple[QuerySet[BuyerArchive], bool]:
        """Look in each archived pool: the index begins with pool and bucket, and one more would slow every archive."""
        word = search_term.strip()
        if not word:
            return queryset, False
        buckets = ArchiveRun.objects.values_list("pool_id", "bucket_no")
        pools, numbers = {pool_id for pool_id, _ in buckets}, {number for _, number in buckets}
        return queryset.filter(pool_id__in=pools, bucket_no__in=numbers, limit_key=word), False
