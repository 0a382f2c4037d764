"""The one table from domain errors to HTTP answers (RFC 9457); a test fails when an error is missing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise

from accounts.errors import (
    Blocked,
    ExternalLoginOff,
    LockedOut,
    RegistrationRefused,
    TokenInvalid,
    WrongCredentials,
)
from inventory.errors import (
    AlreadyDecided,
    ChangeNotAllowed,
    NoStockRow,
    NotEnoughOnHand,
    UnknownChange,
    UnknownProduct,
)
from orders.errors import (
    HonourRefused,
    NoticeInvalid,
    OrderNotFound,
    PayWindowOver,
    ProviderUnavailable,
    RefundRefused,
    TransitionRefused,
    UnknownProvider,
)
from seckill import errors
from seckill.links import status_url


def _live_order(order: errors.LiveOrder) -> dict[str, Any]:
    return {
        "number": order.number,
        "state": order.state,
        "pay_by": order.pay_by_at.isoformat() if order.pay_by_at else None,
    }


def _where_to_ask(error: errors.SoldOut | errors.Ended | errors.TicketExpired) -> dict[str, Any]:
    """Who has lost a reply asks there before he believes this one."""
    return {"status_url": status_url(error.order_no)} if error.order_no else {}


def _no_extras(_error: Any) -> dict[str, Any]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How one error is told: a stable code for programs, a title for people."""

    status: HTTPStatus
    code: str
    title: StrOrPromise
    retry_after_seconds: int | None = None
    extras: Callable[[Any], dict[str, Any]] = _no_extras


