"""The public API of the sales: the same for everybody, kept by caches for a second."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.http.response import HttpResponseBase
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request

from inventory.api import SkuOutput
from rest.answers import public
from rest.calls import ApiView
from rest.documents import documented
from rest.fields import InstantField
from rest.memory import Memory
from rest.pages import Page, PageQuery, page_of, read_query
from seckill.availability import Level
from seckill.catalogue import SaleView, ShownState, sale_by_id, shown_sales, views_of
from seckill.errors import UnknownSale
from seckill.models import FlashSale

# A browser or a proxy may keep an answer so long, on top of the second this process keeps it.
MAX_AGE_SECONDS = 1

_sales: Memory[SaleView] = Memory(seconds=1, entries_max=200)
_pages: Memory[Page] = Memory(seconds=1, entries_max=50)


class AvailabilityOutput(serializers.Serializer[Any]):
    """How much is left, coarsely."""

    level = serializers.ChoiceField(choices=[level.value for level in Level])
    unpaid_until = InstantField(
        allow_null=True,
        help_text="With `none_left`: until then some of it is not paid and may come back. Null: it is sold out.",
    )


class ItemOutput(serializers.Serializer[Any]):
    """One item of a sale. Items of the same pool share the limit."""

    id = serializers.IntegerField()
    pool = serializers.IntegerField()
    sku = SkuOutput()
    price = serializers.DecimalField(max_digits=12, decimal_places=2)
    units = serializers.IntegerField()
    limit_per_buyer = serializers.IntegerField()
    is_paused = serializers.BooleanField()
    availability = AvailabilityOutput(allow_null=True, help_text="Null where nothing is on sale.")


class SaleOutput(serializers.Serializer[Any]):
    """One sale. Its window is ``opens_at <= now < closes_at`` by the server's clock."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    rules = serializers.CharField()
    state = serializers.ChoiceField(choices=[state.value for state in ShownState])
    opens_at = InstantField()
    closes_at = InstantField()
    pay_window_minutes = serializers.IntegerField()
    items = ItemOutput(many=True)


class SaleDetailOutput(SaleOutput):
    """One sale, and when that was so."""

    server_time = InstantField(help_text="When this answer was made. To set a clock, ask `/api/v1/time/`.")


class SalePageOutput(serializers.Serializer[Any]):
    """A page of sales, those that open last first."""

    server_time = InstantField(help_text="When this answer was made. To set a clock, ask `/api/v1/time/`.")
    results = SaleOutput(many=True)
    next_after = serializers.IntegerField(allow_null=True)


class SaleQuery(PageQuery):
    """Which sales."""

    state = serializers.ChoiceField(choices=[state.value for state in ShownState], required=False)


class SaleListView(ApiView):
    """``GET /sales/``."""

    authentication_classes = ()
    permission_classes = ()
    throttle_scope = "public"

    @documented(answers={200: SalePageOutput, 304: None}, query=SaleQuery, tag="catalogue")
    def get(self, request: Request) -> HttpResponseBase:
        """List sales with their items and what is left of them, those that open last first."""
        query = read_query(SaleQuery, request)
        page = _pages.get(tuple(sorted(query.items())), partial(_page, query))
        body = {"results": SaleOutput(page.results, many=True).data, "next_after": page.next_after}
        return public(request=request, body=body, max_age_seconds=MAX_AGE_SECONDS, server_time=timezone.now())


class SaleDetailView(ApiView):
    """``GET /sales/{id}/``."""

    authentication_classes = ()
    permission_classes = ()
    throttle_scope = "public"

    @documented(answers={200: SaleDetailOutput, 304: None}, raises=(UnknownSale,), tag="catalogue")
    def get(self, request: Request, sale_id: int) -> HttpResponseBase:
        """Show one sale: its window, items, limits, rules and, in a word each, what is left."""
        sale = _sales.get(sale_id, lambda: sale_by_id(sale_id=sale_id, now=timezone.now()))
        body = SaleOutput(sale).data
        return public(request=request, body=body, max_age_seconds=MAX_AGE_SECONDS, server_time=timezone.now())


def _page(query: Mapping[str, Any]) -> Page:
    now = timezone.now()
    state = query.get("state")
    rows = shown_sales(state=None if state is None else ShownState(str(state)), now=now)
    page = page_of(rows=rows, query=query, order_by="-opens_at", view=_itself)
    return Page(results=views_of(sales=page.results, now=now), next_after=page.next_after)


def _itself(sale: FlashSale) -> FlashSale:
    return sale
