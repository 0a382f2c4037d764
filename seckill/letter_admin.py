"""Admin of the dead letters: what was parked and why, what to do, and the two decisions about it."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from rest.desk import ReadOnlyDeskAdmin
from seckill.advice import advice_for
from seckill.dead_letters import DEAD_LETTER
from seckill.errors import DecisionRefused, GateUnavailable
from seckill.models import DeadLetter
from seckill.replay import Verdict, decide_letter

Decision = DeadLetter.Decision


@admin.register(DeadLetter)
class DeadLetterAdmin(ReadOnlyDeskAdmin):
    """Queue entries that could be neither read nor written, undecided ones findable by one click."""

    list_display = ["pool", "bucket_no", "stream_id", "error", "created_at", "decision", "decided_by", "decided_at"]
    list_filter = ["decision"]
    list_select_related = ["pool", "decided_by"]
    ordering = ["-id"]
    readonly_fields = ["what_you_can_do"]
    actions = ["replay", "refuse"]

    @admin.display(description=_("what you can do"))
    def what_you_can_do(self, _letter: DeadLetter) -> str:
        """What is left to a person."""
        return str(advice_for(DEAD_LETTER).can)

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Whether somebody may decide about parked reservations."""
        return request.user.has_perm("seckill.decide_deadletter")

    @admin.action(description=_("Replay the selected dead letters"), permissions=["decide"])
    def replay(self, request: HttpRequest, letters: QuerySet[DeadLetter]) -> HttpResponse | None:
        """Put the selected reservations back into the queue, after a confirmation."""
        return self._decide(request, letters, Decision.REPLAY)

    @admin.action(description=_("Refuse the selected dead letters"), permissions=["decide"])
    def refuse(self, request: HttpRequest, letters: QuerySet[DeadLetter]) -> HttpResponse | None:
        """Close the order numbers of the selected reservations, after a confirmation."""
        return self._decide(request, letters, Decision.REFUSE)

    def _decide(
        self, request: HttpRequest, letters: QuerySet[DeadLetter], decision: DeadLetter.Decision
    ) -> HttpResponse | None:
        reason = request.POST.get("reason", "").strip()
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
