"""The operators' API: preheat, pause, resume, the books of an item, reconcile now."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, ClassVar

from django.utils import timezone
from rest_framework import serializers
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response

from actions.models import REASON_LENGTH_MAX
from rest.answers import private
from rest.documents import documented
from rest.fields import TextField
from rest.permissions import StaffWith
from rest.recorded import RecordedView
from seckill import errors
from seckill.errors import GateUnavailable, RebuildRefused, UnknownItem, UnknownPool, UnknownSale
from seckill.gate.keys import BucketRef
from seckill.models import Bucket, FlashSale, SaleItem, SalePool
from seckill.pausing import pause_item, resume_item
from seckill.preheat import preheat_sale
from seckill.reconciliation import BucketReport, ItemBalance, Verdict
from seckill.repair import reconcile_and_repair
from seckill.stock_audit import BucketBooks, audit_item

CHANGE = ("seckill.change_saleitem",)
VIEW = ("seckill.view_saleitem",)


class WhyInput(serializers.Serializer[None]):
    """Why, for the action log; a program that does what was decided elsewhere may leave it out."""

    reason = TextField(required=False, allow_blank=True, max_length=REASON_LENGTH_MAX)


class PreheatOutput(serializers.Serializer[None]):
    """A sale that is preheated in MySQL."""

    sale = serializers.IntegerField()
    state = serializers.ChoiceField(choices=["preheated"])
    is_in_redis = serializers.BooleanField(help_text="False: Redis was away; the sweep brings it there.")


class PauseOutput(serializers.Serializer[None]):
    """An operator's wish, kept in MySQL."""

    item = serializers.IntegerField()
    is_paused = serializers.BooleanField()
    is_in_redis = serializers.BooleanField(help_text="False: Redis was away; the sweep carries it there.")


class NumbersOutput(serializers.Serializer[None]):
    """Law 7: allocated = sold + left + in flight + owed + adjusting + drift."""

    allocated = serializers.IntegerField()
    sold = serializers.IntegerField()
    left = serializers.IntegerField()
    in_flight = serializers.IntegerField()
    owed = serializers.IntegerField()
    adjusting = serializers.IntegerField(required=False)
    drift = serializers.IntegerField(help_text="Above zero: Redis has too few; below: too many.")


class ItemNumbersOutput(NumbersOutput):
    """The numbers of one item."""

    item = serializers.IntegerField()


class BooksOutput(serializers.Serializer[None]):
    """One bucket's books of an item."""

    bucket = serializers.CharField()
    verdict = serializers.ChoiceField(choices=Verdict.values)
    allocated = serializers.IntegerField()
    sold = serializers.IntegerField()
    ledger = serializers.IntegerField(help_text="What the ledger has on the item's account: allocated minus sold.")
    numbers = NumbersOutput(allow_null=True, help_text="Null where Redis could not be asked.")
    explanation = serializers.CharField()


class AuditOutput(serializers.Serializer[None]):
    """The books of an item."""

    item = serializers.IntegerField()
    is_balanced = serializers.BooleanField(help_text="All buckets balanced, in Redis, MySQL and the ledger.")
    buckets = BooksOutput(many=True)


class ReportOutput(serializers.Serializer[None]):
    """What a reconciliation found in one bucket."""

    bucket = serializers.CharField()
    verdict = serializers.ChoiceField(choices=Verdict.values)
    drift = serializers.IntegerField()
    explanation = serializers.CharField()
    items = ItemNumbersOutput(many=True)


class ReconcileOutput(serializers.Serializer[None]):
    """What a reconciliation found in a pool."""

    pool = serializers.IntegerField()
    buckets = ReportOutput(many=True)


class OperatorView(RecordedView):
    """Base of the operators' calls."""

    permission_classes = (StaffWith,)
    needs: ClassVar[tuple[str, ...]] = CHANGE

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse a reason that is none, before anything is done."""
        super().initial(request, *args, **kwargs)
        if request.method not in SAFE_METHODS:
            WhyInput(data=request.data).is_valid(raise_exception=True)


class PreheatView(OperatorView):
    """``POST /operators/sales/{id}/preheat/``."""

    @documented(
        takes=WhyInput,
        answers={200: PreheatOutput, 202: PreheatOutput},
        raises=(errors.UnknownSale, errors.SaleNotReady),
        tag="operators",
    )
    def post(self, request: Request, sale_id: int) -> Response:
        """Allocate a sale's units and bring it into Redis; buying begins when its window does."""
        if not FlashSale.objects.filter(pk=sale_id).exists():
            raise UnknownSale
        is_there = _reaches_redis(lambda: preheat_sale(sale_id=sale_id, clock=timezone.now))
        return private({"sale": sale_id, "state": "preheated", "is_in_redis": is_there}, status=_status(is_there))


