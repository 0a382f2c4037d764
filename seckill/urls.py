"""URLs of the flash sales, below ``/api/v1/``."""

from django.urls import path

from seckill import api, catalogue_api

urlpatterns = [
    path("sales/", catalogue_api.SaleListView.as_view(), name="sales"),
    path("sales/<int:sale_id>/", catalogue_api.SaleDetailView.as_view(), name="sale"),
    path("items/<int:item_id>/ticket/", api.TicketView.as_view(), name="ticket"),
    path("purchases/", api.PurchasesView.as_view(), name="purchase"),
    path("purchases/<str:order_no>/", api.PurchaseStatusView.as_view(), name="purchase-status"),
]
