"""URLs of the catalogue, below ``/api/v1/``."""

from django.urls import path

from inventory import api

urlpatterns = [
    path("products/", api.ProductListView.as_view(), name="products"),
    path("products/<int:product_id>/", api.ProductDetailView.as_view(), name="product"),
    path("skus/", api.SkuListView.as_view(), name="skus"),
]
