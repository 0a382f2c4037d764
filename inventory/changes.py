"""Changes by hand: requested by one person, decided by another, applied by a service, for every table of such changes.

Stock and what was promised to buyers is never typed into a field. Somebody asks for a change, with a
reason; somebody else who holds the permission approves or rejects it; then a service applies it.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Self, TypeVar

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.core.validators import MinLengthValidator
from django.db import models, transaction
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from inventory.errors import AlreadyDecided, ChangeNotAllowed, UnknownChange

REASON_LENGTH_MAX = 150
OUTCOME_LENGTH_MAX = 200


class ChangeState(models.TextChoices):
    """Where a change stands."""

    REQUESTED = "REQUESTED", _("waiting for a second person")
    APPROVED = "APPROVED", _("approved, being applied")
    REJECTED = "REJECTED", _("rejected")
    APPLIED = "APPLIED", _("applied")
    REFUSED = "REFUSED", _("approved, but not possible")


CHANGE_TRANSITIONS: Mapping[ChangeState, frozenset[ChangeState]] = {
    ChangeState.REQUESTED: frozenset({ChangeState.APPROVED, ChangeState.REJECTED}),
    ChangeState.APPROVED: frozenset({ChangeState.APPLIED, ChangeState.REFUSED}),
    ChangeState.REJECTED: frozenset(),
    ChangeState.APPLIED: frozenset(),
    ChangeState.REFUSED: frozenset(),
}

UNDECIDED = Q(state=ChangeState.REQUESTED, decided_by__isnull=True, decided_at__isnull=True)
DECIDED = ~Q(state=ChangeState.REQUESTED) & Q(decided_by__isnull=False, decided_at__isnull=False)


class ManualChange(models.Model):
    """What every change by hand has: who asked and why, who decided and why, and how it ended."""

    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        editable=False,
        related_name="+",
        verbose_name=_("requested by"),
    )
    requested_at = models.DateTimeField(_("requested at"), editable=False)
    reason = models.CharField(_("reason"), max_length=REASON_LENGTH_MAX, validators=[MinLengthValidator(3)])
    state = models.CharField(
        _("state"), max_length=16, choices=ChangeState, default=ChangeState.REQUESTED, editable=False
    )
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
        verbose_name=_("decided by"),
    )
    decided_at = models.DateTimeField(_("decided at"), null=True, blank=True, editable=False)
    decision_reason = models.CharField(
        _("reason of the decision"), max_length=REASON_LENGTH_MAX, blank=True, editable=False
    )
    is_by_one_person = models.BooleanField(_("decided by the same person"), default=False, editable=False)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True, editable=False)
    outcome = models.CharField(_("outcome"), max_length=OUTCOME_LENGTH_MAX, blank=True, editable=False)

    objects: ClassVar[models.Manager[Self]] = models.Manager()

    class Meta:
        abstract = True
        constraints = [
            models.CheckConstraint(condition=~Q(reason=""), name="%(class)s_has_reason"),
            models.CheckConstraint(condition=Q(state__in=ChangeState.values), name="%(class)s_state_known"),
            models.CheckConstraint(condition=UNDECIDED | DECIDED, name="%(class)s_decided_by_somebody"),
            models.CheckConstraint(
                condition=Q(decided_by__isnull=True) | ~Q(decided_by=F("requested_by")) | Q(is_by_one_person=True),
                name="%(class)s_two_people",
            ),
        ]

    @property
    def ledger_reason(self) -> str:
        """The reason as the ledger keeps it; it says so where nobody else looked at the change."""
        return f"{self.reason} [one person alone]" if self.is_by_one_person else self.reason


Change = TypeVar("Change", bound=ManualChange)
Person = PermissionsMixin | AbstractBaseUser | AnonymousUser


def submit(*, change: Change, by: Person, now: datetime) -> Change:
    """Write a request for a change, filled in but for who and when.

    Raises ``ChangeNotAllowed`` without the permission to add such requests, and ``ValidationError``.
    """
    change.requested_by_id = _require_permission(table=type(change), action="add", by=by)
    change.requested_at = now
    change.state = ChangeState.REQUESTED
    change.full_clean(exclude={"requested_by"})
    change.save(force_insert=True)
    return change


def approve(*, table: type[ManualChange], change_id: int, by: Person, reason: str, now: datetime) -> None:
    """Approve a request; a service is to apply it then.

    Raises ``ChangeNotAllowed`` for one's own request or without the permission, ``AlreadyDecided``
    and ``UnknownChange``.
    """
    _decide(table=table, change_id=change_id, by=by, state=ChangeState.APPROVED, reason=reason, now=now)


def reject(*, table: type[ManualChange], change_id: int, by: Person, reason: str, now: datetime) -> None:
    """Reject a request. Raises as ``approve``."""
    _decide(table=table, change_id=change_id, by=by, state=ChangeState.REJECTED, reason=reason, now=now)


def locked(*, table: type[Change], change_id: int) -> Change:
    """Lock a change's row for this transaction. Raises ``UnknownChange``."""
    change = table.objects.select_for_update().filter(pk=change_id).first()
    if change is None:
        raise UnknownChange
    return change


