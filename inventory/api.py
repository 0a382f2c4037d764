"""The public API of the catalogue: products and their variants, the same for everybody."""

from typing import Any

from django.http.response import HttpResponseBase
from rest_framework import serializers
from rest_framework.request import Request

from inventory.catalogue import product_by_id, product_with_skus, shown_products, shown_skus, sku_view
from inventory.errors import UnknownProduct
from rest.answers import public
from rest.calls import ApiView
from rest.documents import documented
from rest.fields import DigitsField
from rest.pages import PageQuery, page_of, read_query

MAX_AGE_SECONDS = 30


class ProductOutput(serializers.Serializer[Any]):
    """A product."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    description = serializers.CharField()
    picture = serializers.CharField(help_text="An address, or empty.")


class VariantOutput(serializers.Serializer[Any]):
    """A variant, within its product."""

    id = serializers.IntegerField()
    code = serializers.CharField()
    name = serializers.CharField()
    list_price = serializers.DecimalField(max_digits=12, decimal_places=2)


class SkuOutput(VariantOutput):
    """A variant with its product."""

    product = ProductOutput()


class ProductDetailOutput(ProductOutput):
    """A product with its variants."""

    skus = VariantOutput(many=True)


class ProductPageOutput(serializers.Serializer[Any]):
    """A page of products."""

    results = ProductDetailOutput(many=True)
    next_after = serializers.IntegerField(allow_null=True, help_text="`after` of the next page, if there is one.")


class SkuPageOutput(serializers.Serializer[Any]):
    """A page of variants."""

    results = SkuOutput(many=True)
    next_after = serializers.IntegerField(allow_null=True, help_text="`after` of the next page, if there is one.")


class ProductQuery(PageQuery):
    """Which products."""

    search = serializers.CharField(required=False, max_length=100, help_text="A part of the name.")


class SkuQuery(PageQuery):
    """Which variants."""

    product = DigitsField(required=False)
    code = serializers.CharField(required=False, max_length=64)


class ProductListView(ApiView):
    """``GET /products/``."""

    authentication_classes = ()
    permission_classes = ()
    throttle_scope = "public"

    @documented(answers={200: ProductPageOutput, 304: None}, query=ProductQuery, tag="catalogue")
    def get(self, request: Request) -> HttpResponseBase:
        """List products with their variants."""
        query = read_query(ProductQuery, request)
        page = page_of(rows=shown_products(search=query.get("search", "")), query=query, view=product_with_skus)
        return public(request=request, body=ProductPageOutput(page).data, max_age_seconds=MAX_AGE_SECONDS)


class ProductDetailView(ApiView):
    """``GET /products/{id}/``."""

    authentication_classes = ()
    permission_classes = ()
    throttle_scope = "public"

    @documented(answers={200: ProductDetailOutput, 304: None}, raises=(UnknownProduct,), tag="catalogue")
    def get(self, request: Request, product_id: int) -> HttpResponseBase:
        """Show one product with its variants."""
        body = ProductDetailOutput(product_by_id(product_id=product_id)).data
        return public(request=request, body=body, max_age_seconds=MAX_AGE_SECONDS)


class SkuListView(ApiView):
    """``GET /skus/``."""

    authentication_classes = ()
    permission_classes = ()
    throttle_scope = "public"

    @documented(answers={200: SkuPageOutput, 304: None}, query=SkuQuery, tag="catalogue")
    def get(self, request: Request) -> HttpResponseBase:
        """List variants with their products."""
        query = read_query(SkuQuery, request)
        rows = shown_skus(product_id=query.get("product"), code=query.get("code", ""))
        page = page_of(rows=rows, query=query, view=sku_view)
        return public(request=request, body=SkuPageOutput(page).data, max_age_seconds=MAX_AGE_SECONDS)
