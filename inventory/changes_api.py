"""Changes by hand over HTTP: list, ask, approve, reject; the base for every table of them, and the warehouse's."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inventory import errors
from inventory.adjusting import apply_stock_adjustment
from inventory.changes import (
    REASON_LENGTH_MAX,
    ChangeState,
    ManualChange,
    approve,
    may_decide,
    reject,
    submit,
    waiting_for,
)
from inventory.models import StockAdjustment
from rest.answers import private
from rest.documents import documented
from rest.fields import InstantField, TextField, WholeNumberField
from rest.pages import PageQuery, page_of, read_query
from rest.permissions import IsStaff
from rest.recorded import RecordedView

DECISION_RAISES = (errors.UnknownChange, errors.ChangeNotAllowed, errors.AlreadyDecided)


class ChangeQuery(PageQuery):
    """Which changes."""

    state = serializers.ChoiceField(choices=ChangeState.values, required=False)
    inbox = serializers.ChoiceField(
        choices=["waiting", "mine"], required=False, help_text="Those I may decide on, or those I asked for."
    )


class ReasonInput(serializers.Serializer[None]):
    """Why."""

    reason = TextField(min_length=3, max_length=REASON_LENGTH_MAX)


class ChangeOutput(serializers.Serializer[Any]):
    """What every change by hand has."""

    id = serializers.IntegerField()
    state = serializers.ChoiceField(choices=ChangeState.values)
    reason = serializers.CharField()
    requested_by = serializers.CharField(source="requested_by.get_username")
    requested_at = InstantField()
    decided_by = serializers.CharField(source="decided_by.get_username", allow_null=True, default=None)
    decided_at = InstantField(allow_null=True)
    decision_reason = serializers.CharField()
    is_by_one_person = serializers.BooleanField()
    finished_at = InstantField(allow_null=True)
    outcome = serializers.CharField()
    may_decide = serializers.SerializerMethodField(help_text="Whether the asker may approve or reject it now.")

    def get_may_decide(self, change: ManualChange) -> bool:
        """Tell whether the asker may decide."""
        return may_decide(change=change, by=self.context["by"])


class ChangesView(RecordedView):
    """Base: the requests of one table, newest first, and a new one."""

    permission_classes = (IsStaff,)
    table: ClassVar[type[ManualChange]]
    output: ClassVar[type[ChangeOutput]]

    def answer_page(self, request: Request) -> Response:
        """List them to whoever may ask, decide or look."""
        _require_any_permission(self.table, request)
        query = read_query(ChangeQuery, request)
        rows = self.table.objects.select_related("requested_by", "decided_by")
        if query.get("inbox") == "waiting":
            rows = rows.filter(pk__in=waiting_for(table=self.table, by=request.user).values("pk"))
        elif query.get("inbox") == "mine":
            rows = rows.filter(requested_by_id=request.user.pk)
        if "state" in query:
            rows = rows.filter(state=query["state"])
        page = page_of(rows=rows, query=query, order_by="-pk", view=lambda row: row)
        context = {"by": request.user}
        results = self.output(page.results, many=True, context=context).data
        return private({"results": results, "next_after": page.next_after})

    def ask(self, request: Request, values: Mapping[str, Any]) -> Response:
        """Write the request."""
        change = submit(change=self.table(**values), by=request.user, now=timezone.now())
        return private(self.output(change, context={"by": request.user}).data, status=HTTPStatus.CREATED)


class DecisionView(RecordedView):
    """Base: a second person's yes or no."""

    permission_classes = (IsStaff,)
    table: ClassVar[type[ManualChange]]
    output: ClassVar[type[ChangeOutput]]

    def apply(self, *, change_id: int) -> None:
        """Apply an approved change, as far as that is possible now."""
        raise NotImplementedError

    def say_yes(self, request: Request, change_id: int) -> Response:
        """Approve, apply, and answer the change as it stands then."""
        reason = _reason(request)
        approve(table=self.table, change_id=change_id, by=request.user, reason=reason, now=timezone.now())
        self.apply(change_id=change_id)
        return self._answer(request, change_id)

    def say_no(self, request: Request, change_id: int) -> Response:
        """Reject."""
        reason = _reason(request)
        reject(table=self.table, change_id=change_id, by=request.user, reason=reason, now=timezone.now())
        return self._answer(request, change_id)

    def _answer(self, request: Request, change_id: int) -> Response:
        change = self.table.objects.get(pk=change_id)
        return private(self.output(change, context={"by": request.user}).data)


