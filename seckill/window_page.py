"""The page that asks for another window of a sale that is preheated; a second person approves it."""

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inventory.changes import submit
from inventory.errors import ChangeNotAllowed
from seckill.change_tables import WindowChange
from seckill.changeable import How, What, phases_for
from seckill.models import FlashSale
from seckill.plan_checks import Weight, check_window
from seckill.sale_actions import for_people_who, page, told
from seckill.sale_forms import WhyForm, moment_field
from seckill.sale_word import phase_of_sale, word_of_sale

OPENING_MOVES = phases_for(what=What.OPENING, how=How.BY_APPROVAL)
CLOSING_MOVES = phases_for(what=What.CLOSING, how=How.BY_APPROVAL)


class WindowForm(WhyForm):
    """Another window; of a sale that has opened only the end can be moved, and only the end is a field."""

    opens_at = moment_field(gettext_lazy("opens at"))
    closes_at = moment_field(gettext_lazy("closes at"))
    field_order = ("opens_at", "closes_at", "reason")

    def __init__(self, data: Any = None, *, sale: FlashSale, now: datetime) -> None:
        super().__init__(data, initial={"opens_at": sale.opens_at, "closes_at": sale.closes_at})
        self._sale, self._now = sale, now
        if phase_of_sale(sale=sale, now=now) not in OPENING_MOVES:
            del self.fields["opens_at"]

    def clean(self) -> dict[str, Any]:
        """Check the window as one that is planned, and put in what was not touched."""
        super().clean()
        if self.errors:
            return self.cleaned_data
        if "opens_at" in self.data and "opens_at" not in self.fields:
            raise ValidationError(_("The sale has opened meanwhile; only its end can be moved. Please look again."))
        window = {
            "opens_at": _untouched(self.cleaned_data.get("opens_at"), self._sale.opens_at),
            "closes_at": _untouched(self.cleaned_data["closes_at"], self._sale.closes_at),
        }
        if window == {"opens_at": self._sale.opens_at, "closes_at": self._sale.closes_at}:
            raise ValidationError(_("This is the window the sale has. Choose another end."))
        for finding in check_window(now=self._now, **window):
            if finding.weight is Weight.ERROR:
                self.add_error(finding.field, finding.words)
        return {**self.cleaned_data, **window}


def _untouched(typed: datetime | None, stored: datetime) -> datetime:
    """What is stored, if that is what the field showed, in minutes: an opening that has passed keeps its seconds."""
    if typed is None or typed == stored.replace(second=0, microsecond=0):
        return stored
    return typed


@for_people_who("seckill.view_flashsale", "seckill.add_windowchange")
def window_page(request: HttpRequest, sale_id: int) -> HttpResponse:
    """Ask for another window."""
    sale, now = get_object_or_404(FlashSale, pk=sale_id), timezone.now()
    is_timely = phase_of_sale(sale=sale, now=now) in CLOSING_MOVES
    form = WindowForm(request.POST or None, sale=sale, now=now)
    if request.method == "POST" and is_timely and form.is_valid():
        change = WindowChange(sale=sale, **form.cleaned_data)
        try:
            with told(request, sale, "request_window", form.cleaned_data["reason"]):
                submit(change=change, by=request.user, now=now)
        except (ChangeNotAllowed, ValidationError) as error:
            form.add_error(None, error if isinstance(error, ValidationError) else str(error))
        else:
            return _asked(request, sale_id)
    word = word_of_sale(sale=sale, now=now)
    context: dict[str, Any] = {"title": _("Change the window"), "sale": sale, "word": word, "form": form}
    what_happens = _("The new window counts from its approval on. Once open, only the end can be moved.")
    context |= {"what_happens": what_happens, "is_timely": is_timely}
    return page(request, "desk/sale_confirm.html", context)


def _asked(request: HttpRequest, sale_id: int) -> HttpResponse:
    messages.success(request, _("Requested. Somebody else approves it."))
    return redirect("desk_sale", sale_id)