class PauseView(OperatorView):
    """``POST /operators/items/{id}/pause/``."""

    @documented(
        takes=WhyInput,
        answers={200: PauseOutput, 202: PauseOutput},
        raises=(errors.UnknownItem, errors.SaleNotReady),
        tag="operators",
    )
    def post(self, request: Request, item_id: int) -> Response:
        """Refuse new reservations of an item from now on; what is reserved stays reserved. May be repeated."""
        _require_item(item_id)
        is_there = _reaches_redis(lambda: pause_item(item_id=item_id))
        return private({"item": item_id, "is_paused": True, "is_in_redis": is_there}, status=_status(is_there))


class ResumeView(OperatorView):
    """``POST /operators/items/{id}/resume/``."""

    @documented(
        takes=WhyInput,
        answers={200: PauseOutput, 202: PauseOutput},
        raises=(errors.UnknownItem, errors.SaleNotReady),
        tag="operators",
    )
    def post(self, request: Request, item_id: int) -> Response:
        """Take a pause back; what the system has frozen stays frozen. May be repeated."""
        _require_item(item_id)
        is_there = _reaches_redis(lambda: resume_item(item_id=item_id))
        return private({"item": item_id, "is_paused": False, "is_in_redis": is_there}, status=_status(is_there))


class AuditView(OperatorView):
    """``GET /operators/items/{id}/audit/``."""

    needs = VIEW

    @documented(answers={200: AuditOutput}, raises=(errors.UnknownItem,), tag="operators")
    def get(self, request: Request, item_id: int) -> Response:
        """Read the books of an item: MySQL, Redis and the ledger at one instant. Changes nothing."""
        books = audit_item(item_id=item_id)
        is_balanced = all(b.verdict == Verdict.BALANCED and b.ledger == b.allocated - b.sold for b in books)
        return private({"item": item_id, "is_balanced": is_balanced, "buckets": [_books_body(b) for b in books]})


class ReconcileView(OperatorView):
    """``POST /operators/pools/{id}/reconcile/``."""

    @documented(
        takes=WhyInput,
        answers={200: ReconcileOutput},
        raises=(errors.UnknownPool, errors.SettlementError, errors.GateUnavailable),
        tag="operators",
    )
    def post(self, request: Request, pool_id: int) -> Response:
        """Settle, compare and repair what is proved, as the run of every minute does, now."""
        if not SalePool.objects.filter(pk=pool_id).exists():
            raise UnknownPool
        numbers = Bucket.objects.filter(pool_id=pool_id).order_by("number").values_list("number", flat=True)
        buckets = [BucketRef(pool_id=pool_id, number=number) for number in numbers]
        reports = [reconcile_and_repair(bucket=bucket, clock=timezone.now) for bucket in buckets]
        return private({"pool": pool_id, "buckets": [_report_body(report) for report in reports]})


def _require_item(item_id: int) -> None:
    if not SaleItem.objects.filter(pk=item_id).exists():
        raise UnknownItem


def _reaches_redis(action: Callable[[], None]) -> bool:
    """Do what MySQL keeps in any case; tell whether Redis was told too."""
    try:
        action()
    except (GateUnavailable, RebuildRefused):
        return False
    return True


def _status(is_in_redis: bool) -> HTTPStatus:  # noqa: FBT001  there is nothing else to say
    return HTTPStatus.OK if is_in_redis else HTTPStatus.ACCEPTED


def _books_body(books: BucketBooks) -> dict[str, Any]:
    return {
        "bucket": str(books.bucket),
        "verdict": books.verdict,
        "allocated": books.allocated,
        "sold": books.sold,
        "ledger": books.ledger,
        "numbers": None if books.gate is None else _numbers(books.gate),
        "explanation": books.explanation,
    }


def _report_body(report: BucketReport) -> dict[str, Any]:
    return {
        "bucket": str(report.bucket),
        "verdict": report.verdict,
        "drift": report.drift,
        "explanation": report.explanation,
        "items": [{"item": item.item_id, **_numbers(item)} for item in report.items],
    }


def _numbers(item: ItemBalance) -> dict[str, int]:
    terms = {name: units for name, units in vars(item).items() if name != "item_id"}
    return {**terms, "drift": item.drift}
