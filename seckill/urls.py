"""URLs of the flash sales, below ``/api/v1/``."""

from django.urls import path

from seckill import api, catalogue_api, operators_api

urlpatterns = [
    path("operators/sales/<int:sale_id>/preheat/", operators_api.PreheatView.as_view(), name="operators-preheat"),
    path("operators/items/<int:item_id>/pause/", operators_api.PauseView.as_view(), name="operators-pause"),
    path("operators/items/<int:item_id>/resume/", operators_api.ResumeView.as_view(), name="operators-resume"),
    path("operators/items/<int:item_id>/audit/", operators_api.AuditView.as_view(), name="operators-audit"),
    path("operators/pools/<int:pool_id>/reconcile/", operators_api.ReconcileView.as_view(), name="operators-reconcile"),
    path("sales/", catalogue_api.SaleListView.as_view(), name="sales"),
    path("sales/<int:sale_id>/", catalogue_api.SaleDetailView.as_view(), name="sale"),
    path("items/<int:item_id>/ticket/", api.TicketView.as_view(), name="ticket"),
    path("purchases/", api.PurchasesView.as_view(), name="purchase"),
    path("purchases/<str:order_no>/", api.PurchaseStatusView.as_view(), name="purchase-status"),
]
