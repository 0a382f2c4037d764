"""URLs of the audit, below the admin."""

from django.urls import path

from seckill import audit_pages

urlpatterns = [
    path("items/<int:item_id>/", audit_pages.audit_item_page, name="desk_audit_item"),
    path("items/<int:item_id>/runs.json", audit_pages.audit_runs, name="desk_audit_runs"),
    path("items/<int:item_id>/reconcile/", audit_pages.desk_reconcile_item, name="desk_audit_reconcile"),
    path("skus/<int:sku_id>/", audit_pages.audit_sku_page, name="desk_audit_sku"),
    path("ledger.csv", audit_pages.ledger_file, name="desk_ledger_file"),
]
