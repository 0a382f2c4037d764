"""The error table: every domain error has one answer, and what clients rely on in it does not change unseen."""

import inspect
import json
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

import accounts.errors
import inventory.errors
import orders.errors
import seckill.errors
from accounts.errors import (
    AccountError,
    Blocked,
    ExternalLoginOff,
    LockedOut,
    RegistrationRefused,
    TokenInvalid,
    WrongCredentials,
)
from config.api import problem_response
from config.errors import ANSWERS
from inventory.errors import (
    AlreadyDecided,
    ChangeNotAllowed,
    InventoryError,
    NoStockRow,
    NotEnoughOnHand,
    UnknownChange,
    UnknownProduct,
)
from orders.errors import (
    HonourRefused,
    NoticeInvalid,
    OrderError,
    OrderNotFound,
    PayWindowOver,
    ProviderUnavailable,
    RefundRefused,
    TransitionRefused,
    UnknownProvider,
)
from orders.states import OrderState
from rest.parsers import BodyTooLarge
from seckill.errors import (
    ArchiveWaits,
    BadQuantity,
    Busy,
    ChallengeFailed,
    ChallengeRequired,
    ChallengeTooEarly,
    CommitsLost,
    Conflict,
    DecisionRefused,
    Ended,
    GateUnavailable,
    LimitReached,
    LiveOrder,
    NotEnoughLeft,
    NotPreheated,
    NotStarted,
    Paused,
    PriceChanged,
    PurchaseRefused,
    QueueForked,
    RebuildRefused,
    SaleNotReady,
    SeckillError,
    SettlementError,
    SoldOut,
    TicketDenied,
    TicketExpired,
    TicketInvalid,
    UnknownItem,
    UnknownOrder,
    UnknownPool,
    UnknownSale,
)
from seckill.gate.codes import ReserveCode
from seckill.models import FlashSale
from seckill.order_numbers import new_order_number
from seckill.purchase import _refusal
from tests.support.shop import make_sale

BASES = {AccountError, SeckillError, PurchaseRefused, InventoryError, OrderError}
NUMBER = "7-0-aaaaaaaaaaaaaaaa"
UNTIL = datetime(2026, 6, 18, 12, 0, tzinfo=UTC)

