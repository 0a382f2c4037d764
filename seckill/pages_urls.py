"""URLs of the buyers' pages, at the root of the shop."""

from django.urls import path

from seckill import pages

urlpatterns = [
    path("", pages.sales_page, name="shop"),
    path("sales/<int:sale_id>/", pages.sale_page, name="shop-sale"),
    path("orders/", pages.orders_page, name="shop-orders"),
    path("orders/<str:number>/", pages.order_page, name="shop-order"),
]
