"""What an operator does with a sale: each with a page that says what will happen and asks for the reason."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_stubs_ext import StrOrPromise

from actions.log import Facts, deed_on, recorded, seen
from inventory.changes import ChangeState
from rest.actors import who_of
from seckill.changeable import How, What, phases_for
from seckill.desk_texts import texts_json
from seckill.errors import GateUnavailable, SaleNotReady
from seckill.models import FlashSale, SaleItem
from seckill.sale_forms import WhyForm
from seckill.sale_making import schedule_sale, unschedule_sale
from seckill.sale_word import SaleWord, phase_of_sale, word_of_sale
from seckill.states import SalePhase
from seckill.whole_sale import end_sale, pause_sale, resume_sale
from seckill.withdrawing import withdraw_sale

Page = Callable[..., HttpResponseBase]
NOT_TOLD = gettext_lazy("Stored, but Redis could not be told yet. It is told as soon as it answers.")


def for_people_who(*permissions: str) -> Callable[[Page], Page]:
    """Make a page of the desk for staff who have all these permissions."""

    def decorate(view: Page) -> Page:
        @wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.has_perms(permissions):
                raise PermissionDenied
            return view(request, *args, **kwargs)

        decorated: Page = admin.site.admin_view(checked)
        return decorated

    return decorate


@dataclass(frozen=True, kw_only=True)
class Action:
    """One thing to do: in which phases of a sale, what it is called, what will happen, and how it is done."""

    phases: frozenset[SalePhase]
    title: StrOrPromise
    what_happens: StrOrPromise
    do: Callable[[HttpRequest, int, str], str]
    is_grave: bool = False


def _schedule(_request: HttpRequest, sale_id: int, _reason: str) -> str:
    schedule_sale(sale_id=sale_id, now=timezone.now())
    return _("The sale is scheduled.")


def _unschedule(_request: HttpRequest, sale_id: int, _reason: str) -> str:
    unschedule_sale(sale_id=sale_id)
    return _("The sale is a draft again.")


def _pause(_request: HttpRequest, sale_id: int, _reason: str) -> str:
    return _("%(number)d items are paused.") % {"number": pause_sale(sale_id=sale_id)}


def _resume(_request: HttpRequest, sale_id: int, _reason: str) -> str:
    return _("%(number)d items are on sale again.") % {"number": resume_sale(sale_id=sale_id)}


def _end(request: HttpRequest, sale_id: int, reason: str) -> str:
    actor_id = int(request.user.pk or 0)
    if end_sale(sale_id=sale_id, actor_id=actor_id, reason=reason, clock=timezone.now) is ChangeState.APPROVED:
        raise GateUnavailable
    return _("The sale has ended.")


def _withdraw(request: HttpRequest, sale_id: int, _reason: str) -> str:
    withdraw_sale(sale_id=sale_id, clock=timezone.now, actor_id=request.user.pk)
    return _("The sale is a draft again, its units are in the warehouse.")


ACTIONS: dict[str, Action] = {
    "schedule": Action(
        phases=frozenset({SalePhase.DRAFT}),
        title=gettext_lazy("Schedule"),
        what_happens=gettext_lazy("The sale is preheated by itself shortly before it opens. It can still be changed."),
        do=_schedule,
    ),
    "unschedule": Action(
        phases=frozenset({SalePhase.SCHEDULED}),
        title=gettext_lazy("Back to draft"),
        what_happens=gettext_lazy("Nothing preheats the sale by itself any more, and buyers do not see it."),
        do=_unschedule,
    ),
    "pause": Action(
        phases=phases_for(what=What.PAUSE, how=How.AT_ONCE),
        title=gettext_lazy("Pause"),
        what_happens=gettext_lazy(
            "Within a second nobody can reserve anything of this sale. What is reserved stays reserved and can be paid."
        ),
        do=_pause,
        is_grave=True,
    ),
    "resume": Action(
        phases=phases_for(what=What.PAUSE, how=How.AT_ONCE),
        title=gettext_lazy("Resume"),
        what_happens=gettext_lazy("All items of the sale can be bought again, also those that were paused one by one."),
        do=_resume,
    ),
    "end": Action(
        phases=phases_for(what=What.END, how=How.AT_ONCE),
        title=gettext_lazy("End now"),
        what_happens=gettext_lazy(
            "The sale closes this second. What is reserved can still be paid; what is left goes back to the warehouse "
            "with the archive. To open it again takes a change of its window, which a second person approves."
        ),
        do=_end,
        is_grave=True,
    ),
    "withdraw": Action(
        phases=phases_for(what=What.WITHDRAW, how=How.AT_ONCE),
        title=gettext_lazy("Withdraw"),
        what_happens=gettext_lazy(
            "The sale becomes a draft and its units go back to the warehouse, if nobody has reserved anything yet. "
            "Otherwise nothing happens."
        ),
        do=_withdraw,
        is_grave=True,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A button of the sale's page."""

    name: str
    title: StrOrPromise
    is_grave: bool = False


