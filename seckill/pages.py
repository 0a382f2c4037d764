"""The buyers' pages: what stands still is rendered here, what moves is done by the modules in ``static/shop``."""

from collections.abc import Callable
from functools import partial, wraps
from http import HTTPStatus
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from orders.conf import LIMITS as ORDER_LIMITS
from orders.errors import OrderNotFound
from orders.selectors import OrderDetail, order_of_buyer, orders_of_buyer
from rest.memory import Memory
from seckill.catalogue import Front, SaleView, front, sale_by_id
from seckill.conf import LIMITS
from seckill.errors import UnknownOrder, UnknownSale
from seckill.polling import PurchaseStatus, purchase_status
from seckill.texts import texts_json

Page = Callable[..., HttpResponse]

_fronts: Memory[Front] = Memory(seconds=1, entries_max=1)
_sales: Memory[SaleView] = Memory(seconds=1, entries_max=200)

# A page has its reader's name on it. It may be kept for the way back, never shown again unasked.
shop_page = cache_control(private=True, no_cache=True)


def own_page(view: Page) -> Page:
    """Make a page for one buyer alone: he logs in first, and nobody keeps it."""

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return login_required(view)(request, *args, **kwargs)

    return cache_control(no_store=True)(checked)


@require_safe
@shop_page
def sales_page(request: HttpRequest) -> HttpResponse:
    """List what is on sale, what comes, and what was."""
    shown = _fronts.get((), lambda: front(now=timezone.now()))
    return _page(request, "shop/sales.html", {"front": shown})


@require_safe
@shop_page
def sale_page(request: HttpRequest, sale_id: int) -> HttpResponse:
    """Show one sale with its items, and a panel for each to buy it."""
    try:
        sale = _sales.get(sale_id, lambda: sale_by_id(sale_id=sale_id, now=timezone.now()))
    except UnknownSale as error:
        raise Http404 from error
    context = {"sale": sale, "wait_seconds": LIMITS.challenge_wait_seconds}
    return _page(request, "shop/sale.html", context)


@require_safe
@own_page
def orders_page(request: HttpRequest) -> HttpResponse:
    """List the reader's orders, newest first."""
    read = partial(orders_of_buyer, buyer_id=_reader(request), page_size=ORDER_LIMITS.page_size + 1)
    try:
        found = read(before=request.GET.get("before"))
    except OrderNotFound as error:
        raise Http404 from error
    shown = found[: ORDER_LIMITS.page_size]
    older = shown[-1].number if len(found) > len(shown) else ""
    return _page(request, "shop/orders.html", {"orders": shown, "older": older})


@require_safe
@own_page
def order_page(request: HttpRequest, number: str) -> HttpResponse:
    """Show one of the reader's orders, or that it is being written."""
    order = _order(number=number, buyer_id=_reader(request))
    return _page(request, "shop/order.html", {"order": order, "number": number})


def _order(*, number: str, buyer_id: int) -> OrderDetail | None:
    """Return the buyer's order; None while it is not in MySQL yet. 404 for anybody else's."""
    try:
        return order_of_buyer(number=number, buyer_id=buyer_id)
    except OrderNotFound:
        _status(number=number, buyer_id=buyer_id)
        return None


def _status(*, number: str, buyer_id: int) -> PurchaseStatus:
    try:
        return purchase_status(order_no=number, buyer_id=buyer_id)
    except UnknownOrder as error:
        raise Http404 from error


def _page(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    now_ms = int(timezone.now().timestamp() * 1000)
    return render(request, template, context | {"texts": texts_json(), "now_ms": now_ms}, status=HTTPStatus.OK)


def _reader(request: HttpRequest) -> int:
    assert request.user.pk is not None  # noqa: S101  login_required has let him in
    return int(request.user.pk)
