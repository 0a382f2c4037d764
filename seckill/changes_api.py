"""Changes by hand of what is on sale, over HTTP: units of an item, the window of a sale, taking a sale back."""

from functools import partial
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from inventory.changes_api import (
    DECISION_RAISES,
    ChangeOutput,
    ChangeQuery,
    ChangesView,
    DecisionView,
    ReasonInput,
)
from inventory.errors import ChangeNotAllowed
from rest.answers import private
from rest.documents import documented
from rest.fields import ChoiceField, InstantField, WholeNumberField
from seckill import errors
from seckill.adjusting import apply_item_adjustment
from seckill.change_tables import Counterpart, ItemAdjustment, WindowChange
from seckill.errors import UnknownSale
from seckill.followup import try_to_apply
from seckill.models import FlashSale
from seckill.operators_api import OperatorView, WhyInput
from seckill.windows import apply_window_change
from seckill.withdrawing import withdraw_sale


class ItemAdjustmentInput(ReasonInput):
    """An adjustment of units on sale to be."""

    item = WholeNumberField(min_value=1, max_value=2**62)
    delta = WholeNumberField(help_text="Units more, or, below zero, fewer.", min_value=-(2**31), max_value=2**31)
    counterpart = ChoiceField(choices=Counterpart.values, default=Counterpart.WAREHOUSE.value)


class ItemAdjustmentOutput(ChangeOutput):
    """An adjustment of units on sale."""

    item = serializers.IntegerField(source="item_id")
    delta = serializers.IntegerField()
    counterpart = serializers.ChoiceField(choices=Counterpart.values)
    units_possible = serializers.IntegerField(
        allow_null=True, help_text="With `REFUSED`: the change that would have been possible."
    )
    reconciliation = serializers.CharField(
        source="reconciliation.verdict", allow_null=True, default=None, help_text="What the books said after it."
    )


class ItemAdjustmentPageOutput(serializers.Serializer[None]):
    """A page of adjustments of units on sale."""

    results = ItemAdjustmentOutput(many=True)
    next_after = serializers.IntegerField(allow_null=True)


class WindowChangeInput(ReasonInput):
    """Another window to be."""

    sale = WholeNumberField(min_value=1, max_value=2**62)
    opens_at = InstantField()
    closes_at = InstantField()


class WindowChangeOutput(ChangeOutput):
    """A change of a sale's window."""

    sale = serializers.IntegerField(source="sale_id")
    opens_at = InstantField()
    closes_at = InstantField()


class WindowChangePageOutput(serializers.Serializer[None]):
    """A page of window changes."""

    results = WindowChangeOutput(many=True)
    next_after = serializers.IntegerField(allow_null=True)


class WithdrawOutput(serializers.Serializer[None]):
    """A sale that is a draft again."""

    sale = serializers.IntegerField()
    state = serializers.ChoiceField(choices=["draft"])


class ItemAdjustmentsView(ChangesView):
    """``/operators/item-adjustments/``."""

    table = ItemAdjustment
    output = ItemAdjustmentOutput

    @documented(answers={200: ItemAdjustmentPageOutput}, query=ChangeQuery, raises=(ChangeNotAllowed,), tag="operators")
    def get(self, request: Request) -> Response:
        """List adjustments of units on sale, newest first."""
        return self.answer_page(request)

    @documented(
        takes=ItemAdjustmentInput, answers={201: ItemAdjustmentOutput}, raises=(ChangeNotAllowed,), tag="operators"
    )
    def post(self, request: Request) -> Response:
        """Ask for more or fewer units of an item on sale; nothing changes before another person has approved it."""
        given = _checked(ItemAdjustmentInput, request)
        given["item_id"] = given.pop("item")
        return self.ask(request, given)


class ItemAdjustmentDecisionView(DecisionView):
    """Base of both decisions on an adjustment of units on sale."""

    table = ItemAdjustment
    output = ItemAdjustmentOutput

    def apply(self, *, change_id: int) -> None:
        """Apply it as far as that is possible now; what is left over is taken up by itself."""
        apply = partial(apply_item_adjustment, adjustment_id=change_id, clock=timezone.now)
        try_to_apply(name=f"item adjustment {change_id}", apply=apply)


