"""URLs of the buyers' orders and of the providers' notifications, below ``/api/v1/``."""

from django.urls import path

from orders import api

urlpatterns = [
    path("orders/", api.OrdersView.as_view(), name="orders"),
    path("orders/<str:number>/", api.OrderDetailView.as_view(), name="order"),
    path("orders/<str:number>/pay/", api.PayView.as_view(), name="order-pay"),
    path("orders/<str:number>/cancel/", api.CancelView.as_view(), name="order-cancel"),
    path("payments/<str:provider>/notify/", api.NotifyView.as_view(), name="payment-notify"),
]
