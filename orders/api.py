"""The buyers' API of orders, and where providers send their notifications. Thin, as all of the API."""

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from orders.api_outputs import BegunOutput, OrderOutput, OrderPageOutput, order_body
from orders.conf import LIMITS
from orders.errors import (
    NoticeInvalid,
    OrderNotFound,
    PayWindowOver,
    ProviderUnavailable,
    TransitionRefused,
    UnknownProvider,
)
from orders.providers import RawNotice, default_provider
from orders.selectors import order_of_buyer, orders_of_buyer
from orders.services.cancelling import cancel_order
from orders.services.notices import take_notice
from orders.services.paying import begin_payment
from orders.states import OrderState
from rest.answers import private
from rest.calls import ApiView
from rest.documents import documented
from rest.fields import TextField
from rest.parsers import BODY_BYTES_MAX, BodyTooLarge

NUMBER_LENGTH_MAX = 40


class OrdersQuery(serializers.Serializer[None]):
    """What the query string of the list may say."""

    before = serializers.CharField(
        max_length=NUMBER_LENGTH_MAX, required=False, help_text="Number of the last order seen; older ones follow."
    )


class PayInput(serializers.Serializer[None]):
    """Body of a payment's beginning; may be empty, for the shop's usual provider."""

    provider = TextField(max_length=32, required=False)


class OrdersView(ApiView):
    """``GET /orders/``: the asker's orders, newest first, page by page."""

    @documented(query=OrdersQuery, answers={200: OrderPageOutput}, raises=(OrderNotFound,), tag="orders")
    def get(self, request: Request) -> Response:
        """Answer a page; ``next`` is where the following one is, or null."""
        query = OrdersQuery(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        before = query.validated_data.get("before")
        found = orders_of_buyer(buyer_id=_buyer_id(request), before=before, page_size=LIMITS.page_size + 1)
        page = found[: LIMITS.page_size]
        following = f"{reverse('orders')}?before={page[-1].number}" if len(found) > LIMITS.page_size else None
        return private({"results": [order_body(order) for order in page], "next": following})


class OrderDetailView(ApiView):
    """``GET /orders/{number}/``: one order with its money; 404 for everybody whose order it is not."""

    @documented(answers={200: OrderOutput}, raises=(OrderNotFound,), tag="orders")
    def get(self, request: Request, number: str) -> Response:
        """Answer the order."""
        return private(order_body(order_of_buyer(number=number, buyer_id=_buyer_id(request))))


class PayView(ApiView):
    """``POST /orders/{number}/pay/``: begin to pay, or go on."""

    @documented(
        takes=PayInput,
        answers={200: BegunOutput},
        raises=(OrderNotFound, TransitionRefused, PayWindowOver, UnknownProvider, ProviderUnavailable),
        tag="orders",
    )
    def post(self, request: Request, number: str) -> Response:
        """Answer where to pay; the same address for every repeat while the payment is open."""
        body = PayInput(data=request.data)
        body.is_valid(raise_exception=True)
        begun = begin_payment(
            number=number,
            buyer_id=_buyer_id(request),
            provider=body.validated_data.get("provider") or default_provider(),
            now=timezone.now(),
        )
        return private({"number": begun.number, "pay_url": begun.pay_url})


class CancelView(ApiView):
    """``POST /orders/{number}/cancel/``: cancel an unpaid order; a repeat gets the same answer."""

    @documented(
        answers={200: OrderOutput}, raises=(OrderNotFound, TransitionRefused, ProviderUnavailable), tag="orders"
    )
    def post(self, request: Request, number: str) -> Response:
        """Answer the cancelled order."""
        buyer_id = _buyer_id(request)
        order_of_buyer(number=number, buyer_id=buyer_id)
        try:
            cancel_order(number=number, buyer_id=buyer_id, now=timezone.now())
        except TransitionRefused:
            if order_of_buyer(number=number, buyer_id=buyer_id).state is not OrderState.CANCELLED:
                raise
        return private(order_body(order_of_buyer(number=number, buyer_id=buyer_id)))


class NotifyView(ApiView):
    """``POST /payments/{provider}/notify/``: from providers, who prove themselves by their signature."""

    throttle_scope = "public"
    authentication_classes = ()
    permission_classes = ()

    @documented(
        answers={200: OpenApiResponse(OpenApiTypes.STR, "The provider's own words for: it is stored.")},
        raises=(NoticeInvalid, UnknownProvider),
        auth=[],
        tag="payments",
    )
    def post(self, request: Request, provider: str) -> HttpResponse:
        """Answer 200 in the provider's own words once the money is recorded, welcome or not."""
        if len(request.body) > BODY_BYTES_MAX:
            raise BodyTooLarge
        notice = RawNotice(body=request.body, headers=request.headers, received_at=timezone.now())
        words = take_notice(provider=provider, notice=notice)
        return HttpResponse(words, content_type="text/plain", headers={"Cache-Control": "no-store"})


def _buyer_id(request: Request) -> int:
    assert request.user.pk is not None  # noqa: S101  IsAuthenticated has let him in
    return int(request.user.pk)
