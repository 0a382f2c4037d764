"""URLs of the buyers' API, below ``/api/v1/``."""

from django.urls import path

from seckill import api

urlpatterns = [
    path("items/<int:item_id>/ticket/", api.TicketView.as_view(), name="ticket"),
    path("purchases/", api.PurchaseView.as_view(), name="purchase"),
    path("purchases/<str:order_no>/", api.PurchaseStatusView.as_view(), name="purchase-status"),
]