def offered(*, sale: FlashSale, word: SaleWord, phase: SalePhase, by: Any) -> list[Offer]:
    """The buttons that make sense in a sale's phase and that somebody may press."""
    if not by.has_perm("seckill.change_flashsale"):
        return []
    offers = [Offer(name=name, title=a.title, is_grave=a.is_grave) for name, a in ACTIONS.items() if phase in a.phases]
    paused = {"pause"} if word is SaleWord.PAUSED else set()
    is_any_paused = word is SaleWord.PAUSED or sale.pools.filter(items__is_paused=True).exists()
    hidden = paused if is_any_paused else {"resume"}
    return [offer for offer in offers if offer.name not in hidden]


def told(request: HttpRequest, sale: FlashSale, what: str, reason: str = "") -> AbstractContextManager[None]:
    """Write the action log before and after something is done to a sale, with how much of it is paused."""
    deed = deed_on(sale, by=who_of(request), what=f"seckill.{what}", reason=reason)

    def see() -> Facts:
        items = SaleItem.objects.filter(pool__sale=sale)
        return {**seen(sale)(), "items": items.count(), "items_paused": items.filter(is_paused=True).count()}

    return recorded(deed=deed, see=see, clock=timezone.now)


def page(request: HttpRequest, template: str, context: dict[str, Any], *, status: int = HTTPStatus.OK) -> HttpResponse:
    """A page of the desk, with the server's time and the shop's zone for its scripts."""
    shared = {"now": timezone.now(), "zone": settings.TIME_ZONE, "texts": texts_json()}
    whole = {**admin.site.each_context(request), **shared, **context}
    return TemplateResponse(request, template, whole, status=status)


@for_people_who("seckill.view_flashsale", "seckill.change_flashsale")
def action_page(request: HttpRequest, sale_id: int, name: str) -> HttpResponse:
    """Say what will happen; do it, with a reason."""
    action = ACTIONS.get(name)
    sale = get_object_or_404(FlashSale, pk=sale_id)
    if action is None:
        raise Http404
    form, now = WhyForm(request.POST or None), timezone.now()
    is_timely = phase_of_sale(sale=sale, now=now) in action.phases
    if request.method == "POST" and is_timely and form.is_valid():
        reason = form.cleaned_data["reason"]
        try:
            with told(request, sale, name, reason):
                words = action.do(request, sale_id, reason)
            messages.success(request, words)
        except SaleNotReady as error:
            messages.error(request, str(error))
        except GateUnavailable:
            messages.warning(request, NOT_TOLD)
        return redirect("desk_sale", sale_id)
    word = word_of_sale(sale=sale, now=now)
    context: dict[str, Any] = {"title": action.title, "sale": sale, "word": word, "form": form}
    context |= {"what_happens": action.what_happens, "is_timely": is_timely}
    return page(request, "desk/sale_confirm.html", context)