ANSWERS: Mapping[type[Exception], Answer] = {
    errors.SoldOut: Answer(
        status=HTTPStatus.CONFLICT, code="sold_out", title=_("Everything is taken."), extras=_where_to_ask
    ),
    errors.NotEnoughLeft: Answer(
        status=HTTPStatus.CONFLICT,
        code="not_enough_left",
        title=_("Fewer units are left than you asked for."),
        extras=lambda error: {"units_left": error.units_left},
    ),
    errors.LimitReached: Answer(
        status=HTTPStatus.CONFLICT,
        code="limit_reached",
        title=_("You already have as many as one buyer may have."),
        extras=lambda error: {"units_held": error.units_held, "orders": [_live_order(o) for o in error.orders]},
    ),
    errors.NotStarted: Answer(
        status=HTTPStatus.CONFLICT,
        code="not_started",
        title=_("The sale has not started yet."),
        extras=lambda error: {"opens_in_ms": error.opens_in_ms, "seconds_left": -(-error.opens_in_ms // 1000)},
    ),
    errors.Paused: Answer(status=HTTPStatus.CONFLICT, code="paused", title=_("The sale is paused.")),
    errors.NotPreheated: Answer(
        status=HTTPStatus.CONFLICT, code="not_preheated", title=_("The sale is not ready yet.")
    ),
    errors.Conflict: Answer(
        status=HTTPStatus.CONFLICT, code="conflict", title=_("This ticket was already used for another quantity.")
    ),
    errors.Ended: Answer(status=HTTPStatus.GONE, code="ended", title=_("The sale is over."), extras=_where_to_ask),
    errors.TicketExpired: Answer(
        status=HTTPStatus.GONE,
        code="ticket_expired",
        title=_("This ticket has expired; please ask for a new one."),
        extras=_where_to_ask,
    ),
    errors.PriceChanged: Answer(
        status=HTTPStatus.CONFLICT,
        code="price_changed",
        title=_("The price has changed since this ticket was issued; please ask for your ticket again."),
    ),
    errors.Busy: Answer(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        code="busy",
        title=_("Very many people are buying. Please try again in a moment."),
        retry_after_seconds=1,
    ),
    errors.GateUnavailable: Answer(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        code="unavailable",
        title=_("The shop is catching its breath. Please repeat with the same ticket."),
        retry_after_seconds=2,
    ),
    errors.BadQuantity: Answer(
        status=HTTPStatus.BAD_REQUEST, code="bad_request", title=_("The quantity must be a whole number from 1.")
    ),
    errors.TicketInvalid: Answer(
        status=HTTPStatus.FORBIDDEN, code="ticket_invalid", title=_("This ticket is not valid.")
    ),
    errors.TicketDenied: Answer(
        status=HTTPStatus.FORBIDDEN,
        code="ticket_denied",
        title=_("You cannot take part in this sale."),
        extras=lambda error: {"reason": error.reason, "until": error.until and error.until.isoformat()},
    ),
    errors.ChallengeRequired: Answer(
        status=HTTPStatus.FORBIDDEN, code="challenge_required", title=_("Please solve this item's challenge first.")
    ),
    errors.ChallengeFailed: Answer(
        status=HTTPStatus.FORBIDDEN,
        code="challenge_failed",
        title=_("This proof is not good for a ticket; please ask for a new challenge."),
    ),
    errors.ChallengeTooEarly: Answer(
        status=HTTPStatus.TOO_MANY_REQUESTS,
        code="challenge_too_early",
        title=_("Your waiting time is not over yet."),
        retry_after_seconds=5,
    ),
    errors.UnknownItem: Answer(status=HTTPStatus.NOT_FOUND, code="not_found", title=_("There is no such item.")),
    errors.UnknownSale: Answer(status=HTTPStatus.NOT_FOUND, code="not_found", title=_("There is no such sale.")),
    errors.UnknownPool: Answer(status=HTTPStatus.NOT_FOUND, code="not_found", title=_("There is no such pool.")),
    errors.UnknownOrder: Answer(status=HTTPStatus.NOT_FOUND, code="not_found", title=_("There is no such order.")),
    errors.SaleNotReady: Answer(
        status=HTTPStatus.CONFLICT,
        code="sale_not_ready",
        title=_("The sale is not in a state for that."),
        extras=lambda error: {"detail": error.explanation},
    ),
    errors.ArchiveWaits: Answer(
        status=HTTPStatus.CONFLICT,
        code="archive_waits",
        title=_("The sale cannot be archived now."),
        extras=lambda error: {"detail": error.explanation},
    ),
    errors.DecisionRefused: Answer(
        status=HTTPStatus.CONFLICT,
        code="decision_refused",
        title=_("This reservation cannot be decided so."),
        extras=lambda error: {"detail": error.explanation},
    ),
    errors.RebuildRefused: Answer(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        code="unavailable",
        title=_("A rebuild is under way."),
        retry_after_seconds=2,
    ),
    errors.SettlementError: Answer(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        code="unavailable",
        title=_("Settlement is stopped."),
        retry_after_seconds=30,
    ),
    errors.QueueForked: Answer(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        code="unavailable",
        title=_("A rebuild is under way."),
        retry_after_seconds=2,
    ),
    errors.CommitsLost: Answer(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        code="unavailable",
        title=_("The shop is checking its books."),
        retry_after_seconds=30,
    ),
    Blocked: Answer(status=HTTPStatus.FORBIDDEN, code="blocked", title=_("You cannot use this shop.")),
    WrongCredentials: Answer(
        status=HTTPStatus.UNAUTHORIZED, code="wrong_credentials", title=_("Name and password do not belong together.")
    ),
    TokenInvalid: Answer(
        status=HTTPStatus.UNAUTHORIZED,
        code="token_invalid",
        title=_("This token is not valid any more; please log in."),
    ),
    LockedOut: Answer(
        status=HTTPStatus.TOO_MANY_REQUESTS,
        code="locked_out",
        title=_("Too many wrong passwords. Please try again later."),
        retry_after_seconds=900,
    ),
    ExternalLoginOff: Answer(
        status=HTTPStatus.NOT_FOUND, code="not_found", title=_("This shop knows no other log-in service.")
    ),
    RegistrationRefused: Answer(
        status=HTTPStatus.BAD_REQUEST,
        code="bad_request",
        title=_("No account can be made of this."),
        extras=lambda error: {"errors": error.errors},
    ),
    UnknownProduct: Answer(status=HTTPStatus.NOT_FOUND, code="not_found", title=_("There is no such product.")),
    NotEnoughOnHand: Answer(
        status=HTTPStatus.CONFLICT, code="not_enough_on_hand", title=_("The warehouse has fewer units.")
    ),
    NoStockRow: Answer(
        status=HTTPStatus.CONFLICT, code="no_stock_row", title=_("The warehouse has no record of this article.")
    ),
    UnknownChange: Answer(status=HTTPStatus.NOT_FOUND, code="not_found", title=_("There is no such request.")),
    ChangeNotAllowed: Answer(
        status=HTTPStatus.FORBIDDEN,
        code="change_not_allowed",
        title=_("You may not do that with this request."),
        extras=lambda error: {"detail": error.explanation},
    ),
    AlreadyDecided: Answer(
        status=HTTPStatus.CONFLICT,
        code="already_decided",
        title=_("This request was decided already."),
        extras=lambda error: {"state": error.state},
    ),
    TransitionRefused: Answer(
        status=HTTPStatus.CONFLICT, code="transition_refused", title=_("The order is not in a state for that.")
    ),
    OrderNotFound: Answer(status=HTTPStatus.NOT_FOUND, code="not_found", title=_("There is no such order.")),
    PayWindowOver: Answer(
        status=HTTPStatus.GONE, code="pay_window_over", title=_("The time to pay for this order is over.")
    ),
    UnknownProvider: Answer(
        status=HTTPStatus.NOT_FOUND, code="unknown_provider", title=_("There is no such way to pay.")
    ),
    NoticeInvalid: Answer(
        status=HTTPStatus.BAD_REQUEST, code="notice_invalid", title=_("The notification is not genuine.")
    ),
    ProviderUnavailable: Answer(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        code="provider_unavailable",
        title=_("The payment provider does not answer. Please try again in a moment."),
        retry_after_seconds=5,
    ),
    RefundRefused: Answer(
        status=HTTPStatus.CONFLICT,
        code="refund_refused",
        title=_("The money cannot be given back so."),
        extras=lambda error: {"detail": error.explanation},
    ),
    HonourRefused: Answer(
        status=HTTPStatus.CONFLICT,
        code="honour_refused",
        title=_("The payment cannot be honoured."),
        extras=lambda error: {"detail": error.explanation},
    ),
}