class ApproveItemAdjustmentView(ItemAdjustmentDecisionView):
    """``POST /operators/item-adjustments/{id}/approve/``."""

    @documented(takes=ReasonInput, answers={200: ItemAdjustmentOutput}, raises=DECISION_RAISES, tag="operators")
    def post(self, request: Request, change_id: int) -> Response:
        """Approve another person's adjustment; `APPROVED` in the answer means that it is still being applied."""
        return self.say_yes(request, change_id)


class RejectItemAdjustmentView(ItemAdjustmentDecisionView):
    """``POST /operators/item-adjustments/{id}/reject/``."""

    @documented(takes=ReasonInput, answers={200: ItemAdjustmentOutput}, raises=DECISION_RAISES, tag="operators")
    def post(self, request: Request, change_id: int) -> Response:
        """Reject another person's adjustment."""
        return self.say_no(request, change_id)


class WindowChangesView(ChangesView):
    """``/operators/window-changes/``."""

    table = WindowChange
    output = WindowChangeOutput

    @documented(answers={200: WindowChangePageOutput}, query=ChangeQuery, raises=(ChangeNotAllowed,), tag="operators")
    def get(self, request: Request) -> Response:
        """List changes of sales' windows, newest first."""
        return self.answer_page(request)

    @documented(takes=WindowChangeInput, answers={201: WindowChangeOutput}, raises=(ChangeNotAllowed,), tag="operators")
    def post(self, request: Request) -> Response:
        """Ask for another window of a preheated sale; nothing changes before another person has approved it."""
        given = _checked(WindowChangeInput, request)
        given["sale_id"] = given.pop("sale")
        return self.ask(request, given)


class WindowChangeDecisionView(DecisionView):
    """Base of both decisions on a window."""

    table = WindowChange
    output = WindowChangeOutput

    def apply(self, *, change_id: int) -> None:
        """Apply it as far as that is possible now; what is left over is taken up by itself."""
        apply = partial(apply_window_change, change_id=change_id, clock=timezone.now)
        try_to_apply(name=f"window change {change_id}", apply=apply)


class ApproveWindowChangeView(WindowChangeDecisionView):
    """``POST /operators/window-changes/{id}/approve/``."""

    @documented(takes=ReasonInput, answers={200: WindowChangeOutput}, raises=DECISION_RAISES, tag="operators")
    def post(self, request: Request, change_id: int) -> Response:
        """Approve another person's window; `APPROVED` in the answer means that it is still being applied."""
        return self.say_yes(request, change_id)


class RejectWindowChangeView(WindowChangeDecisionView):
    """``POST /operators/window-changes/{id}/reject/``."""

    @documented(takes=ReasonInput, answers={200: WindowChangeOutput}, raises=DECISION_RAISES, tag="operators")
    def post(self, request: Request, change_id: int) -> Response:
        """Reject another person's window."""
        return self.say_no(request, change_id)


class WithdrawView(OperatorView):
    """``POST /operators/sales/{id}/withdraw/``."""

    @documented(
        takes=WhyInput,
        answers={200: WithdrawOutput},
        raises=(errors.UnknownSale, errors.SaleNotReady, errors.GateUnavailable, errors.RebuildRefused),
        tag="operators",
    )
    def post(self, request: Request, sale_id: int) -> Response:
        """Make a preheated sale of which nothing was ever reserved a draft again; its units go to the warehouse."""
        if not FlashSale.objects.filter(pk=sale_id).exists():
            raise UnknownSale
        withdraw_sale(sale_id=sale_id, clock=timezone.now, actor_id=request.user.pk)
        return private({"sale": sale_id, "state": "draft"})


def _checked(form: type[serializers.Serializer[None]], request: Request) -> dict[str, Any]:
    body = form(data=request.data)
    body.is_valid(raise_exception=True)
    return dict(body.validated_data)
