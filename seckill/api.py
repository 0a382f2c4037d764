"""The buyers' API: ticket, purchase, poll. Thin: read the request, one domain call, write the answer."""

from http import HTTPStatus
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.http import HttpRequest
from django.utils import timezone
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import Blocked
from accounts.permissions import NotBlocked
from orders.selectors import OrderView
from rest.addresses import client_network
from rest.answers import private
from rest.calls import ApiView
from rest.documents import documented
from rest.fields import TextField, WholeNumberField, YesNoField
from rest.throttles import throttle, throttle_in_process, throttle_key
from seckill import errors
from seckill.api_outputs import AcceptedOutput, ChallengeOutput, OpenPurchasesOutput, StatusOutput, TicketAnswer
from seckill.challenges import PROOF_LENGTH_MAX, ChallengeKind, waiting_pass_for, work_for
from seckill.conf import LIMITS
from seckill.errors import TicketInvalid, UnknownOrder
from seckill.holdings import Holding, open_purchases
from seckill.links import status_url
from seckill.polling import PurchaseState, PurchaseStatus, purchase_status
from seckill.purchase import Accepted, purchase
from seckill.tickets import TICKET_LENGTH_MAX, HeldReservation, Wish, item_with_sale, read_ticket, ticket_for

TICKET_SCHEME = "Ticket "
UNKNOWN_RETRY_SECONDS = 2
ATTEMPT_MAX = 1_000_000


class PurchaseInput(serializers.Serializer[None]):
    """Body of a purchase."""

    ticket = TextField(max_length=TICKET_LENGTH_MAX, trim_whitespace=False)
    quantity = WholeNumberField(min_value=1, max_value=LIMITS.quantity_max)
    attempt = WholeNumberField(
        min_value=1,
        max_value=ATTEMPT_MAX,
        required=False,
        help_text="1 where the ticket is sent for the first time, more for a repeat. Left out: a repeat.",
    )


class TicketInput(serializers.Serializer[None]):
    """Body of a ticket request; may be empty."""

    another = YesNoField(default=False)
    proof = TextField(
        max_length=PROOF_LENGTH_MAX, default="", help_text="The solved challenge, or a waiting pass, where asked for."
    )


class ChallengeQuery(serializers.Serializer[None]):
    """What the query string of a challenge may say."""

    kind = serializers.ChoiceField(choices=[kind.value for kind in ChallengeKind], default=ChallengeKind.WORK.value)


class ChallengeView(ApiView):
    """``GET /items/{id}/challenge/``: what a ticket costs where a sale has the switch on."""

    permission_classes = (IsAuthenticated, NotBlocked)
    throttle_scope = "ticket"

    @documented(
        query=ChallengeQuery, answers={200: ChallengeOutput}, raises=(errors.UnknownItem, Blocked), tag="purchase"
    )
    def get(self, request: Request, item_id: int) -> Response:
        """Give a proof of work to solve, or with ``kind=wait`` a pass that is good after a while."""
        query = ChallengeQuery(data=request.query_params.dict())
        query.is_valid(raise_exception=True)
        item, buyer_id = item_with_sale(item_id=item_id), _buyer(request).pk
        if query.validated_data["kind"] == ChallengeKind.WAIT:
            throttle_key(scope="challenge_wait", key=client_network(request._request))  # noqa: SLF001
            proof = waiting_pass_for(item_id=item.pk, buyer_id=buyer_id)
            return private({"kind": "wait", "proof": proof, "wait_seconds": LIMITS.challenge_wait_seconds})
        return private({"kind": "work", **work_for(item_id=item.pk, buyer_id=buyer_id, now=timezone.now())})


class TicketView(ApiView):
    """``POST /items/{id}/ticket/``: the cold path, before the rush."""

    permission_classes = (IsAuthenticated, NotBlocked)
    throttle_scope = "ticket"

    @documented(
        takes=TicketInput,
        answers={200: TicketAnswer, 201: TicketAnswer},
        raises=(
            errors.UnknownItem,
            errors.NotPreheated,
            errors.Ended,
            errors.TicketDenied,
            errors.LimitReached,
            errors.ChallengeRequired,
            errors.ChallengeFailed,
            errors.ChallengeTooEarly,
            Blocked,
        ),
        tag="purchase",
    )
    def post(self, request: Request, item_id: int) -> Response:
        """Give a ticket (201 new, 200 the same again), or say what the buyer already has (200)."""
        body = TicketInput(data=request.data)
        body.is_valid(raise_exception=True)
        wish = Wish.ANOTHER if body.validated_data["another"] else Wish.FIRST
        given = ticket_for(
            buyer=_buyer(request),
            item_id=item_id,
            wish=wish,
            now=timezone.now(),
            proof=body.validated_data["proof"],
        )
        if isinstance(given, HeldReservation):
            answer = status_body(given.status) | {"may_buy_more": given.may_buy_more}
            return private(answer)
        answer = {
            "ticket": given.ticket,
            "order_no": given.order_no,
            "expires_at": given.expires_at.isoformat(),
            "server_time": timezone.now().isoformat(),
        }
        return private(answer, status=HTTPStatus.CREATED if given.is_new else HTTPStatus.OK)