class StockAdjustmentInput(ReasonInput):
    """A warehouse adjustment to be."""

    sku = WholeNumberField(min_value=1, max_value=2**62)
    delta = WholeNumberField(help_text="Units more, or, below zero, fewer.", min_value=-(2**31), max_value=2**31)


class StockAdjustmentOutput(ChangeOutput):
    """A warehouse adjustment."""

    sku = serializers.IntegerField(source="sku_id")
    delta = serializers.IntegerField()
    on_hand_after = serializers.IntegerField(allow_null=True)


class StockAdjustmentPageOutput(serializers.Serializer[None]):
    """A page of warehouse adjustments."""

    results = StockAdjustmentOutput(many=True)
    next_after = serializers.IntegerField(allow_null=True)


class StockAdjustmentsView(ChangesView):
    """``/operators/stock-adjustments/``."""

    table = StockAdjustment
    output = StockAdjustmentOutput

    @documented(
        answers={200: StockAdjustmentPageOutput}, query=ChangeQuery, raises=(errors.ChangeNotAllowed,), tag="operators"
    )
    def get(self, request: Request) -> Response:
        """List warehouse adjustments, newest first."""
        return self.answer_page(request)

    @documented(
        takes=StockAdjustmentInput,
        answers={201: StockAdjustmentOutput},
        raises=(errors.ChangeNotAllowed,),
        tag="operators",
    )
    def post(self, request: Request) -> Response:
        """Ask for a warehouse adjustment; nothing changes before another person has approved it."""
        body = StockAdjustmentInput(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        values = {"sku_id": given["sku"], "delta": given["delta"], "reason": given["reason"]}
        return self.ask(request, values)


class StockAdjustmentDecisionView(DecisionView):
    """Base of both decisions on a warehouse adjustment."""

    table = StockAdjustment
    output = StockAdjustmentOutput

    def apply(self, *, change_id: int) -> None:
        """Apply an approved adjustment."""
        apply_stock_adjustment(adjustment_id=change_id, now=timezone.now())


class ApproveStockAdjustmentView(StockAdjustmentDecisionView):
    """``POST /operators/stock-adjustments/{id}/approve/``."""

    @documented(takes=ReasonInput, answers={200: StockAdjustmentOutput}, raises=DECISION_RAISES, tag="operators")
    def post(self, request: Request, change_id: int) -> Response:
        """Approve another person's adjustment; it is applied at once."""
        return self.say_yes(request, change_id)


class RejectStockAdjustmentView(StockAdjustmentDecisionView):
    """``POST /operators/stock-adjustments/{id}/reject/``."""

    @documented(takes=ReasonInput, answers={200: StockAdjustmentOutput}, raises=DECISION_RAISES, tag="operators")
    def post(self, request: Request, change_id: int) -> Response:
        """Reject another person's adjustment."""
        return self.say_no(request, change_id)


def _reason(request: Request) -> str:
    body = ReasonInput(data=request.data)
    body.is_valid(raise_exception=True)
    return str(body.validated_data["reason"])


def _require_any_permission(table: type[ManualChange], request: Request) -> None:
    options = table._meta  # noqa: SLF001  Django documents it as an interface
    names = [f"{options.app_label}.{action}_{options.model_name}" for action in ("view", "add", "approve")]
    if not any(request.user.has_perm(name) for name in names):
        raise errors.ChangeNotAllowed(explanation="You do not have the permission for that.")
