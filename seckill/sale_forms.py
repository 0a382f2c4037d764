"""The forms of the sale desk: a sale with its pools and items, a new window, a reason, a file."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from django import forms
from django.forms import BaseFormSet, formset_factory
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminFileFieldWidget

from inventory.changes import REASON_LENGTH_MAX
from inventory.models import Sku
from rest.desk import DeskForm
from seckill.models import SalePool
from seckill.plan_checks import Finding
from seckill.sale_making import SaleDetails
from seckill.sale_plan import PlannedItem, PlannedPool, SalePlan
from seckill.spreading import BUCKETS_MAX

POOLS_MAX = 20
ITEMS_MAX = 200
EMPTY_LINES = 3


def moment_field(label: Any) -> forms.DateTimeField:
    """A moment in the shop's zone, to the minute."""
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    return forms.DateTimeField(label=label, widget=widget)


class SaleForm(DeskForm):
    """The sale itself."""

    name = forms.CharField(label=gettext_lazy("name"), max_length=200)
    opens_at = moment_field(gettext_lazy("opens at"))
    closes_at = moment_field(gettext_lazy("closes at"))
    pay_window_minutes = forms.IntegerField(
        label=gettext_lazy("pay window (minutes)"), min_value=1, max_value=10_000, initial=15
    )
    preheat_minutes = forms.IntegerField(
        label=gettext_lazy("preheat before the opening (minutes)"), min_value=1, max_value=10_000, initial=15
    )
    has_challenge = forms.BooleanField(label=gettext_lazy("challenge before the ticket"), required=False)
    rules = forms.CharField(label=gettext_lazy("rules"), required=False, widget=forms.Textarea(attrs={"rows": 3}))


class PoolForm(DeskForm):
    """One pool; items name it by its number on the page."""

    name = forms.CharField(label=gettext_lazy("name"), max_length=100, required=False)
    limit_per_buyer = forms.IntegerField(label=gettext_lazy("limit per buyer"), initial=1, max_value=1_000_000)
    bucket_count = forms.IntegerField(
        label=gettext_lazy("buckets"), min_value=1, max_value=BUCKETS_MAX, initial=1, required=False
    )


class ItemForm(DeskForm):
    """One item; a line that is left empty is no item."""

    pool = forms.IntegerField(label=gettext_lazy("pool"), min_value=1, max_value=POOLS_MAX, initial=1)
    sku = forms.CharField(
        label=gettext_lazy("SKU"), max_length=64, widget=forms.TextInput(attrs={"list": "skus", "autocomplete": "off"})
    )
    price = forms.DecimalField(label=gettext_lazy("price"), max_digits=12, decimal_places=2)
    price_again = forms.DecimalField(label=gettext_lazy("price again"), max_digits=12, decimal_places=2, required=False)
    units = forms.IntegerField(label=gettext_lazy("units"), max_value=1_000_000_000)


class WhyForm(DeskForm):
    """Why something is done."""

    reason = forms.CharField(label=gettext_lazy("reason"), min_length=3, max_length=REASON_LENGTH_MAX)


class FileForm(DeskForm):
    """A file of items for a pool of a sale."""

    pool = forms.ModelChoiceField(label=gettext_lazy("pool"), queryset=SalePool.objects.none(), empty_label=None)
    file = forms.FileField(
        label=gettext_lazy("CSV file"), required=False, allow_empty_file=True, widget=UnfoldAdminFileFieldWidget()
    )
    text = forms.CharField(required=False, strip=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, sale_id: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        pools = SalePool.objects.filter(sale_id=sale_id).order_by("pk")
        self.fields["pool"].queryset = pools  # type: ignore[attr-defined]


PoolLines = formset_factory(PoolForm, extra=0, min_num=1, max_num=POOLS_MAX, validate_max=True)
ItemLines = formset_factory(ItemForm, extra=EMPTY_LINES, max_num=ITEMS_MAX, validate_max=True)


class SaleSheet:
    """The three parts of the page that makes a sale, read together."""

    def __init__(self, data: Any = None) -> None:
        self.sale = SaleForm(data)
        self.pools: BaseFormSet[PoolForm] = PoolLines(data, prefix="pools")
        self.items: BaseFormSet[ItemForm] = ItemLines(data, prefix="items")

    def is_valid(self) -> bool:
        """Tell whether each field can be read; all three parts are looked at."""
        parts = [self.sale.is_valid(), self.pools.is_valid(), self.items.is_valid()]
        return all(parts) and [form for form in self._lines() if not self._finds_its_pool_and_sku(form)] == []

    def plan(self) -> SalePlan:
        """The plan that stands on the page."""
        lines = self._lines()
        pools = tuple(
            PlannedPool(
                name=pool.cleaned_data["name"],
                limit_per_buyer=pool.cleaned_data["limit_per_buyer"],
                items=tuple(self._planned(form) for form in lines if form.cleaned_data["pool"] == number),
                bucket_count=pool.cleaned_data["bucket_count"] or 1,
            )
            for number, pool in enumerate(self.pools.forms, start=1)
        )
        facts = self.sale.cleaned_data
        return SalePlan(name=facts["name"], opens_at=facts["opens_at"], closes_at=facts["closes_at"], pools=pools)

    def details(self) -> SaleDetails:
        """What the sale has beside its plan."""
        facts = self.sale.cleaned_data
        names = ("rules", "pay_window_minutes", "preheat_minutes", "has_challenge")
        return SaleDetails(**{name: facts[name] for name in names})

    def show(self, findings: Sequence[Finding]) -> None:
        """Put errors where they were made."""
        for finding in findings:
            form = self._form_of(finding)
            form.add_error(finding.field if finding.field in form.fields else None, finding.words)

    def _finds_its_pool_and_sku(self, form: ItemForm) -> bool:
        if form.cleaned_data["pool"] > len(self.pools.forms):
            form.add_error("pool", _("There is no pool of this number above."))
        elif form.cleaned_data["sku"].casefold() not in self._sku_ids:
            form.add_error("sku", _("There is no SKU with this code. Use a code from the list of SKUs."))
        return not form.errors

    @cached_property
    def _sku_ids(self) -> dict[str, int]:
        """The SKUs of all lines, found at once; MySQL compares their codes without case."""
        codes = {form.cleaned_data["sku"] for form in self._lines()}
        found = Sku.objects.filter(code__in=codes).values_list("code", "pk")
        return {code.casefold(): pk for code, pk in found}

    def _planned(self, form: ItemForm) -> PlannedItem:
        facts = form.cleaned_data
        return PlannedItem(
            sku_id=self._sku_ids[facts["sku"].casefold()],
            price=facts["price"],
            units=facts["units"],
            price_again=facts["price_again"],
        )

    def _lines(self) -> list[ItemForm]:
        return [form for form in self.items.forms if form.has_changed()]

    def _form_of(self, finding: Finding) -> DeskForm:
        if finding.pool is None:
            return self.sale
        if finding.item is None:
            return self.pools.forms[finding.pool]
        of_pool = [form for form in self._lines() if form.cleaned_data["pool"] == finding.pool + 1]
        return of_pool[finding.item]
