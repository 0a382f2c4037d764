"""Forms of the admin that change a sale before it is preheated: checked as the plan that it becomes by them.

Only what was changed is checked, so that a name can be mended while the window is long over. Of several items changed
on one page each is checked beside the others as they are stored; scheduling and preheating check them all together.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminDecimalFieldWidget

from seckill.models import FlashSale, SaleItem, SalePool
from seckill.plan_checks import Finding, Weight, check_added, check_limit, check_window
from seckill.sale_plan import PlannedItem

if TYPE_CHECKING:
    SaleBase = forms.ModelForm[FlashSale]
    PoolBase = forms.ModelForm[SalePool]
    ItemBase = forms.ModelForm[SaleItem]
else:
    SaleBase = PoolBase = ItemBase = forms.ModelForm


def item_fields(*, is_editable: bool) -> list[str]:
    """The fields of an item's page; where nothing can be typed, nothing is typed twice."""
    return ["pool", "sku", "price", *(["price_again"] if is_editable else []), "units"]


def _show(form: "forms.ModelForm[Any]", findings: Iterable[Finding]) -> None:
    for finding in findings:
        if finding.weight is Weight.ERROR:
            form.add_error(finding.field if finding.field in form.fields else None, finding.words)


class CheckedSaleForm(SaleBase):
    """A sale, whose window must make sense where it is changed."""

    def clean(self) -> Any:
        """Check the window."""
        facts = super().clean()
        if {"opens_at", "closes_at"}.intersection(self.changed_data) and not self.errors:
            window = {name: self.cleaned_data[name] for name in ("opens_at", "closes_at")}
            _show(self, check_window(now=timezone.now(), **window))
        return facts


class CheckedPoolForm(PoolBase):
    """A pool, whose limit must be one."""

    def clean(self) -> Any:
        """Check the limit."""
        facts = super().clean()
        if "limit_per_buyer" in self.changed_data and not self.errors:
            _show(self, check_limit(limit=self.cleaned_data["limit_per_buyer"], units=0))
        return facts


class CheckedItemForm(ItemBase):
    """An item, whose price is typed twice where it looks like a slip of the hand (Note [Suspicious prices])."""

    price_again = forms.DecimalField(
        label=_("price again"),
        required=False,
        max_digits=12,
        decimal_places=2,
        widget=UnfoldAdminDecimalFieldWidget,
        help_text=_("Only for a price below half of the list price, or far from the other variants of its product."),
    )

    @cached_property
    def changed_data(self) -> list[str]:
        """What was changed of the item; the second price is no part of it."""
        return [name for name in super().changed_data if name != "price_again"]

    def clean(self) -> Any:
        """Check the item beside the others of its sale."""
        facts = super().clean()
        pool = self.cleaned_data.get("pool")
        if self.changed_data and not self.errors and isinstance(pool, SalePool) and pool.sale_id:
            findings = check_added(pool=pool, items=[self._planned()], now=timezone.now(), without=self.instance.pk)
            _show(self, findings)
        return facts

    def _planned(self) -> PlannedItem:
        """The item as it will be; a price that stays beside its SKU counts as typed twice, it was checked before."""
        typed = self.cleaned_data
        is_as_before = not {"sku", "price"}.intersection(self.changed_data)
        again = typed["price"] if is_as_before else typed.get("price_again")
        return PlannedItem(sku_id=typed["sku"].pk, price=typed["price"], units=typed["units"], price_again=again)
