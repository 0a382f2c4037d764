"""Reads of the catalogue: what everybody may see of products. Numbers of the warehouse are not among it."""

from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Prefetch, QuerySet
from django.templatetags.static import static

from inventory.errors import UnknownProduct
from inventory.models import Product, Sku


@dataclass(frozen=True, kw_only=True)
class ProductView:
    """A product without its variants; ``picture`` is an address, or empty."""

    id: int
    name: str
    description: str
    picture: str


@dataclass(frozen=True, kw_only=True)
class SkuView:
    """A variant and the product it is one of."""

    id: int
    code: str
    name: str
    list_price: Decimal
    product: ProductView


@dataclass(frozen=True, kw_only=True)
class ProductWithSkus:
    """A product and its variants."""

    id: int
    name: str
    description: str
    picture: str
    skus: tuple[SkuView, ...]


def shown_products(*, search: str = "") -> QuerySet[Product]:
    """Active products, or those whose name has a text in it."""
    skus = Prefetch("skus", queryset=Sku.objects.order_by("pk"))
    products = Product.objects.filter(is_active=True).prefetch_related(skus)
    return products.filter(name__icontains=search) if search else products


def shown_skus(*, product_id: int | None = None, code: str = "") -> QuerySet[Sku]:
    """Variants of active products, of one of them, or the one with a code."""
    skus = Sku.objects.filter(product__is_active=True).select_related("product")
    if product_id is not None:
        skus = skus.filter(product_id=product_id)
    return skus.filter(code=code) if code else skus


def product_by_id(*, product_id: int) -> ProductWithSkus:
    """One product with its variants. Raises ``UnknownProduct`` for one that is not shown, or for none."""
    product = shown_products().filter(pk=product_id).first()
    if product is None:
        raise UnknownProduct
    return product_with_skus(product)


def product_with_skus(product: Product) -> ProductWithSkus:
    """Make the view of a product whose variants are loaded."""
    shown = product_view(product)
    skus = tuple(sku_view(sku) for sku in product.skus.all())
    return ProductWithSkus(**vars(shown), skus=skus)


def sku_view(sku: Sku) -> SkuView:
    """Make the view of a variant whose product is loaded."""
    return SkuView(
        id=sku.pk, code=sku.code, name=sku.name, list_price=sku.list_price, product=product_view(sku.product)
    )


def product_view(product: Product) -> ProductView:
    """Make the view of a product alone."""
    return ProductView(
        id=product.pk, name=product.name, description=product.description, picture=picture_address(product.picture)
    )


def picture_address(picture: str) -> str:
    """Return where a picture is: elsewhere by https, or one of our static files; empty for none."""
    return picture if not picture or picture.startswith("https://") else static(picture)