# An error, its status and code, what else the body says, and the seconds to wait, if waiting helps.
TOLD: list[tuple[Exception, int, str, dict[str, Any], str | None]] = [
    (SoldOut(), 409, "sold_out", {}, None),
    (SoldOut(NUMBER), 409, "sold_out", {"status_url": "/api/v1/purchases/7-0-aaaaaaaaaaaaaaaa/"}, None),
    (NotEnoughLeft(units_left=2), 409, "not_enough_left", {"units_left": 2}, None),
    (LimitReached(units_held=1), 409, "limit_reached", {"units_held": 1, "orders": []}, None),
    (
        LimitReached(units_held=1, orders=(LiveOrder(number="7", state="PAID", pay_by_at=UNTIL),)),
        409,
        "limit_reached",
        {"units_held": 1, "orders": [{"number": "7", "state": "PAID", "pay_by": "2026-06-18T12:00:00+00:00"}]},
        None,
    ),
    (NotStarted(opens_in_ms=1), 409, "not_started", {"opens_in_ms": 1, "seconds_left": 1}, None),
    (NotStarted(opens_in_ms=2000), 409, "not_started", {"opens_in_ms": 2000, "seconds_left": 2}, None),
    (NotStarted(opens_in_ms=2001), 409, "not_started", {"opens_in_ms": 2001, "seconds_left": 3}, None),
    (Ended(), 410, "ended", {}, None),
    (Paused(), 409, "paused", {}, None),
    (NotPreheated(), 409, "not_preheated", {}, None),
    (Busy(), 503, "busy", {}, "1"),
    (BadQuantity(), 400, "bad_request", {}, None),
    (Conflict(), 409, "conflict", {}, None),
    (TicketInvalid(), 403, "ticket_invalid", {}, None),
    (TicketExpired(), 410, "ticket_expired", {}, None),
    (PriceChanged(), 409, "price_changed", {}, None),
    (GateUnavailable(), 503, "unavailable", {}, "2"),
    (TicketDenied(reason="members_only"), 403, "ticket_denied", {"reason": "members_only", "until": None}, None),
    (
        TicketDenied(reason="too_early", until=UNTIL),
        403,
        "ticket_denied",
        {"reason": "too_early", "until": "2026-06-18T12:00:00+00:00"},
        None,
    ),
    (ChallengeRequired(), 403, "challenge_required", {}, None),
    (ChallengeFailed(), 403, "challenge_failed", {}, None),
    (ChallengeTooEarly(), 429, "challenge_too_early", {}, "5"),
    (Blocked(), 403, "blocked", {}, None),
    (WrongCredentials(), 401, "wrong_credentials", {}, None),
    (TokenInvalid(), 401, "token_invalid", {}, None),
    (LockedOut(), 429, "locked_out", {}, "900"),
    (ExternalLoginOff(), 404, "not_found", {}, None),
    (RegistrationRefused(errors={"username": ["x"]}), 400, "bad_request", {"errors": {"username": ["x"]}}, None),
    (UnknownItem(), 404, "not_found", {}, None),
    (UnknownPool(), 404, "not_found", {}, None),
    (UnknownSale(), 404, "not_found", {}, None),
    (UnknownProduct(), 404, "not_found", {}, None),
    (UnknownOrder(), 404, "not_found", {}, None),
    (SaleNotReady(explanation="it has no items"), 409, "sale_not_ready", {"detail": "it has no items"}, None),
    (ArchiveWaits(explanation="it is still open"), 409, "archive_waits", {"detail": "it is still open"}, None),
    (DecisionRefused(explanation="it was read"), 409, "decision_refused", {"detail": "it was read"}, None),
    (SettlementError("it is stopped"), 503, "unavailable", {}, "30"),
    (QueueForked(explanation="seq 7 is taken"), 503, "unavailable", {}, "2"),
    (CommitsLost(explanation="up to 7, not to 9"), 503, "unavailable", {}, "30"),
    (RebuildRefused(explanation="another is at it"), 503, "unavailable", {}, "2"),
    (NotEnoughOnHand(sku_id=1, asked=2, on_hand=1), 409, "not_enough_on_hand", {}, None),
    (NoStockRow(sku_id=1), 409, "no_stock_row", {}, None),
    (UnknownChange(), 404, "not_found", {}, None),
    (ChangeNotAllowed(explanation="it is yours"), 403, "change_not_allowed", {"detail": "it is yours"}, None),
    (AlreadyDecided(state="REJECTED"), 409, "already_decided", {"state": "REJECTED"}, None),
    (TransitionRefused(number="1", to_state=OrderState.PAID), 409, "transition_refused", {}, None),
    (OrderNotFound(), 404, "not_found", {}, None),
    (PayWindowOver(), 410, "pay_window_over", {}, None),
    (UnknownProvider("cash"), 404, "unknown_provider", {}, None),
    (NoticeInvalid("the signature does not hold"), 400, "notice_invalid", {}, None),
    (ProviderUnavailable(), 503, "provider_unavailable", {}, "5"),
    (RefundRefused("at most 1 can be refunded"), 409, "refund_refused", {"detail": "at most 1 can be refunded"}, None),
    (HonourRefused("a refund is under way"), 409, "honour_refused", {"detail": "a refund is under way"}, None),
]

# What does not come from the domain: the servers behind, Django, DRF.
FOREIGN: list[tuple[Exception, int, str, str | None]] = [
    (OperationalError(2006, "gone away"), 503, "unavailable", "2"),
    (InterfaceError(0, ""), 503, "unavailable", "2"),
    (Http404(), 404, "not_found", None),
    (PermissionDenied(), 403, "forbidden", None),
    (exceptions.ParseError(), 400, "bad_request", None),
    (exceptions.ValidationError({"quantity": ["no"]}), 400, "bad_request", None),
    (exceptions.NotAuthenticated(), 401, "not_authenticated", None),
    (exceptions.PermissionDenied(), 403, "forbidden", None),
    (exceptions.MethodNotAllowed("PUT"), 405, "method_not_allowed", None),
    (exceptions.NotAcceptable(), 406, "not_acceptable", None),
    (BodyTooLarge(), 413, "too_large", None),
    (exceptions.UnsupportedMediaType("text/plain"), 415, "unsupported_media_type", None),
    (exceptions.Throttled(wait=30), 429, "throttled", "30"),
    (exceptions.Throttled(wait=0.1), 429, "throttled", "1"),
    (exceptions.Throttled(wait=None), 429, "throttled", "1"),
]


def classes_of(module: ModuleType) -> set[type[Exception]]:
    found = inspect.getmembers(module, inspect.isclass)
    return {kind for _, kind in found if issubclass(kind, Exception) and kind.__module__ == module.__name__}


