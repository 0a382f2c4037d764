"""URLs of the catalogue, below ``/api/v1/``."""

from django.urls import path

from inventory import api, changes_api

urlpatterns = [
    path("products/", api.ProductListView.as_view(), name="products"),
    path("products/<int:product_id>/", api.ProductDetailView.as_view(), name="product"),
    path(
        "operators/stock-adjustments/", changes_api.StockAdjustmentsView.as_view(), name="operators-stock-adjustments"
    ),
    path(
        "operators/stock-adjustments/<int:change_id>/approve/",
        changes_api.ApproveStockAdjustmentView.as_view(),
        name="operators-stock-adjustment-approve",
    ),
    path(
        "operators/stock-adjustments/<int:change_id>/reject/",
        changes_api.RejectStockAdjustmentView.as_view(),
        name="operators-stock-adjustment-reject",
    ),
    path("skus/", api.SkuListView.as_view(), name="skus"),
]
