"""Admin of the dead letters: what was parked and why, what to do, and the two decisions about it."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy as _

from rest.coloured import coloured
from rest.desk import DeskForm, ReadOnlyDeskAdmin
from rest.filters import FirstUnlessAsked
from rest.reasons import asks_itself, reason_in
from seckill.advice import advice_for
from seckill.dead_letters import DEAD_LETTER
from seckill.detail_words import in_readers_words
from seckill.errors import DecisionRefused, GateUnavailable
from seckill.models import DeadLetter
from seckill.remedies import story_of
from seckill.replay import Verdict, decide_letter, replay_obstacle

Decision = DeadLetter.Decision


class WaitingFilter(FirstUnlessAsked):
    """What nobody has decided yet, unless somebody looks for the rest."""

    title = _("state")
    offered: ClassVar = [("waiting", _("to be decided")), ("decided", _("decided")), ("all", _("all"))]

    def narrow(self, queryset: QuerySet[Any], chosen: str) -> QuerySet[Any]:
        """By the decision, which is empty until there is one."""
        return queryset.filter(decision="") if chosen == "waiting" else queryset.exclude(decision="")


class LetterForm(DeskForm):
    """Replay or refuse, and why."""

    decision = forms.ChoiceField(label=_("decision"), widget=forms.RadioSelect)
    reason = forms.CharField(label=_("Reason"), max_length=200)

    def __init__(self, *args: Any, may_replay: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        replay = [(Decision.REPLAY, _("Replay: it goes back into the queue with a unit, and is decided as any other"))]
        refuse = [(Decision.REFUSE, _("Refuse: the order number is closed for good, and its buyer is told"))]
        field: Any = self.fields["decision"]
        field.choices = [*(replay if may_replay else []), *refuse]


@admin.register(DeadLetter)
class DeadLetterAdmin(ReadOnlyDeskAdmin):
    """Queue entries that could be neither read nor written; those to be decided are shown first."""

    list_display = ["what_happened", "where", "created_at", "how_far", "story", "remedy"]
    list_filter = [WaitingFilter, "decision"]
    list_select_related = ["pool__sale"]
    search_fields = ["=stream_id", "error"]
    ordering = ["-id"]
    exclude = ["error"]
    readonly_fields = ["what_happened", "what_the_system_did", "what_you_can_do", "story", "remedy"]
    actions = ["replay", "refuse"]

    def get_urls(self) -> list[URLPattern]:
        """Add the page of the decision."""
        decide = self.admin_site.admin_view(self.decide)
        return [path("<int:letter_id>/decide/", decide, name="seckill_deadletter_decide"), *super().get_urls()]

    @admin.display(description=_("what happened"))
    def what_happened(self, letter: DeadLetter) -> str:
        """Whose purchase it is, as far as that can be read, and why it was put aside."""
        fields = {name: str(letter.fields.get(name, "?")) for name in ("order", "quantity", "item", "buyer")}
        words = _("Order %(order)s: %(quantity)s × item %(item)s for buyer %(buyer)s") % fields
        return format_html('<b>{}</b><br><span class="desk-small">{}</span>', words, in_readers_words(letter.error))

    @admin.display(description=_("What became of …"))
    def story(self, letter: DeadLetter) -> str:
        """Lead to what is known of the order number, and of all that its buyer has."""
        named = (("order", _("the order")), ("buyer", _("the buyer")))
        links = [(story_of(letter.fields[name]), words) for name, words in named if letter.fields.get(name)]
        return format_html_join(" · ", '<a href="{}">{}</a>', links) or "–"

    @admin.display(description=_("where"))
    def where(self, letter: DeadLetter) -> str:
        """The sale, bucket and stream id."""
        place = f"{letter.pool_id}:{letter.bucket_no} · {letter.stream_id}"
        return format_html('{}<br><span class="desk-small">{}</span>', letter.pool.sale.name, place)

    @coloured(
        description=_("state"),
        colours={"waiting": "danger", "under way": "warning", Decision.REPLAY: "success", Decision.REFUSE: "info"},
    )
    def how_far(self, letter: DeadLetter) -> tuple[str, str]:
        """Whether it is decided, and carried out."""
        if not letter.decision:
            return "waiting", str(_("to be decided"))
        if letter.concluded_at is None:
            return "under way", str(_("decided, being carried out"))
        return letter.decision, letter.get_decision_display()

    @admin.display(description=_("what you can do"))
    def remedy(self, letter: DeadLetter) -> str:
        """The one button."""
        if letter.decision:
            return "–"
        address = reverse("admin:seckill_deadletter_decide", args=[letter.pk])
        return format_html('<a class="desk-button" href="{}">{}</a>', address, _("Replay or refuse"))

    @admin.display(description=_("what the system did"))
    def what_the_system_did(self, _letter: DeadLetter) -> str:
        """What needs no hand any more."""
        return str(advice_for(DEAD_LETTER).did)

    @admin.display(description=_("what you can do"))
    def what_you_can_do(self, _letter: DeadLetter) -> str:
        """What is left to a person."""
        return str(advice_for(DEAD_LETTER).can)

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Whether somebody may decide about parked reservations."""
        return request.user.has_perm("seckill.decide_deadletter")

    def decide(self, request: HttpRequest, letter_id: int) -> HttpResponse:
        """Show a letter with both decisions, or with the one that is possible; take it when it is posted."""
        if not (self.has_decide_permission(request) and self.has_view_permission(request)):
            raise PermissionDenied
        letter = get_object_or_404(DeadLetter.objects.select_related("pool__sale"), pk=letter_id)
        obstacle = replay_obstacle(letter=letter)
        form = LetterForm(request.POST or None, may_replay=not obstacle)
        if request.method == "POST" and form.is_valid():
            decision, reason = Decision(form.cleaned_data["decision"]), form.cleaned_data["reason"]
            self._try(request, letter=letter, decision=decision, reason=reason)
            return redirect("admin:seckill_deadletter_changelist")
        context = {
            **self.admin_site.each_context(request),
            "title": _("Decide a dead letter"),
            "opts": self.opts,
            "letter": letter,
            "words": self.what_happened(letter),
            "story": self.story(letter),
            "advice": advice_for(DEAD_LETTER),
            "obstacle": obstacle,
            "form": form,
        }
        return TemplateResponse(request, "admin/seckill/decide_letter.html", context)

    @admin.action(description=_("Replay the selected dead letters"), permissions=["decide"])
    @asks_itself
    def replay(self, request: HttpRequest, letters: QuerySet[DeadLetter]) -> HttpResponse | None:
        """Put the selected reservations back into the queue, after a confirmation."""
        return self._decide(request, letters, Decision.REPLAY)

    @admin.action(description=_("Refuse the selected dead letters"), permissions=["decide"])
    @asks_itself
    def refuse(self, request: HttpRequest, letters: QuerySet[DeadLetter]) -> HttpResponse | None:
        """Close the order numbers of the selected reservations, after a confirmation."""
        return self._decide(request, letters, Decision.REFUSE)

    def _decide(
        self, request: HttpRequest, letters: QuerySet[DeadLetter], decision: DeadLetter.Decision
    ) -> HttpResponse | None:
        reason = reason_in(request)
        if not reason:
            return self._ask(request, letters, decision)
        for letter in letters.order_by("pk"):
            self._try(request, letter=letter, decision=decision, reason=reason)
        return None

    def _ask(self, request: HttpRequest, letters: QuerySet[DeadLetter], decision: DeadLetter.Decision) -> HttpResponse:
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": _("Replay dead letters") if decision is Decision.REPLAY else _("Refuse dead letters"),
            "is_replay": decision is Decision.REPLAY,
            "action": "replay" if decision is Decision.REPLAY else "refuse",
            "letters": letters.order_by("pk"),
            "opts": self.opts,
        }
        return TemplateResponse(request, "admin/seckill/decide_letters.html", context)

    def _try(self, request: HttpRequest, *, letter: DeadLetter, decision: DeadLetter.Decision, reason: str) -> None:
        verdict = Verdict(letter_id=letter.pk, decision=decision, actor_id=request.user.pk, reason=reason)
        try:
            with self.recorded(request, letter, f"seckill.{decision.lower()}_letter", reason):
                decide_letter(verdict=verdict, clock=timezone.now)
        except DecisionRefused as error:
            self.message_user(request, f"{letter}: {error}", messages.ERROR)
        except GateUnavailable as error:
            words = _("%(letter)s: decided; it is carried out as soon as Redis is back: %(error)s")
            self.message_user(request, words % {"letter": letter, "error": error}, messages.WARNING)
        else:
            self.message_user(request, f"{letter}: {decision.label}", messages.SUCCESS)