DOMAIN_ERRORS = {
    kind for module in (seckill.errors, orders.errors, inventory.errors, accounts.errors) for kind in classes_of(module)
} - BASES


def told(error: Exception) -> tuple[Response, dict[str, Any]]:
    """The answer to an error, and its body as it is sent."""
    response = problem_response(error, {})
    assert response is not None
    body = json.loads(JSONRenderer().render(response.data))
    assert response.content_type == "application/problem+json"
    assert response["Cache-Control"] == "no-store"
    assert (body["status"], body["type"]) == (response.status_code, f"/problems/{body['code']}")
    assert len(body["title"]) > 3
    return response, body


def test_every_domain_error_has_an_answer_meant_for_it() -> None:
    """An answer to a base class of everything would be an answer to nothing."""
    unanswered = {kind for kind in DOMAIN_ERRORS if not any(ancestor in ANSWERS for ancestor in kind.__mro__)}
    assert unanswered == set()
    assert not BASES & set(ANSWERS)


@pytest.mark.parametrize(("error", "status", "code", "extras", "wait"), TOLD)
def test_codes_are_stable(error: Exception, status: int, code: str, extras: dict[str, Any], wait: str | None) -> None:
    response, body = told(error)
    assert (response.status_code, body["code"], response.get("Retry-After")) == (status, code, wait)
    assert body.keys() - {"type", "title", "status", "code"} == extras.keys()
    assert {name: body[name] for name in extras} == extras


def test_every_answer_is_told_above() -> None:
    assert {type(error) for error, *_ in TOLD} == set(ANSWERS)
    assert set(ANSWERS) <= DOMAIN_ERRORS


@pytest.mark.parametrize(("error", "status", "code", "wait"), FOREIGN)
def test_foreign_errors_are_told_the_same_way(error: Exception, status: int, code: str, wait: str | None) -> None:
    """CASES 40f: whoever is sent away for a while learns for how long."""
    response, body = told(error)
    assert (response.status_code, body["code"], response.get("Retry-After")) == (status, code, wait)


def test_what_nobody_foresaw_is_no_answer() -> None:
    """It is raised, logged and answered by Django with a 500 that tells nothing."""
    assert problem_response(KeyError("quantity"), {}) is None


REFUSALS = {
    ReserveCode.SOLD_OUT: SoldOut,
    ReserveCode.NOT_PREHEATED: NotPreheated,
    ReserveCode.LIMIT_REACHED: LimitReached,
    ReserveCode.NOT_STARTED: NotStarted,
    ReserveCode.ENDED: Ended,
    ReserveCode.PAUSED: Paused,
    ReserveCode.BUSY: Busy,
    ReserveCode.UNAVAILABLE: GateUnavailable,
    ReserveCode.BAD_QUANTITY: BadQuantity,
    ReserveCode.CONFLICT: Conflict,
    ReserveCode.TICKET_EXPIRED: TicketExpired,
    ReserveCode.PRICE_CHANGED: PriceChanged,
}


def test_every_refusal_of_the_gate_has_an_answer() -> None:
    codes = [code for code in ReserveCode if code <= 0]
    assert {code: type(_refusal(code=code, number=0, order_no=NUMBER)) for code in codes} == REFUSALS
    assert set(REFUSALS.values()) <= set(ANSWERS)


def test_the_gate_s_number_goes_with_the_refusal() -> None:
    left = _refusal(code=ReserveCode.SOLD_OUT, number=2, order_no=NUMBER)
    held = _refusal(code=ReserveCode.LIMIT_REACHED, number=3, order_no=NUMBER)
    early = _refusal(code=ReserveCode.NOT_STARTED, number=4, order_no=NUMBER)
    assert (left, held, early) == (NotEnoughLeft(units_left=2), LimitReached(units_held=3), NotStarted(opens_in_ms=4))


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("DRAFT", NotPreheated),
        ("SCHEDULED", NotPreheated),
        ("PREHEATED", GateUnavailable),
        ("ARCHIVING", Ended),
        ("ARCHIVED", Ended),
    ],
)
def test_a_bucket_that_is_missing_is_told_from_one_that_was_never_there(state: str, kind: type[Exception]) -> None:
    """Law 6: a sale that Redis has lost is an outage, not "not preheated"."""
    shop = make_sale()
    FlashSale.objects.update(state=state)
    error = _refusal(code=ReserveCode.NOT_PREHEATED, number=0, order_no=new_order_number(shop.bucket))
    assert type(error) is kind