def finish(*, change: ManualChange, state: ChangeState, outcome: str, now: datetime, **fields: Any) -> None:
    """End a locked, approved change. Raises ``AlreadyDecided`` when it is not approved any more."""
    _move(change=change, state=state, finished_at=now, outcome=outcome[:OUTCOME_LENGTH_MAX], **fields)


def may(*, table: type[ManualChange], action: str, by: Person) -> bool:
    """Tell whether somebody holds the permission for an action (add, view, approve) on a table of changes."""
    options = table._meta  # noqa: SLF001  Django documents it as an interface
    name = f"{options.app_label}.{action}_{options.model_name}"
    return isinstance(by, PermissionsMixin) and bool(by.has_perm(name))


def may_decide(*, change: ManualChange, by: Person) -> bool:
    """Tell whether somebody may decide on a request."""
    if change.state != ChangeState.REQUESTED or not may(table=type(change), action="approve", by=by):
        return False
    return bool(change.requested_by_id != by.pk or settings.ONE_PERSON_SHOP)


def waiting_for(*, table: type[Change], by: Person) -> models.QuerySet[Change]:
    """Requests that somebody may decide on now."""
    if not may(table=table, action="approve", by=by):
        return table.objects.none()
    waiting = table.objects.filter(state=ChangeState.REQUESTED)
    return waiting if settings.ONE_PERSON_SHOP else waiting.exclude(requested_by_id=by.pk)


def _decide(
    *, table: type[ManualChange], change_id: int, by: Person, state: ChangeState, reason: str, now: datetime
) -> None:
    decider_id = _require_permission(table=table, action="approve", by=by)
    with transaction.atomic():
        change = locked(table=table, change_id=change_id)
        is_own = change.requested_by_id == decider_id
        if is_own and not settings.ONE_PERSON_SHOP:
            raise ChangeNotAllowed(explanation=str(_("Somebody else must decide on your own request.")))
        _move(
            change=change,
            state=state,
            decided_by_id=decider_id,
            decided_at=now,
            decision_reason=reason[:REASON_LENGTH_MAX],
            is_by_one_person=is_own,
        )


def _move(*, change: ManualChange, state: ChangeState, **fields: Any) -> None:
    if state not in CHANGE_TRANSITIONS[ChangeState(change.state)]:
        raise AlreadyDecided(state=change.state)
    for name, value in {"state": state, **fields}.items():
        setattr(change, name, value)
    type(change).objects.filter(pk=change.pk).update(state=state, **fields)


def _require_permission(*, table: type[ManualChange], action: str, by: Person) -> int:
    """Return the person's primary key."""
    if by.pk is None or not may(table=table, action=action, by=by):
        raise ChangeNotAllowed(explanation=str(_("You do not have the permission for that.")))
    return int(by.pk)
