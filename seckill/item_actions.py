"""Pause and resume of one item of a sale, while the others go on: a page that says what will happen, and a reason."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext_lazy
from django_stubs_ext import StrOrPromise

from actions.log import deed_on, recorded, seen
from rest.actors import who_of
from seckill.changeable import How, What, phases_for
from seckill.errors import GateUnavailable, SaleNotReady
from seckill.models import SaleItem
from seckill.pausing import pause_item, resume_item
from seckill.sale_actions import NOT_TOLD, for_people_who, page
from seckill.sale_forms import WhyForm
from seckill.sale_word import phase_of_sale, word_of_sale

ITEM_PHASES = phases_for(what=What.PAUSE, how=How.AT_ONCE)


@dataclass(frozen=True, kw_only=True)
class ItemAction:
    """One thing to do with an item."""

    title: StrOrPromise
    what_happens: StrOrPromise
    done: StrOrPromise
    do: Callable[[int], None]


ITEM_ACTIONS: Mapping[str, ItemAction] = {
    "pause": ItemAction(
        title=gettext_lazy("Pause"),
        what_happens=gettext_lazy(
            "Within a second nobody can reserve this item; the others go on. What is reserved stays reserved and can "
            "be paid."
        ),
        done=gettext_lazy("%(item)s is paused."),
        do=lambda item_id: pause_item(item_id=item_id),
    ),
    "resume": ItemAction(
        title=gettext_lazy("Resume"),
        what_happens=gettext_lazy("This item can be bought again."),
        done=gettext_lazy("%(item)s is on sale again."),
        do=lambda item_id: resume_item(item_id=item_id),
    ),
}


@for_people_who("seckill.view_flashsale", "seckill.change_flashsale")
def item_page(request: HttpRequest, sale_id: int, item_id: int, name: str) -> HttpResponse:
    """Say what will happen to the item; do it, with a reason."""
    action = ITEM_ACTIONS.get(name)
    if action is None:
        raise Http404
    item = get_object_or_404(SaleItem.objects.select_related("sku", "pool__sale"), pk=item_id, pool__sale_id=sale_id)
    sale = item.pool.sale
    form, now = WhyForm(request.POST or None), timezone.now()
    is_timely = phase_of_sale(sale=sale, now=now) in ITEM_PHASES
    if request.method == "POST" and is_timely and form.is_valid():
        _do(request, item, action, what=f"seckill.{name}", reason=form.cleaned_data["reason"])
        return redirect("desk_sale", sale_id)
    title = f"{action.title}: {item.sku.code}"
    word = word_of_sale(sale=sale, now=now)
    context: dict[str, Any] = {"title": title, "sale": sale, "word": word, "form": form}
    context |= {"what_happens": action.what_happens, "is_timely": is_timely}
    return page(request, "desk/sale_confirm.html", context)


def _do(request: HttpRequest, item: SaleItem, action: ItemAction, *, what: str, reason: str) -> None:
    deed = deed_on(item, by=who_of(request), what=what, reason=reason)
    try:
        with recorded(deed=deed, see=seen(item), clock=timezone.now):
            action.do(item.pk)
    except SaleNotReady as error:
        messages.error(request, str(error))
    except GateUnavailable:
        messages.warning(request, NOT_TOLD)
    else:
        messages.success(request, str(action.done) % {"item": item.sku.code})