class PurchasesView(ApiView):
    """``/purchases/``: POST is the hot path. The ticket is who is asking; no session, no SQL."""

    throttle_scope = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Count who asks for a list; a purchase is counted by its ticket."""
        if self._is_list():
            throttle(scope="any", request=request)
        super().initial(request, *args, **kwargs)

    def get_authenticators(self) -> list[BaseAuthentication]:
        """Look for a log-in only where a list is asked for."""
        return super().get_authenticators() if self._is_list() else []

    def get_permissions(self) -> Any:
        """Let anybody purchase who has a ticket."""
        return super().get_permissions() if self._is_list() else []

    def _is_list(self) -> bool:
        # There is no request while the schema is made.
        return getattr(self.request, "method", None) in {"GET", "HEAD"}

    @documented(answers={200: OpenPurchasesOutput}, tag="purchase")
    def get(self, request: Request) -> Response:
        """List what the asker has reserved and not paid, on whatever device he reserved it, newest first."""
        holdings = open_purchases(buyer_id=int(_buyer(request).pk))
        is_unknown = any(holding.status.state is PurchaseState.UNKNOWN for holding in holdings)
        wait = UNKNOWN_RETRY_SECONDS if is_unknown else None
        return private({"results": [_holding_body(holding) for holding in holdings]}, retry_after_seconds=wait)

    @documented(
        takes=PurchaseInput,
        answers={202: AcceptedOutput},
        raises=(
            errors.SoldOut,
            errors.NotEnoughLeft,
            errors.LimitReached,
            errors.NotStarted,
            errors.Ended,
            errors.Paused,
            errors.NotPreheated,
            errors.Busy,
            errors.GateUnavailable,
            errors.BadQuantity,
            errors.Conflict,
            errors.TicketInvalid,
            errors.TicketExpired,
            errors.PriceChanged,
        ),
        tag="purchase",
    )
    def post(self, request: Request) -> Response:
        """Answer 202 with the order number, the same for every repeat."""
        body = PurchaseInput(data=request.data)
        body.is_valid(raise_exception=True)
        throttle_in_process(scope="purchase", key=body.validated_data["ticket"])
        accepted = purchase(
            ticket=body.validated_data["ticket"],
            quantity=body.validated_data["quantity"],
            is_first=body.validated_data.get("attempt") == 1,
        )
        return private(accepted_body(accepted), status=HTTPStatus.ACCEPTED)


class PurchaseStatusView(ApiView):
    """``GET /purchases/{order_no}/``: what became of it; by ``Authorization: Ticket …`` or by session."""

    permission_classes = ()
    throttle_scope = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Count polls in the process by their ticket; any other header can be made up anew for each call."""
        if _has_ticket(request):
            throttle_in_process(scope="poll", key=request.headers["Authorization"])
        else:
            throttle(scope="any", request=request)
        super().initial(request, *args, **kwargs)

    def get_authenticators(self) -> list[BaseAuthentication]:
        """Look for a log-in only where no ticket says who is asking."""
        return [] if _has_ticket(self.request) else super().get_authenticators()

    @documented(
        answers={200: StatusOutput},
        raises=(errors.UnknownOrder, errors.TicketInvalid),
        auth=({"ticket": []}, {"session": []}),
        tag="purchase",
    )
    def get(self, request: Request, order_no: str) -> Response:
        """Answer the state; 404 for everybody whose order it is not."""
        status = purchase_status(order_no=order_no, buyer_id=_asker(request, order_no))
        return private(status_body(status), retry_after_seconds=status_wait(status))


def _buyer(request: Request) -> AbstractBaseUser:
    user = request.user
    assert isinstance(user, AbstractBaseUser)  # noqa: S101  IsAuthenticated has let him in
    return user


def ticket_holder(*, ticket: str, order_no: str) -> int:
    """Return whose ticket of this very order it is. Raises ``TicketInvalid``."""
    claims = read_ticket(ticket)
    if claims.order_no != order_no:
        raise TicketInvalid
    return claims.buyer_id


def _has_ticket(request: HttpRequest | Request | None) -> bool:
    # There is no request while the schema is made.
    return request is not None and request.headers.get("Authorization", "").startswith(TICKET_SCHEME)


def _asker(request: Request, order_no: str) -> int:
    """Who asks, by the ticket of this very order or by session."""
    if _has_ticket(request):
        ticket = request.headers["Authorization"].removeprefix(TICKET_SCHEME)
        return ticket_holder(ticket=ticket, order_no=order_no)
    if not request.user.is_authenticated:
        raise UnknownOrder
    return int(request.user.pk)


def accepted_body(accepted: Accepted) -> dict[str, Any]:
    """Say which order will be the buyer's, and where and when to ask about it."""
    return {
        "order_no": accepted.order_no,
        "status_url": status_url(accepted.order_no),
        "poll_after_ms": LIMITS.poll_after_ms,
    }


def _holding_body(holding: Holding) -> dict[str, Any]:
    status = holding.status
    return status_body(status) | {"item": holding.item_id, "status_url": status_url(status.order_no)}


def status_wait(status: PurchaseStatus) -> int | None:
    """Return the seconds after which asking again may tell more."""
    return UNKNOWN_RETRY_SECONDS if status.state is PurchaseState.UNKNOWN else None


def status_body(status: PurchaseStatus) -> dict[str, Any]:
    """Say what became of a purchase."""
    body: dict[str, Any] = {"order_no": status.order_no, "state": status.state}
    if status.reason:
        body["reason"] = status.reason
    if status.state is PurchaseState.QUEUED:
        body["poll_after_ms"] = LIMITS.poll_after_ms
    if status.order is not None:
        body["order"] = _order_body(status.order)
    return body


def _order_body(order: OrderView) -> dict[str, Any]:
    return {
        "number": order.number,
        "state": order.state,
        "quantity": order.quantity,
        "amount": str(order.amount),
        "pay_by": order.pay_by_at.isoformat(),
    }
